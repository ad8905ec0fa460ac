//===- Asynchronous.h - copies and products that run beside threads -*- C++ -*-===//
//
// What a warpgroup says to the engines of its multiprocessor: barriers in shared memory, copies of tensor maps,
// products of tiles. The vocabulary of kernels that are made of such steps; each function is one instruction, or a few.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "CudaBuilder.h"

namespace dmxc::cuda {

class Asynchronous {
public:
  using Value = mlir::Value;
  explicit Asynchronous(CudaBuilder &b) : b(b) {}

  /// The address of a byte of the block's shared memory (!llvm.ptr<3>).
  Value shared(Value offset);
  Value shared(int64_t offset) { return shared(b.idx(offset)); }

  // --- barriers in shared memory (mbarrier): a phase ends with its last arrival and byte
  void initBarrier(Value barrier, int64_t arrivals);
  /// Shows the barriers to the engines and to all threads of the block.
  void publishBarriers();
  /// Until the phase of a parity (i32) has ended.
  void wait(Value barrier, Value parity);
  void arrive(Value barrier);
  /// The same for all threads of a warp, once what each wrote to shared memory can be seen by products.
  void arriveAsWarp(Value barrier);
  /// One arrival, and `bytes` that copies bring.
  void arriveAndExpect(Value barrier, int64_t bytes);

  /// The threads of a warp go on together: without it those that a branch has parted may stay so.
  void meetWarp();
  /// All of so many threads meet, at a barrier (0 to 15) that is theirs.
  void meet(Value barrier, int64_t threads);

  /// Runs `body` in the first thread of each warp, for which the others wait.
  void inOneLane(llvm::function_ref<void()> body);

  /// Copies the box of a tensor map at these coordinates (i64, innermost first) to shared memory; its bytes count for
  /// the barrier.
  void copy(Value to, Value map, Value barrier, llvm::ArrayRef<Value> coordinates);

  // --- products of a warpgroup (wgmma)
  /// The type of N / 2 sums, and all of them 0.
  mlir::LLVM::LLVMStructType sumsType(int64_t columns);
  Value zeroSums(int64_t columns);
  /// The descriptor of a tile at an address in shared memory (schemas/cuda/Layouts.h).
  Value descriptor(Value address, uint64_t leadingBytes);
  Value advance(Value descriptor, int64_t bytes);
  /// Products that follow may use these sums and shared memory, whoever wrote them; and these words of 32 bits, which
  /// they take as left operands.
  Value beginProducts(Value sums);
  Value beginProducts(Value sums, llvm::SmallVectorImpl<Value> &words);
  struct Kind {
    bool isBf16, leftIsKMajor, rightIsKMajor;
    int64_t columns;
  };
  /// Starts sums + left * right of 64 rows and 16 terms.
  Value multiply(Value sums, Value left, Value right, const Kind &kind);
  /// The same where each thread has its part of the left operand: four words of two terms (Layouts.h).
  Value multiply(Value sums, llvm::ArrayRef<Value> left, Value right, const Kind &kind);
  /// Makes the products since then a group, and waits until `pending` groups at most are running: with 0 the sums can
  /// be read.
  void commitProducts();
  Value waitForProducts(Value sums, unsigned pending);

  /// The thread's number in its block (i64), read where this stands: what is computed of it is computed behind that.
  Value threadNow();

  /// Gives registers back or takes some, of the whole warpgroup.
  void setRegisters(unsigned count, bool takes);

private:
  /// An instruction before which the sums are written, and behind which they are read.
  Value between(Value sums, llvm::StringRef instruction, llvm::SmallVectorImpl<Value> *words = nullptr);
  CudaBuilder &b;
};

} // namespace dmxc::cuda
