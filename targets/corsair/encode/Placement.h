//===- Placement.h - addresses of a program's buffers -----------*- C++ -*-===//
#pragma once

#include "schemas/corsair/Image.h"

#include "targets/corsair/dialect/Corsair/Corsair.h"

#include "llvm/ADT/DenseMap.h"

namespace dmxc::corsair {

namespace hw = dmx::corsair;

/// Byte address of each dlir.memory.
using Addresses = llvm::DenseMap<mlir::Value, int64_t>;
/// Bytes in use of each memory, in every unit of it.
using MemoryUse = std::array<int64_t, hw::kMemories>;

/// The permanent buffers of all programs of an image, side by side; `used` grows by them.
mlir::LogicalResult placePermanent(llvm::ArrayRef<dlir::DeviceProgramOp> programs, const hw::Machine &machine,
                                   Addresses &addresses, MemoryUse &used);

/// The temporary buffers of one program, behind the permanent ones. Those that only one queue touches, at different
/// times, share room; the others are taken to live as long as their graph runs. Gives what is in use with them.
mlir::FailureOr<MemoryUse> placeTemporaries(dlir::DeviceProgramOp program, const hw::Machine &machine,
                                            const MemoryUse &used, Addresses &addresses);

} // namespace dmxc::corsair
