//===- LinearAlgebra.h - systems of equations, functions of matrices -*- C++ -*-===//
//
// Matrices are the last two axes of a tensor of floats; the axes before them are a batch, whose matrices are treated
// alike. A system that has no solution gives infinities and NaN: nothing can fail in the middle of a run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../../Emitter.h"

namespace dmxc::frontend {

/// How many rows square matrices have; fails unless x are some.
Dim requireSquare(const Val &x);
/// The same matrices, whose sides a run checks where they are not known to be equal.
Val squareMatrices(Emitter &e, const Val &x);
/// The axes before the matrices.
Dims batchOf(const Val &x);
/// `batch` with the axes of matrices behind it.
Dims matrixDims(Dims batch, Dim rows, Dim columns);
/// The matrices with the batch that both have when broadcast.
std::pair<Val, Val> broadcastBatches(Emitter &e, const Val &a, const Val &b);
/// Numbers of rows as a column, and of columns as a line: what picks elements when compared.
Val rowNumbers(Emitter &e, Dim rows);
Val columnNumbers(Emitter &e, Dim columns);
/// [rows, columns] with ones on the diagonal.
Val identityMatrix(Emitter &e, DType type, Dim rows, Dim columns);
/// x with zeros above its diagonal, and below it.
Val lowerTriangle(Emitter &e, const Val &x);
Val upperTriangle(Emitter &e, const Val &x);
/// [.., min(rows, columns)].
Val diagonalOf(Emitter &e, const Val &x);
/// The place `k` (an i64 scalar) of an axis, which stays as 1.
Val elementAt(Emitter &e, const Val &x, int64_t axis, const Val &k);

/// Gives the next carried values, which keep their dims.
using Step = llvm::function_ref<std::vector<Val>(const Val &k, llvm::ArrayRef<Val> carried)>;
/// Step after step for k = 0 .. count - 1.
std::vector<Val> repeat(Emitter &e, Dim count, const std::vector<Val> &carried, Step step);

/// Matrices [.., m, n] as P L U by elimination with partial pivoting, packed as LAPACK's getrf does.
struct LuFactors {
  Val packed;
  Val pivots; ///< i32[.., min(m, n)]: the row, counted from 1, that was swapped with row i
  Val info;   ///< i32[..]: 0, or which diagonal element of U, counted from 1, is the first that is 0
};
LuFactors luFactors(Emitter &e, const Val &x);
/// The permutation of `rows` that the swaps make, row i of the permuted matrix is row [.., i] of the given one.
Val permutationOf(Emitter &e, const Val &pivots, Dim rows);
/// P of such a permutation.
Val permutationMatrix(Emitter &e, DType type, const Val &permutation);
/// X of A X = B, or of A^T X = B, by A's factors.
Val solveByFactors(Emitter &e, const LuFactors &factors, const Val &b, bool transposed);

/// X of A X = B; info as that of luFactors.
struct Solution {
  Val x, info;
};
Solution solve(Emitter &e, const Val &a, const Val &b);
Solution inverse(Emitter &e, const Val &x);
/// X of A X = B for triangular A; what is on the other side of its diagonal is not read, nor is a diagonal of ones.
Val solveTriangular(Emitter &e, const Val &a, const Val &b, bool upper, bool ones = false);

/// [..]: the determinant's sign and the logarithm of its size, or the determinant.
struct LogDeterminant {
  Val sign, log;
};
LogDeterminant logDeterminant(Emitter &e, const LuFactors &factors);
Val determinant(Emitter &e, const LuFactors &factors);

/// L of x = L L^T, of whose elements those above the diagonal are not read; info: which leading minor, counted from 1,
/// is the first that is not positive.
Solution cholesky(Emitter &e, const Val &x);

/// x * x * .. ; of a negative n the inverse's power.
Val matrixPower(Emitter &e, Val x, int64_t n);
Val matrixExponential(Emitter &e, const Val &x);

} // namespace dmxc::frontend
