//===- CudaImage.h - kernels as PTX, with their launches --------*- C++ -*-===//
#pragma once

#include "runtime/bundle/Contract.h"
#include "runtime/devices/Device.h"
#include "sim/Program.h"

namespace dmxrt::cuda {

/// A kernel as the launch table has it (schemas/cuda/KERNELS.md).
struct KernelLaunch {
  std::string name;
  uint32_t block = 1;
  ExprId grid = 0;
  uint32_t buffers = 0, dims = 0, results = 0; ///< of the contract
  const Program *program = nullptr;
  const class CudaImage *image = nullptr;
};

/// A loaded entry. Immutable.
class CudaImage final : public CodeImage {
public:
  static Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes);
  static Status check(std::span<const std::byte> bytes, int32_t &contracts);

  /// A KernelLaunch.
  const void *findKernel(std::string_view name) const override;
  const ContractTable *contracts() const override { return &promises; }
  Status checkTask(const DeviceTask &task) const override;
  /// Blocks of a task's grid; an error where they do not fit its work.
  Result<uint32_t> blocksOf(const DeviceTask &task) const;

  std::shared_ptr<const ProgramModule> module;

private:
  Status read(std::string_view text);
  Status addKernel(JsonCursor entry);
  std::vector<std::unique_ptr<KernelLaunch>> kernels;
  ExprPool exprs;
  ContractTable promises;
};

/// What all kernels are given behind buffers and dims.
enum Tail : uint32_t { Scratch, ScratchBytes, Results, StatusWord, TailParameters };

} // namespace dmxrt::cuda
