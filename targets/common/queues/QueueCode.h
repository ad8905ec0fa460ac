//===- QueueCode.h - DLIR's programs as programs of queues ------*- C++ -*-===//
//
// For a target whose machine has no instruction set of its own (schemas/queues): all of `emit` but the engines' tasks,
// which are the target's ops.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Support/Result.h"

#include "schemas/queues/Program.h"

namespace dmxc {

/// The machine's memories as DLIR's table; the target says which moves there are.
dlir::DeviceModel queueModel(const dmx::queues::Machine &machine);

/// The code of kernels that are programs. An error names the op and what programs of queues do not have.
Result<std::vector<char>> encodeQueues(llvm::ArrayRef<mlir::Operation *> kernels, const dmx::queues::Machine &machine);

} // namespace dmxc
