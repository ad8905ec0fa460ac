//===- LLDMIR.h - ops of the array on tiles ---------------------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "schemas/corsair/Machine.h"

#include <memory>
#include <optional>
#include <string>

#include "targets/corsair/dialect/LLDMIR/LLDMIRDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIRAttrs.h.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIROps.h.inc"

namespace dmxc::lldmir {

/// What is decided of an op of a region, under these names among its attributes. `deal` is a DealAttr, `plan` a
/// PlanAttr.
inline constexpr llvm::StringLiteral kDealAttr = "lldmir.deal", kPlanAttr = "lldmir.plan";
/// Functions that no DMIR op on whole buffers has the name of: lldmir.simd "copy", lldmir.reshape "gather" and
/// "scatter".
inline constexpr llvm::StringLiteral kCopy = "copy", kGatherRows = "gather", kScatterRows = "scatter";
/// Parameters of lldmir.simd "softmax" and "causal_mask": the largest and the least column less row that a mask keeps.
inline constexpr llvm::StringLiteral kUpper = "upper", kLower = "lower";
/// And how many rows there are in all quads of a team, of which each has two parts.
inline constexpr llvm::StringLiteral kFolded = "folded";
/// Array of i64: operands of which all parts are sent to all quads before the op.
inline constexpr llvm::StringLiteral kGatherAttr = "lldmir.gather";
/// Unit, of an addition: its vector lies in OB before the product's sums do.
inline constexpr llvm::StringLiteral kBiasAttr = "lldmir.bias";
/// Of a product by packed weights: of each round of a quad's columns the blocks of 64 along K that it takes, in this
/// order, an array of arrays of i64; the weights' other tiles are zero. Of a product of tiles: such an array.
inline constexpr llvm::StringLiteral kKeptAttr = "lldmir.kept", kBlocksAttr = "lldmir.blocks";
/// Unit, of a softmax: what makes its rows and what they weigh is computed with it, 64 rows after the others; of a
/// loop: that over such bands; of a function's argument or result: its rows cross band after band, with the loops that
/// read or fill them.
inline constexpr llvm::StringLiteral kBandsAttr = "lldmir.bands";

/// Of a function that was a kernel: the size of its team, i64; of a loop over the quads: unit.
inline constexpr llvm::StringLiteral kQuadsAttr = "lldmir.quads";
/// Of its arguments and results: the host's type; of packed constants: the form.
inline constexpr llvm::StringLiteral kTypeAttr = "lldmir.type", kFormAttr = "lldmir.form";
/// Of an argument that crosses as tiles: the rows that begin at a tile of their own.
inline constexpr llvm::StringLiteral kTilesAttr = "lldmir.tiles";
/// Of an argument: its dims in the order in which they lie in memory, where that is another than row by row.
inline constexpr llvm::StringLiteral kOrderAttr = "lldmir.order";
/// Of a loop over the matrices of a batch.
inline constexpr llvm::StringLiteral kBatchAttr = "lldmir.batch";
/// Of a packed constant that nothing but rows are read of: it stays in DDR.
inline constexpr llvm::StringLiteral kTableAttr = "lldmir.table";
/// Of an argument that stays on the device from run to run: the result that is its next value.
inline constexpr llvm::StringLiteral kStateAttr = "lldmir.state";

/// Why no slices and cores compute products of so many tiles spread so (null: as one tile by one slice): a clause;
/// nullopt if they do.
std::optional<std::string> unfit(const dmx::corsair::Machine &machine, int64_t numImc, int64_t pprMode,
                                 SpreadAttr spread);

/// The machine of the compile, as the dialect in this context knows it.
const dmx::corsair::Machine &machineOf(mlir::MLIRContext *context);
/// Gives the dialect a machine wherever it is loaded.
void registerMachine(mlir::DialectRegistry &registry, const dmx::corsair::Machine &machine);

} // namespace dmxc::lldmir
