//===- CudaImage.h - kernels as PTX, with their launches --------*- C++ -*-===//
#pragma once

#include "runtime/bundle/Contract.h"
#include "runtime/bundle/Expr.h"
#include "runtime/bundle/Json.h"
#include "runtime/devices/Device.h"
#include "schemas/cuda/TensorMap.h"

#include <mutex>
#include <optional>

namespace dmxrt::cuda {

struct PtxModule;

/// A tensor map that a kernel is given.
struct MapLaunch {
  uint32_t buffer = 0;
  dmx::cuda::TensorMap form;          ///< without base, sizes and strides
  std::vector<ExprId> sizes, strides; ///< strides begin with axis 1
  ExprId offset = 0;                  ///< bytes into the buffer
};

/// A kernel as the launch table has it (schemas/cuda/KERNELS.md).
struct KernelLaunch {
  std::string name;
  std::vector<std::string> nodes; ///< of the model
  uint32_t index = 0;             ///< in the image
  uint32_t line = 0;              ///< of its text
  uint32_t block = 1;
  uint32_t cluster = 1; ///< blocks that do a work item together
  uint32_t shared = 0;  ///< bytes of shared memory that the launch gives a block
  bool byBlock = false; ///< a work item is a block's; else a thread's
  ExprId grid = 0;
  std::optional<ExprId> multiplyAdds; ///< of the model's products
  std::vector<MapLaunch> maps;
  std::optional<std::vector<ExprId>> scalars;  ///< that it is given in the place of its dims
  uint32_t buffers = 0, dims = 0, results = 0; ///< of the contract
  uint32_t sizes() const { return scalars ? static_cast<uint32_t>(scalars->size()) : dims; }
  const class CudaImage *image = nullptr;
};

/// A loaded entry: the text, and the launch table that fits it. Immutable but for what is made of it, once for all
/// sessions: what is that is its maker's business.
class CudaImage final : public CodeImage {
public:
  static Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes);

  /// A KernelLaunch.
  const void *findKernel(std::string_view name) const override;
  const ContractTable *contracts() const override { return &promises; }
  Status checkTask(const DeviceTask &task) const override;
  /// Blocks of a task's grid; an error where they do not fit its work.
  Result<uint32_t> blocksOf(const DeviceTask &task) const;

  /// The sizes that a task's kernel is given: its dims, or what its launch makes of them.
  Result<std::vector<uint64_t>> sizesOf(const DeviceTask &task) const;

  /// Multiply-adds that the model asks of a task; nothing where its kernel has no products.
  Result<std::optional<uint64_t>> multiplyAddsOf(const DeviceTask &task) const;

  /// The tensor map of a task's kernel; its base is an offset into the buffer. An error names kernel, map and rule.
  Result<dmx::cuda::TensorMap> mapOf(const DeviceTask &task, size_t index) const;

  /// Ends with a zero.
  const std::string &text() const { return words; }
  const std::vector<std::unique_ptr<KernelLaunch>> &launches() const { return kernels; }
  /// The kernel that a line of the text is in; null before the first.
  const KernelLaunch *kernelAt(uint32_t line) const;

  struct Made {
    std::mutex mutex;
    std::shared_ptr<const void> simulated;                                 ///< kept with the image
    std::vector<std::pair<const void *, std::weak_ptr<const void>>> onGpu; ///< by the GPU, kept by sessions
  };
  Made &made() const { return madeOfIt; }

private:
  Status read();
  Status addKernel(JsonCursor entry, const PtxModule &module, int64_t version);
  void readLaunch(JsonCursor entry, KernelLaunch &kernel, int64_t version);
  void readMap(JsonCursor entry, const ExprPool::DimNames &names, KernelLaunch &kernel);
  void readExpressions(JsonCursor list, const ExprPool::DimNames &names, std::vector<ExprId> &out);
  std::string problemOfPlan(const KernelLaunch &kernel, const MapLaunch &map) const;
  std::string words;
  std::vector<std::unique_ptr<KernelLaunch>> kernels;
  mutable Made madeOfIt;
  ExprPool exprs;
  ContractTable promises;
};

/// Bytes of parameters that a kernel may have, by PTX's version.
inline constexpr uint64_t kMostParameterBytes = 4352, kMostParameterBytes81 = 32764;

/// What all kernels are given behind buffers and dims.
enum Tail : uint32_t { Scratch, ScratchBytes, Results, StatusWord, TailParameters };

} // namespace dmxrt::cuda
