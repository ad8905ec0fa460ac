//===- Sparsity.h - what is known of tensors, and demanded ------*- C++ -*-===//
//
// Facts that `dmir-propagate-sparsity` found, as ops have them in the attribute `dmir.sparsity`: what elements of a
// result are outside of a rule, and which of them outputs depend on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <optional>
#include <utility>

namespace dmxc::dmir {

/// Each element whose index the rule does not keep is `value`, a zero of either sign; without cases all are.
struct Known {
  Rule keep;
  double value = 0;
};

/// Whatever elements are that the rule does not keep, no output changes.
struct Demand {
  Rule keep;
};

/// What the text says of a value: on its op, or of the operand that a region's or a kernel's argument is. Nothing for
/// what nothing is said of.
std::optional<Known> knownOf(mlir::Value value);
std::optional<Demand> demandOf(mlir::Value value);

/// A value on the outer side of all regions' edges that it is handed over, or on the inner one where a region gives it.
mlir::Value acrossRegions(mlir::Value value);

/// The numbers that the symbols of a rule stand for; nothing where one is open.
std::optional<llvm::SmallVector<int64_t>> symbolsOf(const Rule &rule);

/// Whether no element of a box is kept. `false` may also be said where that is not seen.
bool keepsNothing(const Rule &rule, llvm::ArrayRef<Interval> box, llvm::ArrayRef<int64_t> symbols);

/// [first, second): no element outside of it is kept. Equal where nothing is.
using Run = std::pair<int64_t, int64_t>;

/// The columns that a block of rows keeps, as of k for rows of a left operand. `rows` has bounds of all indices but the
/// last, each inclusive.
Run keptColumns(const Rule &rule, llvm::ArrayRef<Interval> rows, int64_t columns, llvm::ArrayRef<int64_t> symbols);
/// The rows that a block of columns keeps, as of k for columns of a right operand. `outer` has bounds of all indices
/// but the last two.
Run keptRows(const Rule &rule, llvm::ArrayRef<Interval> outer, Interval columns, int64_t rows,
             llvm::ArrayRef<int64_t> symbols);
/// The same as ascending runs of whole granules that are apart, so that what lies between blocks is left out.
llvm::SmallVector<Run> keptColumnRuns(const Rule &rule, llvm::ArrayRef<Interval> rows, int64_t columns, int64_t granule,
                                      llvm::ArrayRef<int64_t> symbols);
llvm::SmallVector<Run> keptRowRuns(const Rule &rule, llvm::ArrayRef<Interval> outer, Interval columns, int64_t rows,
                                   int64_t granule, llvm::ArrayRef<int64_t> symbols);

/// The rule of the tensor with its last two axes exchanged.
Rule transposed(const Rule &rule);

/// What `dmir.sparsity` is on ops: a dictionary of facts of the result, and on regions and kernels a list with a fact
/// of each operand that something is known of, unit for others:
///     {known = {keep = [affine_set<(i, j) : (i - j >= 0)>], value = 0.0 : f32}, demanded = {keep = [...]}}
/// C1: `keep` are at most 16 sets of at most 16 conditions, over as many dims as the tensor has axes and as many
/// symbols as there are `dims = #dmir.dims<...>`. C2 and C3 are those of dmir.mask. C4: `value` has the element type.
inline constexpr llvm::StringLiteral kKnownKey = "known", kDemandedKey = "demanded", kOperandsKey = "operands";

/// Of a strategy, a text: why the kernel does not use what is known of a product and not in its `skips`.
inline constexpr llvm::StringLiteral kFactsKey = "facts";

/// Says on a kernel that a region becomes what is known of the region's operands, if something is.
void keepFactsOfOperands(RegionOp region, mlir::Operation *kernel);

/// Whether the facts that an op has are about its result or its operands, and of their ranks and element types; fails
/// after an error was emitted.
llvm::LogicalResult checkSparsity(mlir::Operation *op);

/// What the bytes of a constant say: zeros outside of a triangle, a band, blocks along the diagonal, or of runs of rows
/// and columns. Constants of fewer than `least` elements are not looked at, and those of which some thousand elements
/// hold few zeros. Zeros that no rule says, as those of scattered blocks, are not in it.
std::optional<Known> knownOfConstant(mlir::Value constant, int64_t least);

mlir::DictionaryAttr attrOf(const Known &known, mlir::Type element);
mlir::DictionaryAttr attrOf(const Demand &demand, mlir::MLIRContext *context);

} // namespace dmxc::dmir
