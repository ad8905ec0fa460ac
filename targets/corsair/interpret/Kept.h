//===- Kept.h - products that leave out zeros of weights --------*- C++ -*-===//
#pragma once

#include "Arrays.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::corsair::stages {

/// What a product of one part is by its `lldmir.kept` or `lldmir.blocks`: of that part only these blocks of 64 along K,
/// in this order, in each round of a quad's columns.
Status multiplyKept(dmir::MatMulOp op, const Sums &whole, const View &out);

} // namespace dmxc::corsair::stages
