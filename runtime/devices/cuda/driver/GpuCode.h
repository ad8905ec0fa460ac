//===- GpuCode.h - an image's kernels, compiled for a GPU -------*- C++ -*-===//
#pragma once

#include "Gpu.h"
#include "runtime/devices/cuda/CudaImage.h"

namespace dmxrt::cuda {

/// What the driver's compiler made of an image's text. Sessions that run at the same time share it.
class GpuCode {
public:
  /// Compiled by the first that asks. An error has the compiler's words, and the kernel and node that they are about.
  static Result<std::shared_ptr<const GpuCode>> of(const CudaImage &image, const std::shared_ptr<Gpu> &gpu);
  explicit GpuCode(std::shared_ptr<Gpu> gpu) : gpu(std::move(gpu)) {}
  ~GpuCode();
  GpuCode(const GpuCode &) = delete;
  GpuCode &operator=(const GpuCode &) = delete;

  FunctionHandle function(const KernelLaunch &kernel) const { return functions[kernel.index]; }

private:
  Status compile(const CudaImage &image);
  const std::shared_ptr<Gpu> gpu;
  ModuleHandle module = nullptr;
  std::vector<FunctionHandle> functions; ///< by KernelLaunch::index
};

} // namespace dmxrt::cuda
