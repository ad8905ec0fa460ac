//===- ModelWork.h - what a model asks of the arrays ------------*- C++ -*-===//
//
// Multiply-adds of the model, for reports: without what fills up tiles, and counted once, however many quads do them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Distribution.h"

namespace dmxc::corsair {

/// Of all products of a graph that the arrays compute. Of scores that are computed band by band those alone that a mask
/// keeps, where kernels leave the others out; windows that reach into the padding of an image count whole.
int64_t multiplyAdds(mlir::Block *body, const Distribution &deal);
/// Of one, without tiles of weights that are left out.
int64_t multiplyAddsOf(dmir::MatMulOp product, const Distribution &deal);
/// Of them those that more than one quad does, each for every quad but the first.
int64_t repeatedMultiplyAdds(mlir::Block *body, const Distribution &deal);

} // namespace dmxc::corsair
