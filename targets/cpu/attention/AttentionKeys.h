//===- AttentionKeys.h - the keys that a block of rows looks at -*- C++ -*-===//
#pragma once

#include "KeyTests.h"

#include "dmxc/Dialect/DMIR/masks/Columns.h"
#include "dmxc/Dialect/DMIR/masks/Tiles.h"

namespace dmxc::cpu {

/// Keys [first, last) of a block of rows, of which [firstFull, lastFull) are kept by all rows. Ends are multiples of a
/// tile's columns or the number of keys; the first one is a multiple of its pass, so that sums over keys are cut at the
/// same places whatever is left out.
struct AttentionKeys {
  mlir::Value first, last, firstFull, lastFull;
  mlir::Value again; ///< i1: no tile of these is asked about any more; null: it is the first time
};
constexpr int64_t kKeyTile = 64, kKeyPass = 256; ///< where whole rows are at hand

/// Those of the rows that `tests` are about. `asks`: of these all from the first tile to the last that is kept some of
/// in a run, for values that differ along keys.
AttentionKeys keysOf(CpuBuilder &b, KeyTests &tests, dmir::MaskOp mask, dmir::TileSize tile, bool asks);
/// Whether the heads of a group, neighbours on the last batch axis, keep the same keys.
bool isOneForHeads(dmir::MaskOp mask);
/// The most keys that a block of some rows looks at, for nominal sizes.
int64_t widestKeys(mlir::Block *block, dmir::MaskOp mask);

/// How algorithms begin that look at all keys.
constexpr llvm::StringLiteral kLooksAtAll = "attention-all";
/// Whether the region's text, or the module of one that has no strategy yet, says that nothing is to be left out.
bool looksAtAllKeys(mlir::Block *block);

} // namespace dmxc::cpu
