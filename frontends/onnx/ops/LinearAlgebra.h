//===- LinearAlgebra.h - helpers around matrix products ---------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// numpy.matmul: operands of rank 1 are taken as a row and a column.
Val numpyMatMul(Emitter &e, Val a, Val b);

} // namespace dmxc::onnxfe
