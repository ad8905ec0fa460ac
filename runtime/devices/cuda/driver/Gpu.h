//===- Gpu.h - a GPU that can run the kernels -------------------*- C++ -*-===//
#pragma once

#include "Driver.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace dmxrt::cuda {

/// Memory of a GPU, freed with the object.
class GpuMemory;

/// One GPU with the process's primary context on it, which sessions and other users of the driver share. Functions may
/// be called from any thread.
class Gpu : public std::enable_shared_from_this<Gpu> {
public:
  /// The one of this number, or the first of compute capability 9.0. An error says why there is none, for people,
  /// without a subject.
  static Result<std::shared_ptr<Gpu>> find(const Driver &driver, std::optional<uint64_t> number);
  ~Gpu();
  Gpu(const Gpu &) = delete;
  Gpu &operator=(const Gpu &) = delete;

  const Driver &driver() const { return library; }
  const DriverApi &api() const { return library.api; }
  const std::string &name() const { return called; }

  /// Makes the context the calling thread's while it lives.
  class Current {
  public:
    explicit Current(const Gpu &gpu) : gpu(gpu), code(gpu.api().contextPush(gpu.context)) {}
    ~Current() {
      ContextHandle before;
      if (code == 0)
        (void)gpu.api().contextPop(&before);
    }
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;

  private:
    const Gpu &gpu;

  public:
    const DriverCode code;
  };

  /// "cannot WHAT" of this GPU.
  Error failure(DriverCode code, std::string_view what) const;
  Result<std::shared_ptr<GpuMemory>> allocate(uint64_t bytes);
  /// Bytes free and all.
  Result<std::pair<uint64_t, uint64_t>> memory() const;
  /// A copy of bytes that nobody writes and that stay in place while somebody has it: uploaded once.
  Result<std::shared_ptr<GpuMemory>> constant(const void *host, uint64_t bytes);
  /// Whether `constant` would allocate nothing.
  bool hasConstant(const void *host, uint64_t bytes);

private:
  Gpu(const Driver &driver, GpuHandle handle, std::string name)
      : library(driver), handle(handle), called(std::move(name)) {}
  Status retain();

  const Driver &library;
  const GpuHandle handle;
  const std::string called;
  ContextHandle context = nullptr;
  std::mutex mutex;
  std::map<std::pair<const void *, uint64_t>, std::weak_ptr<GpuMemory>> constants;
};

class GpuMemory {
public:
  GpuMemory(std::shared_ptr<Gpu> gpu, GpuAddress address, uint64_t bytes)
      : address(address), bytes(bytes), gpu(std::move(gpu)) {}
  ~GpuMemory() {
    Gpu::Current current(*gpu);
    (void)gpu->api().memoryFree(address);
  }
  GpuMemory(const GpuMemory &) = delete;
  GpuMemory &operator=(const GpuMemory &) = delete;

  const GpuAddress address;
  const uint64_t bytes;

private:
  const std::shared_ptr<Gpu> gpu;
};

} // namespace dmxrt::cuda
