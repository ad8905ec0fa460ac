//===- AttentionKeys.h - the keys that a block of rows looks at -*- C++ -*-===//
#pragma once

#include "targets/common/element/ElementExpr.h"
#include "targets/cpu/code/CpuBuilder.h"

#include "dmxc/Dialect/DMIR/masks/Columns.h"
#include "dmxc/Dialect/DMIR/masks/Tiles.h"

namespace dmxc::cpu {

/// Keys [first, last) of a block of rows, of which [firstFull, lastFull) are kept by all rows. Ends are multiples of a
/// tile's columns or the number of keys; the first one is a multiple of its pass, so that sums over keys are cut at the
/// same places whatever is left out.
struct AttentionKeys {
  mlir::Value first, last, firstFull, lastFull;
};
constexpr int64_t kKeyTile = 64, kKeyPass = 256; ///< where whole rows are at hand

/// The keys that some rows keep, as a rule says, the mask's if there is one, or a case of it; ends may lie outside of
/// those that there are.
dmir::ColumnRange<mlir::Value> rangeOf(CpuBuilder &b, kernels::ElementExpr &e, dmir::MaskOp mask,
                                       const dmir::Rule &rule, llvm::ArrayRef<kernels::Index> batch, mlir::Value row,
                                       mlir::Value rows, mlir::Value keys);
/// Rows [row, row + rows) of a matrix; `batch` are the mask's indices before them. With `all`, nothing is left out.
AttentionKeys keysOf(CpuBuilder &b, kernels::ElementExpr &e, dmir::MaskOp mask, llvm::ArrayRef<kernels::Index> batch,
                     mlir::Value row, mlir::Value rows, dmir::TileSize tile, bool all);
/// Whether the heads of a group, neighbours on the last batch axis, keep the same keys.
bool isOneForHeads(dmir::MaskOp mask);
/// The most keys that a block of some rows looks at, for nominal sizes.
int64_t widestKeys(mlir::Block *block, dmir::MaskOp mask);

/// Whether the region's text, or the module of one that has no strategy yet, says that nothing is to be left out.
bool looksAtAllKeys(mlir::Block *block);

} // namespace dmxc::cpu
