//===- Product.h - matrix products ------------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// numpy.matmul: operands of rank 1 are taken as a row and a column.
Val numpyMatMul(Emitter &e, Val a, Val b);

} // namespace dmxc::frontend
