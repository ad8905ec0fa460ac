//===- KeptSteps.h - weights without steps of zeros -------------*- C++ -*-===//
//
// A constant right operand of which columns of tiles have steps of 64 terms that are zero is packed without these: of
// each column of tiles the steps that it keeps, in each its columns with their terms side by side; behind them words
// that say which they are.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/common/roots/ConstantMatrix.h"

#include "dmxc/Support/Result.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <span>

namespace dmxc::cuda {

struct KeptSteps {
  static constexpr llvm::StringLiteral kForm = "steps16";

  int64_t columns = 0;                 ///< of a tile
  std::vector<kernels::RunList> tiles; ///< of each column of tiles the steps, in runs

  /// Those that hold something.
  KeptSteps(const kernels::NonZeros &matrix, int64_t columns);
  /// What a form's text says of a matrix of so many terms and columns; an error where it is none of that.
  static Result<KeptSteps> of(mlir::DictionaryAttr form, int64_t k, int64_t n);
  void write(mlir::NamedAttrList &form, mlir::MLIRContext *context) const;

  /// Of all columns of tiles.
  int64_t steps() const;
  /// Of a column of tiles.
  int64_t stepsOf(int64_t tile) const;
  /// Whether each column of tiles has one run at most, so that its first step says which the others are.
  bool areTogether() const;
  /// Whether a tenth of all that `k` terms have is left out.
  bool pay(int64_t k) const;
  /// Elements of a matrix of so many terms and columns that steps hold.
  int64_t elements(int64_t k, int64_t n) const;
  /// What is packed has the columns of one step at least.
  int64_t rows() const { return std::max<int64_t>(1, steps()) * columns; }
  /// Where the words begin, in bytes, and bytes of all.
  int64_t wordsAt() const;
  int64_t bytes() const;
  /// Words of a column of tiles: its first packed step, the one behind its last, and which of all the first is. Behind
  /// them, which each packed step is.
  static constexpr int64_t kTileWords = 3;
  int64_t entriesAt() const { return kTileWords * static_cast<int64_t>(tiles.size()); }

  /// Packs a matrix. An error where a step holds something that is not kept.
  Status pack(const kernels::ConstantMatrix &matrix, std::span<std::byte> out) const;

private:
  KeptSteps() = default;
};

} // namespace dmxc::cuda
