//===- ConstantMatrix.h - where a constant matrix is zero -------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dmxc::kernels {

/// A k x n matrix: element (row, col) of `bytes` bytes at data + (row*strideK + col*strideN) * bytes.
struct ConstantMatrix {
  const std::byte *data;
  int64_t k, n, strideK, strideN, bytes;
  bool isFloat; ///< both zeros of floats are zero

  /// Whether so many elements are zero that some blocks may be, by a look at few: most weights have none.
  bool mayBeSparse() const;

  /// Calls f(an element's type, the bits of it that are not zero in numbers that are not).
  template <typename F> auto withType(F f) const {
    auto of = [&](auto tag) {
      using T = decltype(tag);
      constexpr T sign = static_cast<T>(T(1) << (8 * sizeof(T) - 1));
      return f(tag, static_cast<T>(isFloat ? ~sign : ~T(0)));
    };
    if (bytes == 1)
      return of(uint8_t());
    if (bytes == 2)
      return of(uint16_t());
    if (bytes == 4)
      return of(uint32_t());
    return of(uint64_t());
  }
};

/// Which boxes of a constant matrix hold something that is not zero. It is read once.
class NonZeros {
public:
  explicit NonZeros(const ConstantMatrix &matrix);
  /// Of a constant of one matrix; nullopt of others, and of those that look as if they had few zeros.
  static std::optional<NonZeros> of(mlir::Value constant);

  /// True may also be said of a box whose cells hold something beside it.
  bool any(dmir::Run rows, dmir::Run columns) const;
  /// The granules of rows of which some columns hold something, as ascending runs that are apart.
  llvm::SmallVector<dmir::Run> rowRuns(dmir::Run columns, int64_t granule) const;
  int64_t rows() const { return k; }
  int64_t columns() const { return n; }
  bool operator==(const NonZeros &) const = default;

private:
  static constexpr int64_t kTall = 4, kWide = 8; ///< of a cell
  int64_t cellColumns() const { return (n + kWide - 1) / kWide; }

  int64_t k, n;
  std::vector<int32_t> before; ///< cells that hold something above and left of each corner of cells
};

/// Parts of an axis, ascending and apart.
using RunList = llvm::SmallVector<dmir::Run, 2>;
/// All that they have together.
int64_t lengthOf(llvm::ArrayRef<dmir::Run> runs);
/// The first that does not come behind the one before it, or ends behind `most`; null where there is none.
const dmir::Run *firstOutOfOrder(llvm::ArrayRef<dmir::Run> runs, int64_t most);
/// Of each list from, to, from, to, .., in an attribute of a form, with all numbers times `unit`.
mlir::ArrayAttr writeRuns(mlir::MLIRContext *context, llvm::ArrayRef<RunList> lists, int64_t unit = 1);
/// As they are written, in whatever order; nullopt where they are something else.
std::optional<std::vector<RunList>> readRuns(mlir::ArrayAttr lists);

/// Whether kernels of an op's module leave out what is known to make no difference, as --sparsity says; `exact`: that
/// gives the same for infinities and NaN, too.
bool mayLeaveOut(mlir::Operation *op, bool exact);
/// What is known of a product and not among what its kernel leaves out, in the words of strategy::kSkips: "left",
/// "right" or "result"; "" where nothing is.
llvm::StringRef unusedFact(dmir::MatMulOp product, llvm::ArrayRef<llvm::StringRef> skips);

} // namespace dmxc::kernels
