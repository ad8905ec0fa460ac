//===- CudaBuilder.h - kernels that a grid of threads runs ------*- C++ -*-===//
#pragma once

#include "Hopper.h"

#include "targets/common/code/KernelBuilder.h"

namespace dmxc::cuda {

/// A kernel entry (schemas/cuda/KERNELS.md): buffers, dims, then what all kernels are given. Thread t of n computes the
/// work items t, t + n, t + 2n and so on. A failure is recorded in the launch's status word, the first one stays.
class CudaBuilder final : public KernelBuilder {
public:
  CudaBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, unsigned buffers, unsigned dims,
              const Processor &processor, llvm::ArrayRef<bool> noalias);

  void finish() override;
  void failIf(Value condition, int32_t code) override;
  void forItems(Dim count, LoopBody item) override;

private:
  Value status; ///< !llvm.ptr to i32
};

} // namespace dmxc::cuda
