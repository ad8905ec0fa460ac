//===- Lengths.h - tensors of which as many rows are there as runs have made -*- C++ -*-===//
//
// A state with a length has room for rows along an axis; a dim that the session keeps says how many of them are there.
// A cache of the caller is an input and an output of a run in one tensor of such room, and the caller knows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::dmir {

/// Function or program: array of [NAME, #dmir.dims<NEXT>], the dims that the session keeps: 0 at first, and after a run
/// what NEXT was in it.
inline constexpr llvm::StringLiteral kLengthsAttr = "dmir.lengths";
/// Function argument that is a state, or its buffer: [NAME, AXIS], the dim that says how many rows are there, and their
/// axis.
inline constexpr llvm::StringLiteral kLengthAttr = "dmir.length";
/// Function argument and result that are one cache of the caller: the cache's name.
inline constexpr llvm::StringLiteral kCacheAttr = "dmir.cache";
/// Beside it, and on the result's buffer: [ROOM, AXIS, #dmir.dims<ROWS>], the dim that says for how many rows along the
/// axis there is room, and how many the caller's tensor has; on a buffer also the number of the input.
inline constexpr llvm::StringLiteral kRoomAttr = "dmir.room";

/// The name of what an argument or a result shares its bytes with from run to run, a state or a cache; null for others.
inline mlir::StringAttr keptName(mlir::func::FuncOp function, bool isInput, unsigned index) {
  for (llvm::StringRef attr : {llvm::StringRef(kStateAttr), llvm::StringRef(kCacheAttr)})
    if (auto name = isInput ? function.getArgAttrOfType<mlir::StringAttr>(index, attr)
                            : function.getResultAttrOfType<mlir::StringAttr>(index, attr))
      return name;
  return {};
}

/// The dims of what a caller binds: of a cache the rows that are there.
inline llvm::SmallVector<Dim> callersDims(mlir::func::FuncOp function, bool isInput, unsigned index) {
  mlir::Type type = isInput ? function.getArgumentTypes()[index] : function.getResultTypes()[index];
  auto room = isInput ? function.getArgAttrOfType<mlir::ArrayAttr>(index, kRoomAttr)
                      : function.getResultAttrOfType<mlir::ArrayAttr>(index, kRoomAttr);
  llvm::SmallVector<Dim> dims = dimsOf(type);
  if (room)
    dims[static_cast<size_t>(mlir::cast<mlir::IntegerAttr>(room[1]).getInt())] = dimOfAttr(room[2]);
  return dims;
}

} // namespace dmxc::dmir
