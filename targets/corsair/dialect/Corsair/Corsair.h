//===- Corsair.h - tasks of the device's engines ----------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"

#include "schemas/corsair/Machine.h"

#include "targets/corsair/dialect/Corsair/CorsairDialect.h.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/Corsair/CorsairOps.h.inc"

namespace dmxc::corsair {

/// The class of units that have queues, and what takes their tasks to the engines.
inline constexpr llvm::StringLiteral kUnit = "quad", kEngine = "dispatch";

/// Of a function that was a kernel, and of the program that becomes of it: multiply-adds of the model that several
/// quads do, each for every quad but the first, an i64 from 1 on; for reports.
inline constexpr llvm::StringLiteral kRepeatedMacs = "corsair.repeated_macs";

/// Where a task of a user's kernel comes from: the node, and the line of the author's file.
mlir::Location userLocation(mlir::Location node, llvm::StringRef file, unsigned line);
/// "argmax.dmxasm:12"; "" for what no user wrote.
std::string userPlace(mlir::Location location);

/// What programs for a machine may name.
dlir::DeviceModel deviceModel(const dmx::corsair::Machine &machine);
/// Registers the dialect, and with DLIR the machine.
void registerDevice(mlir::DialectRegistry &registry, const dmx::corsair::Machine &machine);

/// The memory that a buffer of a verified program lies in.
dmx::corsair::Memory memoryOf(mlir::Value buffer);
dmx::corsair::Memory memoryOf(dlir::MemoryOp memory);

} // namespace dmxc::corsair
