//===- KernelTask.h - the task that a test runs -----------------*- C++ -*-===//
#pragma once

#include "runtime/devices/cpu/GuardedTask.h"

#include "dmx/dmx_kernel.h"
#include "dmxc/Support/Tensor.h"

#include <cstdint>
#include <vector>

namespace dmxc::kernels::test {

/// The bytes of an operand, no more.
struct Operand {
  Operand(void *data, uint64_t bytes) : data(data), bytes(bytes) {}
  template <typename T> Operand(std::vector<T> &values) : Operand(values.data(), values.size() * sizeof(T)) {}
  Operand(Tensor &tensor) : Operand(tensor.mutableData(), tensor.byteSize()) {}
  void *data;
  uint64_t bytes;
};

/// A kernel's task over `operands`, of which it writes the last `results`. The parts keep what others wrote.
struct KernelTask {
  KernelTask(dmx_kernel_fn fn, const std::vector<Operand> &operands, uint32_t results, uint64_t scratchBytes,
             std::vector<int64_t> dims = {});
  KernelTask(const KernelTask &) = delete;
  dmxrt::DeviceTask task;

private:
  std::vector<void *> buffers;
  std::vector<uint64_t> bytes;
  std::vector<int64_t> dims;
};

} // namespace dmxc::kernels::test
