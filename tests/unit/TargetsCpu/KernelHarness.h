//===- KernelHarness.h - compile, link, load and call kernels ---*- C++ -*-===//
//
// What every test of an emitter does: build a kernel, take it through the real
// lowering and link, load the shared object with dlopen and call it, with all it
// works on beside inaccessible pages (runtime/devices/cpu/GuardedTask.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/cpu/code/CpuBuilder.h"
#include "targets/cpu/code/Link.h"
#include "tests/unit/TargetsCommon/KernelTask.h"

#include "mlir/IR/MLIRContext.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace dmxc::cpu {
/// Test listings show the level's name instead of its bytes.
inline void PrintTo(const IsaLevel &isa, std::ostream *os) { *os << isa.name; }
} // namespace dmxc::cpu

namespace dmxc::cpu::test {

using namespace kernels::test;

/// A loaded kernels.so; unloaded with the object.
class LoadedKernels {
public:
  LoadedKernels() = default;
  explicit LoadedKernels(const std::vector<char> &so);
  ~LoadedKernels();
  LoadedKernels(LoadedKernels &&other) noexcept;
  LoadedKernels &operator=(LoadedKernels &&other) noexcept;

  const dmx_kernel_table *table(uint32_t version = DMX_KERNEL_ABI_VERSION) const;
  dmx_kernel_fn find(const std::string &name) const;
  const std::string &error() const { return message; }

private:
  void *handle = nullptr;
  dmx_query_kernels_fn query = nullptr;
  std::string message;
};

/// One kernel, compiled for a level and loaded; `fn` is null and `error` set
/// when that failed.
struct TestKernel {
  std::shared_ptr<LoadedKernels> library;
  dmx_kernel_fn fn = nullptr;
  std::string error;

  /// Calls for the range [begin, end), once with all operands beside a guard at their start, once at their end. The
  /// last operand is the result, unless `results` says that there are more. A step over a guard fails the test.
  int32_t operator()(const std::vector<Operand> &operands, int64_t begin, int64_t end, int64_t scratchBytes = 0,
                     std::vector<int64_t> dims = {}, uint32_t results = 1) const;
};

using Emit = std::function<void(CpuBuilder &)>;

/// Emits `name` with `emit` (which must not call finish) and loads it.
/// DMXC_KERNEL_TEMPS in the environment names a folder for the .mlir, .ll and
/// .s.
TestKernel makeKernel(const std::string &name, const IsaLevel &isa, unsigned numBuffers, unsigned numDims,
                      const Emit &emit, llvm::ArrayRef<bool> noalias = {});

/// The levels this machine can run, of v2, v3, v4.
std::vector<IsaLevel> runnableLevels();

} // namespace dmxc::cpu::test
