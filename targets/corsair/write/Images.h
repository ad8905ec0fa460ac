//===- Images.h - how convolutions go on from image to image ----*- C++ -*-===//
#pragma once

#include "Operands.h"

namespace dmxc::corsair {

/// One step of a convolution after the other: how many, and what they move on by.
struct ImageWalk {
  int64_t count, from, to, weights, bias;
};
/// Where a step takes its image from and puts its result.
struct ImageStep {
  Address from, to, weights, bias;
  ImageStep plusLoop(int depth, const ImageWalk &walk, int64_t times = 1) const {
    return {from.plusLoop(depth, times * walk.from), to.plusLoop(depth, times * walk.to),
            weights.plusLoop(depth, times * walk.weights), bias.plusLoop(depth, times * walk.bias)};
  }
  ImageStep plus(const ImageWalk &walk, int64_t times = 1) const {
    return {from.plus(times * walk.from), to.plus(times * walk.to), weights.plus(times * walk.weights),
            bias.plus(times * walk.bias)};
  }
};

/// All of a convolution's tiles, in the order of its plan.
inline TileOrder wholeOrder(const Spread &plan, const MatmulOperands &operands) {
  TileOrder order = TileOrder::whole(plan, operands.bias.buffer >= 0);
  order.terms.front().epilogue = operands.epilogues.empty() ? -1 : 0;
  return order;
}

} // namespace dmxc::corsair
