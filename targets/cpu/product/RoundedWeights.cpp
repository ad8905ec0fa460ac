//===- RoundedWeights.cpp - constant f32 weights in fewer bits ------------===//

#include "RoundedWeights.h"

#include "Gemm.h"

#include "dmxc/Support/Half.h"
#include "dmxc/Support/RoundingError.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace dmxc;
using namespace dmxc::cpu;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

namespace {

/// In the order of WeightFormat.
struct FormatRow {
  WeightFormat format;
  llvm::StringLiteral form, name;
};
constexpr FormatRow formats[] = {{WeightFormat::Kept, "panel16", ""},
                                 {WeightFormat::BF16, "panel16-bf16", "bf16"},
                                 {WeightFormat::S8, "panel16-s8", "s8"}};

struct ModeRow {
  llvm::StringLiteral mode;
  Numerics numerics;
};
/// Those with blocks may end in ":BLOCK".
const ModeRow modes[] = {{"strict", {}},
                         {"bf16", {WeightFormat::BF16, true}},
                         {"bf16-convs", {WeightFormat::BF16, true, true}},
                         {"bf16-weights", {WeightFormat::BF16, false}},
                         {"int8", {.blocks = BlockRounding{8, 32, false}, .roundsRows = true}},
                         {"int8-weights", {.blocks = BlockRounding{8, 32, false}}},
                         {"int8-weights-zeros", {.blocks = BlockRounding{8, 32, true}}},
                         {"int4-weights", {.blocks = BlockRounding{4, 32, false}}},
                         {"int4-weights-zeros", {.blocks = BlockRounding{4, 32, true}}},
                         {"int8-columns", {WeightFormat::S8, false}}};
constexpr int64_t blockSizes[] = {16, 32, 64, 128, 256};

const FormatRow &rowOf(WeightFormat format) { return formats[static_cast<size_t>(format)]; }

} // namespace

Result<Numerics> dmxc::cpu::numericsOfMode(llvm::StringRef mode) {
  if (mode.empty())
    return Numerics();
  auto [name, size] = mode.split(':');
  const auto *row = llvm::find_if(modes, [&, name = name](const ModeRow &one) { return name == one.mode; });
  if (row == std::end(modes))
    return usageError("the cpu target has no numerics mode '" + mode.str() + "'; it has " + numericsModes());
  Numerics numerics = row->numerics;
  if (name == mode)
    return numerics;
  if (!numerics.blocks)
    return usageError("the numerics mode '" + name.str() + "' has no blocks: leave ':" + size.str() + "' out");
  if (size.getAsInteger(10, numerics.blocks->block) || !llvm::is_contained(blockSizes, numerics.blocks->block))
    return usageError("the numerics mode '" + name.str() + "' has blocks of 16, 32, 64, 128 or 256, not '" +
                      size.str() + "'");
  return numerics;
}

std::string dmxc::cpu::numericsModes() {
  std::string names;
  for (const ModeRow &row : modes)
    names += (names.empty() ? "" : ", ") + row.mode.str() + (row.numerics.blocks ? "[:BLOCK]" : "");
  return names;
}

llvm::StringRef dmxc::cpu::panelForm(WeightFormat format) { return rowOf(format).form; }
llvm::StringRef dmxc::cpu::formatName(WeightFormat format) { return rowOf(format).name; }

std::optional<WeightFormat> dmxc::cpu::formatOfForm(llvm::StringRef form) {
  for (const FormatRow &row : formats)
    if (form == row.form)
      return row.format;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// Calls visit(element, column, its place in the panels) for all elements. Blocks of rows keep the lines of a
/// transposed matrix in the cache while all columns of a panel read from them.
template <typename Visit> void visitPanels(const FloatMatrix &m, Visit visit) {
  constexpr int64_t block = 64;
  for (int64_t n0 = 0; n0 < m.n; n0 += 16)
    for (int64_t k0 = 0; k0 < m.k; k0 += block)
      for (int64_t col = n0; col < std::min(m.n, n0 + 16); ++col) {
        const float *column = m.data + col * m.strideN;
        for (int64_t row = k0; row < std::min(m.k, k0 + block); ++row)
          visit(column[row * m.strideK], col, n0 * m.k + row * 16 + col - n0);
      }
}

std::vector<float> columnScales(const FloatMatrix &matrix) {
  std::vector<float> scales(matrix.n, 0.0f);
  visitPanels(matrix, [&](float x, int64_t col, int64_t) {
    float &most = scales[col];
    if (!std::isfinite(x))
      most = std::numeric_limits<float>::quiet_NaN();
    else if (most < std::abs(x)) // never again once it is NaN
      most = std::abs(x);
  });
  for (float &scale : scales)
    scale /= 127.0f;
  return scales;
}

int8_t toS8(float x, float scale) {
  if (!(scale > 0))
    return 0;
  // Scales below the least normal number are inexact: the quotient may leave the range.
  return static_cast<int8_t>(std::clamp(std::nearbyint(x / static_cast<double>(scale)), -127.0, 127.0));
}

} // namespace

int64_t dmxc::cpu::scalesOffset(int64_t k, int64_t n) { return panel16Bytes(k, n, 1); }

int64_t dmxc::cpu::roundedPanelBytes(WeightFormat format, int64_t k, int64_t n) {
  assert(format != WeightFormat::Kept);
  if (format == WeightFormat::BF16)
    return panel16Bytes(k, n, 2);
  return scalesOffset(k, n) + panel16Bytes(1, n, sizeof(float));
}

void dmxc::cpu::packRounded(WeightFormat format, const FloatMatrix &matrix, std::span<std::byte> out) {
  assert(static_cast<int64_t>(out.size()) >= roundedPanelBytes(format, matrix.k, matrix.n));
  std::memset(out.data(), 0, roundedPanelBytes(format, matrix.k, matrix.n));
  if (format == WeightFormat::BF16) {
    auto *to = reinterpret_cast<uint16_t *>(out.data());
    visitPanels(matrix, [&](float x, int64_t, int64_t at) { to[at] = doubleToBfloat(x); });
    return;
  }
  std::vector<float> scales = columnScales(matrix);
  auto *to = reinterpret_cast<int8_t *>(out.data());
  visitPanels(matrix, [&](float x, int64_t col, int64_t at) { to[at] = toS8(x, scales[col]); });
  std::memcpy(out.data() + scalesOffset(matrix.k, matrix.n), scales.data(), scales.size() * sizeof(float));
}

double dmxc::cpu::roundingError(WeightFormat format, const FloatMatrix &matrix) {
  RoundingError sum;
  if (format == WeightFormat::BF16) {
    visitPanels(matrix, [&](float x, int64_t, int64_t) { sum.add(x, bfloatToFloat(doubleToBfloat(x))); });
  } else if (format == WeightFormat::S8) {
    std::vector<float> scales = columnScales(matrix);
    visitPanels(matrix, [&](float x, int64_t col, int64_t) {
      sum.add(x, static_cast<double>(toS8(x, scales[col])) * scales[col]);
    });
  }
  return sum.relative();
}
