//===- SparseWeights.h - constant matrices of which what is zero is left out -*- C++ -*-===//
//
// A constant right operand in the form "runs" has no blocks that are zero: four k times the columns of a group, which a
// register tile, or some of them, fill. Of each group it has a list of runs of k and the rows of these, one after the
// other. Which they are follows from the constant; the form in a strategy's text says how many.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/common/roots/ConstantMatrix.h"

#include "dmxc/Support/Result.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace dmxc::cpu {

using kernels::ConstantMatrix;

/// How much of a matrix is kept. Packed, in i32: for each group of columns, and for one more behind the last, the
/// number of its first entry and of its first row; the entries, of each group its runs and one more whose k is beyond
/// all. At a multiple of 64 bytes the groups' rows, in panels of 16 columns as panel16 has them.
struct WeightRuns {
  static constexpr int64_t kBlock = 4; ///< k of a block, which begins at a multiple of it
  static constexpr int64_t kEntry = 3; ///< i32 of an entry: its first k, the one behind its last, its row in the group
  static constexpr int32_t kBeyond = 1 << 30; ///< the k of a group's last entry

  int64_t columns = 32;       ///< of a group, zeros beyond n
  int64_t runs = 0, rows = 0; ///< of all groups

  int64_t groups(int64_t n) const { return (n + columns - 1) / columns; }
  /// Where the entries begin, in i32, and the rows, in bytes.
  int64_t entriesAt(int64_t n) const { return 2 * (groups(n) + 1); }
  int64_t rowsAt(int64_t n) const { return (entriesAt(n) + kEntry * (runs + groups(n)) + 15) / 16 * 64; }
  int64_t bytes(int64_t n, int64_t elementBytes) const { return rowsAt(n) + rows * columns * elementBytes; }
  /// Elements of a k x n matrix that are not kept.
  int64_t leftOut(int64_t k, int64_t n) const { return std::max<int64_t>(0, k * n - rows * columns); }
  /// Whether leaving out the rest takes less time than looking at the runs.
  bool pay(int64_t k, int64_t n) const;
};

/// Nothing where no block is zero, or the numbers of the form would not hold what is kept. With `quickly` matrices of
/// which some elements have no zeros are not looked through.
std::optional<WeightRuns> findRuns(const ConstantMatrix &matrix, int64_t columns, bool quickly);
/// Fails where the constant has others than `runs` says.
Status packRuns(const WeightRuns &runs, const ConstantMatrix &matrix, std::span<std::byte> out);

/// The form's name and what it says of the runs; nothing where its text lacks that.
inline constexpr llvm::StringLiteral kRunsForm = "runs";
std::optional<WeightRuns> runsOfForm(mlir::DictionaryAttr form);
void writeRuns(const WeightRuns &runs, mlir::NamedAttrList &form, mlir::MLIRContext *context);

} // namespace dmxc::cpu
