//===- KernelTask.cpp - the task that a test runs -----------------------------===//

#include "KernelTask.h"

using namespace dmxc::kernels::test;

KernelTask::KernelTask(dmx_kernel_fn fn, const std::vector<Operand> &operands, uint32_t results, uint64_t scratchBytes,
                       std::vector<int64_t> dimValues)
    : dims(std::move(dimValues)) {
  for (const Operand &operand : operands) {
    buffers.push_back(operand.data);
    bytes.push_back(operand.bytes);
  }
  task.kernel = reinterpret_cast<const void *>(fn);
  task.buffers = buffers.data();
  task.bufferBytes = bytes;
  task.dims = dims.data();
  task.dimCount = static_cast<uint32_t>(dims.size());
  task.scratch = scratchBytes;
  task.written = results;
  task.updates = true;
}
