//===- Place.h - a product on the tiles of an array -------------*- C++ -*-===//
//
// c = a * b, by rows x columns cores: a memory tile has the rows of a that some rows of cores need and sends them along
// those, memory tile c has the columns of b and sends them down its column, results join in the memory tile of their
// column. All of that is one configuration a number type and tiling; only the shims' tasks and words of the cores'
// memories change from product to product.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Mapping.h"

namespace dmxc::aie {

/// The program, for grids of shims, memory tiles and cores, of a product that `refuses` accepts.
dlir::DeviceProgramOp writeProgram(mlir::OpBuilder &builder, mlir::Location where, const hw::Machine &machine,
                                   llvm::StringRef name, const Mapping &mapping);
/// The device that takes a program's place: tiles, buffers, locks, flows, DMA programs, cores, the runtime sequence.
/// Errors are diagnostics at the op; the program stays then.
mlir::FailureOr<DeviceOp> place(dlir::DeviceProgramOp program);

} // namespace dmxc::aie
