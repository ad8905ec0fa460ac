//===- GemmTile.h - register tiles of products ------------------*- C++ -*-===//
//
// The inner step that matrix multiplication and convolution share: a tile of
// accumulators kept in vector registers as loop-carried values.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/code/CpuBuilder.h"

#include <algorithm>

namespace dmxc::cpu {

/// Rounded-up quotient of compile-time sizes.
inline int64_t ceilDivInt(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// rows x vectors accumulators of `lanes` elements, row-major in every list of
/// values, once for each chain.
struct RegisterTile {
  int64_t rows, vectors, lanes;
  mlir::Type acc;
  bool fours = false; ///< operands are fours: see dotFours
  /// Partial sums of an element, which take turns: they wait for one another less, and each rounds fewer times.
  int64_t chains = 1;
  int64_t lastLanes = 0; ///< of the last vector, when it has fewer than the others
  bool dots = false;     ///< operands are pairs: see dotPairs

  int64_t lanesOf(int64_t vector) const { return lastLanes && vector + 1 == vectors ? lastLanes : lanes; }
  int64_t size() const { return chains * sums(); }
  int64_t sums() const { return rows * vectors; }
};

/// How the elements of one operand become accumulator elements.
struct ElementConversion {
  mlir::Type from, to;
  bool isUnsigned = false;
};

/// Converts a scalar or a vector; widening, or between equal types.
mlir::Value convertElements(CpuBuilder &b, const ElementConversion &conversion, mlir::Value value);

/// f32 rounded to bf16, to nearest, ties to even; as f32.
mlir::Value roundToBf16(CpuBuilder &b, mlir::Value value);

/// The same as bf16, which has 16 bits. By an instruction that makes zeros of subnormal numbers where the level has it.
mlir::Value bf16Of(CpuBuilder &b, mlir::Value value);

/// Two vectors of f32 as bf16, one behind the other, in the bits of one vector of f32. For levels with pairs.
mlir::Value joinAsBf16(CpuBuilder &b, mlir::Value first, mlir::Value second);

/// The first or the second of the two bf16 in each i32, as f32.
mlir::Value halfOfPairs(CpuBuilder &b, mlir::Value pairs, int64_t half);

llvm::SmallVector<mlir::Value> zeroTile(CpuBuilder &b, const RegisterTile &tile);

/// Chains of a tile of floats that leaves registers free: 1, 2 or 4.
int64_t chainsThatFit(const IsaLevel &isa, const RegisterTile &tile);
/// A tile's first chain begins with `sums` (none: zeros), the others with zeros; and all of them together.
llvm::SmallVector<mlir::Value> beginChains(CpuBuilder &b, const RegisterTile &tile, mlir::ValueRange sums);
llvm::SmallVector<mlir::Value> sumChains(CpuBuilder &b, const RegisterTile &tile, mlir::ValueRange acc);

/// acc[r][v] += left(r) * right[v] in one chain, where left gives a scalar of the
/// accumulator type.
void accumulateTile(CpuBuilder &b, const RegisterTile &tile, llvm::MutableArrayRef<mlir::Value> acc,
                    llvm::function_ref<mlir::Value(int64_t row)> left, llvm::ArrayRef<mlir::Value> right,
                    int64_t chain = 0);

/// Rounding errors of a sum grow with the terms that a lane sums one after the other, so long products of floats are
/// summed in stretches: steps of a loop, a multiple of `multiple`, that have about `terms` terms. A stretch costs as
/// much as half a term where totals stay in registers, else as two to four; convolutions follow one another more often
/// than other products do, which adds up their errors. Products of few rows wait for their weights: stretches cost them
/// nothing.
inline int64_t convStretch(int64_t terms) { return terms < 512 ? 32 : 64; } ///< of sums of so many terms
inline int64_t productStretch(int64_t terms, bool fewRows) {
  return fewRows ? 32 : terms >= 0 && terms < 512 ? 64 : 128; // negative: unknown
}
inline int64_t stepsOfStretch(int64_t terms, int64_t termsPerStep, int64_t multiple = 1) {
  return std::max<int64_t>(1, terms / (termsPerStep * multiple)) * multiple;
}

/// Whether registers hold the sums of a stretch and those of the stretches before it, beside the operands.
bool totalsFit(const IsaLevel &isa, const RegisterTile &tile);

/// init plus what body(i, sums) adds for i = low, low + step, .. below high; `stretch`: a multiple of `step`.
llvm::SmallVector<mlir::Value>
sumInStretches(CpuBuilder &b, const RegisterTile &tile, mlir::Value low, mlir::Value high, int64_t step,
               int64_t stretch, mlir::ValueRange init,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value index, mlir::ValueRange sums)> body);
/// The same where range(from, to, sums) gives `sums` plus what there is from `from` to `to`. It is asked in order.
llvm::SmallVector<mlir::Value> sumInStretches(
    CpuBuilder &b, const RegisterTile &tile, mlir::Value low, mlir::Value high, int64_t stretch, mlir::ValueRange init,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value from, mlir::Value to, mlir::ValueRange sums)> range);

/// Cuts `count` rows in tiles of `rows` (`left` is null) and one for the `left` rows that rest: the smallest that holds
/// them among `sizes` (ascending) and rows - 1.
void cutInTiles(CpuBuilder &b, mlir::Value count, int64_t rows, llvm::ArrayRef<int64_t> sizes,
                llvm::function_ref<void(int64_t rows, mlir::Value at, mlir::Value left)> body);

/// a*b+c for floats and integers.
mlir::Value multiplyAdd(CpuBuilder &b, mlir::Value x, mlir::Value y, mlir::Value sum);

/// sum + the product of each four u8 of x with the four s8 of y: all vectors of i32. Exact (wraps) at every level.
mlir::Value dotFours(CpuBuilder &b, mlir::Value x, mlir::Value y, mlir::Value sum);

/// The even or the odd bytes of each four, i32, as pairs of i16.
mlir::Value bytePairs(CpuBuilder &b, mlir::Value fours, bool odd, bool isSigned);
/// sum + the products of each two i16 of x with the two of y: all vectors of i32. Exact (wraps) at every level.
mlir::Value dotWords(CpuBuilder &b, mlir::Value x, mlir::Value y, mlir::Value sum);

/// sum + the products of each two bf16 of x, whose elements are called f32, with the two bf16 of y, i32: vectors of
/// f32. By an instruction that takes and makes subnormal numbers as zeros. For levels that have it.
mlir::Value dotPairs(CpuBuilder &b, mlir::Value x, mlir::Value y, mlir::Value sum);

/// The same as floats, for all levels: first the products of the low halves, then those of the high ones.
mlir::Value multiplyPairs(CpuBuilder &b, mlir::Value x, mlir::Value y, mlir::Value sum);

/// Most rows and vectors whose accumulators, operands and temporaries fit in
/// the registers.
struct TileShape {
  int64_t rows, vectors;
};
TileShape largestTile(const IsaLevel &isa, mlir::Type acc, bool fours = false);
/// The same for a convolution's sums of `terms`. Those that are cut in stretches get half the rows where there are 32
/// registers, so that totals stay in registers: storing them costs more than reading the right operand twice as often.
TileShape largestConvTile(const IsaLevel &isa, mlir::Type acc, int64_t terms, bool fours = false);

} // namespace dmxc::cpu
