//===- RoundedWeights.h - constant f32 weights in fewer bits ----*- C++ -*-===//
//
// Products of few rows wait for their weights, so fewer bytes are less time. `--numerics` lets such weights be rounded
// at compile time: to bf16, or to s8 times a scale a column. They become f32 again in the register tile; operands that
// a run brings, sums and results stay f32. Which weights are rounded is decided with a product's strategy, whose packed
// form then says how.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/BlockRounding.h"
#include "dmxc/Support/Result.h"

#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dmxc::cpu {

enum class WeightFormat { Kept, BF16, S8 };

/// What a mode of --numerics changes.
struct Numerics {
  WeightFormat weights = WeightFormat::Kept;          ///< of products that wait for them
  bool roundsProducts = false;                        ///< both operands of f32 products of more rows to bf16
  bool roundsConvs = false;                           ///< and those of convolutions that are faster so
  std::optional<BlockRounding> blocks = std::nullopt; ///< how constant weights and tables are kept
  bool roundsRows = false;                            ///< that products by such weights read, in blocks of s8, too

  bool rounds() const { return weights != WeightFormat::Kept || roundsProducts || roundsConvs || blocks; }
};
/// "" is strict. Fails for a name that is no mode, and for blocks that it has not.
Result<Numerics> numericsOfMode(llvm::StringRef mode);
/// All modes, for messages: "strict, bf16, ..."
std::string numericsModes();

/// The packed form of weights in a format, and back: nullopt for forms of other kinds.
llvm::StringRef panelForm(WeightFormat format);
std::optional<WeightFormat> formatOfForm(llvm::StringRef form);
/// What tables call a format that rounds.
llvm::StringRef formatName(WeightFormat format);

/// A k x n matrix: element (row, col) at data + row*strideK + col*strideN.
struct FloatMatrix {
  const float *data;
  int64_t k, n, strideK, strideN;
};

/// Bytes of a rounded matrix: panels as packPanel16 makes them, those of s8 followed by the columns' scales, with zeros
/// up to whole panels.
int64_t roundedPanelBytes(WeightFormat format, int64_t k, int64_t n);
/// Where the scales of s8 weights begin.
int64_t scalesOffset(int64_t k, int64_t n);
/// Packs BF16 (to nearest, ties to even) or S8 (scale: the column's greatest magnitude over 127; a column that is not
/// finite has the scale NaN).
void packRounded(WeightFormat format, const FloatMatrix &matrix, std::span<std::byte> out);
/// RMS of the differences that rounding makes over the RMS of the matrix; infinite where a finite value is lost.
double roundingError(WeightFormat format, const FloatMatrix &matrix);

} // namespace dmxc::cpu
