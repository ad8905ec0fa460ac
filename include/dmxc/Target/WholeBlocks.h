//===- WholeBlocks.h - groups of a convolution as blocks --------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc {

/// Whether the channels of each group of a dmir.conv, in and out, are blocks of 16 as layouts have them; of one group
/// the last block may have fewer. Its weights' shape is static.
inline bool hasWholeBlocks(dmir::ConvOp conv) {
  constexpr int64_t block = 16;
  auto weights = mlir::cast<mlir::RankedTensorType>(conv.getWeights().getType());
  const int64_t groups = conv.getGroups(), outputs = weights.getDimSize(0) / groups;
  return groups == 1 || (weights.getDimSize(1) % block == 0 && outputs % block == 0);
}

} // namespace dmxc
