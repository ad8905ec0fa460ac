//===- Decompositions.h - orthogonal factors of matrices --------*- C++ -*-===//
//
// Of matrices in the last two axes, as in LinearAlgebra.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../../Emitter.h"

namespace dmxc::frontend {

/// Householder's reflections that turn x, [.., m, n], into R, packed as LAPACK's geqrf does: R, below its diagonal the
/// vectors without their leading 1; [.., min(m, n)] factors.
struct Reflections {
  Val packed, factors;
};
Reflections reflectionsOf(Emitter &e, const Val &x);
/// The first `columns` columns of the reflections' product, [.., m, columns].
Val productOf(Emitter &e, const Reflections &reflections, Dim columns);

/// The most rows of symmetric matrices, and rows or columns of those with singular values: sweeps over all pairs of
/// rows are a loop, as long as they still change something.
inline constexpr int64_t kMostSweptRows = 256;

/// Eigenvalues [.., n] in ascending order, and vectors, the columns of [.., n, n]. Of x, [.., n, n], only the lower or
/// only the upper triangle is read.
struct Eigen {
  Val values, vectors;
};
Eigen symmetricEigen(Emitter &e, const Val &x, bool upper);

/// x = U S V^T with k = min(m, n) singular values in descending order.
struct SingularValues {
  Val values; ///< [.., k]
  Val scaled,
      right;   ///< rows [.., k, max(m, n)], [.., k, k]: of x, or of its transpose where that is higher, u * s and v
  bool turned; ///< whether it is the transpose
};
SingularValues singularValues(Emitter &e, const Val &x);
struct SingularVectors {
  Val u, values, vt;
};
/// U is [.., m, k] and V^T [.., k, n], or both square with `full`.
SingularVectors singularVectors(Emitter &e, const Val &x, bool full);

} // namespace dmxc::frontend
