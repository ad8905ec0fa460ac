//===- Lower.h - from flows and tasks to register words ---------*- C++ -*-===//
//
// The stages of an aie.device, in order; the text between any two can be read back. Errors are diagnostics at the op.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/aie/dialect/Aie.h"

namespace dmxc::aie {

/// Flows become circuits of switchboxes, and shims' multiplexers. A device without flows stays.
mlir::LogicalResult routeFlows(DeviceOp device);
/// DMA tasks, parameters, locks and waits of the runtime sequence become ops of the control stream.
mlir::LogicalResult lowerControl(DeviceOp device);
/// The program of a core; its checks are hw::check's.
mlir::FailureOr<hw::CoreProgram> coreProgramOf(CoreOp core);
/// Adds the kernel to an image, and what configures it where no kernel before has the same. Both stages before are
/// done.
mlir::LogicalResult encode(DeviceOp device, hw::Image &image);
/// Adds the user's function that a device calls, and the object that it is in, where they are not there; its number.
mlir::FailureOr<uint32_t> addFunction(DeviceOp device, hw::Image &image);

} // namespace dmxc::aie
