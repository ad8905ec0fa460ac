//===- KernelHarness.h - compile, link, load and call kernels ---*- C++ -*-===//
//
// What every test of an emitter does: build a kernel, take it through the real
// lowering and link, load the shared object with dlopen and call it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelBuilder.h"
#include "Link.h"

#include "dmx/dmx_kernel.h"

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

  /// Calls with the whole range [begin, end), 64-byte aligned scratch and the
  /// given dims.
  int32_t operator()(std::vector<void *> buffers, int64_t begin, int64_t end, int64_t scratchBytes = 0,
                     std::vector<int64_t> dims = {}) const;
};

using Emit = std::function<void(KernelBuilder &)>;

/// Emits `name` with `emit` (which must not call finish) and loads it.
/// DMXC_KERNEL_TEMPS in the environment names a folder for the .mlir, .ll and
/// .s.
TestKernel makeKernel(const std::string &name, const IsaLevel &isa, unsigned numBuffers, unsigned numDims,
                      const Emit &emit, llvm::ArrayRef<bool> noalias = {});

/// The levels this machine can run, of v2, v3, v4.
std::vector<IsaLevel> runnableLevels();

} // namespace dmxc::cpu::test
