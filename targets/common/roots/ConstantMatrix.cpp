//===- ConstantMatrix.cpp - where a constant matrix is zero ---------------===//
#include "ConstantMatrix.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Support/ElementAt.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

bool ConstantMatrix::mayBeSparse() const {
  constexpr int64_t looks = 1024, stride = 7919; // a prime, so that no pattern goes along with it
  const int64_t elements = k * n, count = std::min(elements, looks);
  return withType([&](auto tag, auto bits) {
    int64_t zeros = 0;
    for (int64_t i = 0, at = 0; i < count; ++i, at = (at + elements / count * 3 + stride) % elements)
      zeros += !(elementAt<decltype(tag)>(data, at / n * strideK + at % n * strideN) & bits);
    return zeros * 20 >= count;
  });
}

NonZeros::NonZeros(const ConstantMatrix &m) : k(m.k), n(m.n) {
  const int64_t wide = cellColumns(), tall = (k + kTall - 1) / kTall;
  std::vector<bool> cells(static_cast<size_t>(wide * tall));
  m.withType([&](auto tag, auto bits) {
    for (int64_t row = 0; row < k; ++row)
      for (int64_t cell = 0; cell < wide; ++cell) {
        decltype(tag) any = 0;
        for (int64_t column = cell * kWide; column < std::min(n, (cell + 1) * kWide); ++column)
          any |= elementAt<decltype(tag)>(m.data, row * m.strideK + column * m.strideN);
        if (any & bits)
          cells[static_cast<size_t>(row / kTall * wide + cell)] = true;
      }
  });
  before.assign(static_cast<size_t>((wide + 1) * (tall + 1)), 0);
  auto corner = [&](int64_t row, int64_t column) -> int32_t & {
    return before[static_cast<size_t>(row * (wide + 1) + column)];
  };
  for (int64_t row = 0; row < tall; ++row)
    for (int64_t column = 0; column < wide; ++column)
      corner(row + 1, column + 1) = corner(row, column + 1) + corner(row + 1, column) - corner(row, column) +
                                    cells[static_cast<size_t>(row * wide + column)];
}

std::optional<NonZeros> NonZeros::of(Value constant) {
  constexpr int64_t most = int64_t(1) << 30;
  std::optional<Tensor> tensor = dmir::constantTensor(constant);
  if (!tensor || tensor->rank() < 2 || dtypeBits(tensor->dtype()) < 8 || tensor->numElements() > most)
    return std::nullopt;
  const int64_t n = tensor->shape().back(), k = tensor->shape()[tensor->rank() - 2];
  if (k * n == 0 || tensor->numElements() != k * n)
    return std::nullopt;
  ConstantMatrix matrix{tensor->data(), k, n, n, 1, dtypeBits(tensor->dtype()) / 8, isFloat(tensor->dtype())};
  return matrix.mayBeSparse() ? std::optional(NonZeros(matrix)) : std::nullopt;
}

bool NonZeros::any(dmir::Run rows, dmir::Run columns) const {
  const int64_t wide = cellColumns() + 1;
  auto [top, bottom] = rows;
  auto [left, right] = columns;
  bottom = std::min(bottom, k), right = std::min(right, n);
  if (top >= bottom || left >= right)
    return false;
  top /= kTall, left /= kWide;
  bottom = (bottom + kTall - 1) / kTall, right = (right + kWide - 1) / kWide;
  auto corner = [&](int64_t row, int64_t column) { return before[static_cast<size_t>(row * wide + column)]; };
  return corner(bottom, right) - corner(top, right) - corner(bottom, left) + corner(top, left) > 0;
}

SmallVector<dmir::Run> NonZeros::rowRuns(dmir::Run columns, int64_t granule) const {
  SmallVector<dmir::Run> runs;
  for (int64_t at = 0; at * granule < k; ++at) {
    if (!any({at * granule, (at + 1) * granule}, columns))
      continue;
    if (!runs.empty() && runs.back().second == at)
      ++runs.back().second;
    else
      runs.emplace_back(at, at + 1);
  }
  return runs;
}

int64_t kernels::lengthOf(ArrayRef<dmir::Run> runs) {
  int64_t length = 0;
  for (auto [from, to] : runs)
    length += to - from;
  return length;
}

const dmir::Run *kernels::firstOutOfOrder(ArrayRef<dmir::Run> runs, int64_t most) {
  int64_t end = -1;
  for (const dmir::Run &run : runs) {
    if (run.first <= end || run.first >= run.second || run.second > most)
      return &run;
    end = run.second;
  }
  return nullptr;
}

ArrayAttr kernels::writeRuns(MLIRContext *context, ArrayRef<RunList> lists, int64_t unit) {
  Builder b(context);
  SmallVector<Attribute> written;
  for (const RunList &runs : lists) {
    SmallVector<int64_t> ends;
    for (auto [from, to] : runs)
      ends.append({from * unit, to * unit});
    written.push_back(b.getDenseI64ArrayAttr(ends));
  }
  return b.getArrayAttr(written);
}

std::optional<std::vector<RunList>> kernels::readRuns(ArrayAttr lists) {
  std::vector<RunList> all;
  for (Attribute each : lists) {
    auto ends = dyn_cast<DenseI64ArrayAttr>(each);
    if (!ends || ends.size() % 2)
      return std::nullopt;
    RunList &runs = all.emplace_back();
    for (int64_t at = 0; at < ends.size(); at += 2)
      runs.emplace_back(ends[at], ends[at + 1]);
  }
  return all;
}

bool kernels::mayLeaveOut(Operation *op, bool exact) {
  auto module = op->getParentOfType<ModuleOp>();
  auto mode = module ? module->getAttrOfType<StringAttr>(dmir::kSparsityAttr) : StringAttr();
  return !mode || (mode.getValue() != "off" && (exact || mode.getValue() != "exact"));
}

StringRef kernels::unusedFact(dmir::MatMulOp product, ArrayRef<StringRef> skips) {
  auto isZero = [](Value operand) {
    std::optional<dmir::Known> known = dmir::knownOf(operand);
    return known && known->value == 0;
  };
  const std::pair<StringRef, bool> facts[] = {{"left", isZero(product.getLhs())},
                                              {"right", isZero(product.getRhs())},
                                              {"result", dmir::demandOf(product.getResult()).has_value()}};
  for (auto [what, isKnown] : facts)
    if (isKnown && !llvm::is_contained(skips, what))
      return what;
  return "";
}
