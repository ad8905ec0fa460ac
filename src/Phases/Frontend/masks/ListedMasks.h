//===- ListedMasks.h - constant masks as lists of tiles ---------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

#include <optional>

namespace dmxc {

/// What a constant matrix keeps of scores, where that is no rule of few cases.
struct ListedMask {
  mlir::Value scores; ///< that it is about
  double fill = 0;
  bool adds = false;    ///< the fill is added to scores, instead of replacing them
  bool isWhole = false; ///< tiles that are listed keep all: scores need nothing else
  llvm::SmallVector<int64_t, 2> tile;
  mlir::ArrayAttr lists;
};

/// The mask that an op before a softmax is, a sum with a constant or a select by one; nothing where it keeps nearly all
/// tiles, or is none.
std::optional<ListedMask> listTiles(mlir::Operation *op);

} // namespace dmxc
