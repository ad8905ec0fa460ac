//===- CudaBuilder.h - kernels that a grid of threads runs ------*- C++ -*-===//
#pragma once

#include "Hopper.h"

#include "targets/common/code/KernelBuilder.h"

namespace dmxc::cuda {

/// A kernel entry (schemas/cuda/KERNELS.md): buffers, dims, then what all kernels are given, then tensor maps. Thread t
/// of n computes the work items t, t + n, t + 2n and so on; of kernels of blocks, block t of n. A failure is recorded
/// in the launch's status word, the first one stays.
class CudaBuilder final : public KernelBuilder {
public:
  CudaBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, unsigned buffers, unsigned dims,
              const Hopper &processor, llvm::ArrayRef<bool> noalias);
  static CudaBuilder &of(KernelBuilder &b) { return static_cast<CudaBuilder &>(b); }

  void finish() override;
  void failIf(Value condition, int32_t code) override;
  void forItems(Dim count, LoopBody item) override;
  Value member() override;
  Value memberHere() override { return floorDiv(ownThread, idx(team().columns)); }
  Value column() override { return rem(ownThread, idx(team().columns)); }
  llvm::SmallVector<Value> ofTeam(mlir::ValueRange own, Combine combine) override;
  Value mostOfTeam(Value own) override;
  void byOne(llvm::function_ref<void()> body) override;

  /// Of kernels of clusters: the block's number in its own; all of the cluster's threads meet, and see what was stored
  /// before; the address of shared memory of this block in another one of the cluster (!llvm.ptr<7>).
  Value rankInCluster() const { return rank; }
  void meetCluster();
  Value sharedOf(Value place, Value block);

  /// Tensor map i, as copies name it: !llvm.ptr.
  Value map(unsigned i) const { return maps[i]; }
  /// The block's shared memory, which its launch gives it: !llvm.ptr<3>. Of kernels of blocks.
  Value shared() const { return sharedMemory; }
  /// The thread's number in its block: i64. The same.
  Value threadInBlock() const { return ownThread; }
  /// The values of a warp's lanes combined in pairs, in groups of `lanes` neighbours; the same for each of them.
  llvm::SmallVector<Value> ofWarp(llvm::SmallVector<Value> values, int64_t lanes, Combine combine);
  /// What another lane of the warp, as `how` says ("bfly", "idx") by `lane` (i32), has of a word of 32 bits.
  Value shuffled(Value word, llvm::StringRef how, Value lane);

private:
  const Team &team() const { return static_cast<const Hopper &>(processor()).team; }
  llvm::SmallVector<Value> ofBlock(llvm::SmallVector<Value> values, Combine combine);
  llvm::SmallVector<Value> ofColumns(llvm::SmallVector<Value> values, Combine combine);
  llvm::SmallVector<Value> ofCluster(llvm::SmallVector<Value> values, Combine combine);
  llvm::SmallVector<Value> tellBlock(mlir::ValueRange values);
  void syncWarp();
  Value mostOfWarp(Value own);
  void takeMaps(llvm::ArrayRef<Value> arguments, mlir::ModuleOp module);

  Value status; ///< !llvm.ptr to i32
  llvm::SmallVector<Value> maps;
  Value sharedMemory, ownThread;
  Value rank;               ///< of the block in its cluster: i64
  int64_t combinations = 0; ///< that blocks of a cluster made of the work item at hand
};

} // namespace dmxc::cuda
