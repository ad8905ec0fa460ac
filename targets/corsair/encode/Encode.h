//===- Encode.h - programs in DLIR to an image of the DMX ISA ---*- C++ -*-===//
//
// What a dlir.device_program leaves open is decided here: where buffers lie, which configuration slot holds what, which
// number a token has. Everything else is one instruction an op. Errors are reported on the op that is wrong.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/corsair/Image.h"

#include "targets/corsair/dialect/Corsair/Corsair.h"

namespace dmxc::corsair {

namespace hw = dmx::corsair;

struct EncodeOptions {
  /// Leave out a CONFIG whose keys a slot of the queue holds already.
  bool removeConfigs = true;
  /// Refuse programs whose queues do not wait for what they need (dlir::verifyOrder).
  bool verifyOrder = false;
};

/// The image of these programs, a kernel each; verified. Permanent buffers of all lie side by side.
mlir::FailureOr<hw::Image> encode(llvm::ArrayRef<dlir::DeviceProgramOp> programs, const hw::Machine &machine,
                                  const EncodeOptions &options = {});

} // namespace dmxc::corsair
