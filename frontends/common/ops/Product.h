//===- Product.h - matrix products ------------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// numpy.matmul: operands of rank 1 are taken as a row and a column.
Val numpyMatMul(Emitter &e, Val a, Val b);
/// Rows [m, k], of which those up to ends[g] (integers) that no group before has are multiplied by weights[g], [k, n];
/// the rows behind the last end are 0.
Val groupedProduct(Emitter &e, const Val &rows, const Val &weights, const Val &ends);

} // namespace dmxc::frontend
