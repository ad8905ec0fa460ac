//===- KernelFunctions.h - functions made of kernels ------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"

namespace dmxc {

/// Of a function that was a kernel: the size of its team.
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

} // namespace dmxc
