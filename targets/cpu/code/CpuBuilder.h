//===- CpuBuilder.h - kernels that the runtime's threads call ---*- C++ -*-===//
#pragma once

#include "IsaLevel.h"

#include "targets/common/code/KernelBuilder.h"

namespace dmxc::cpu {

/// A kernel of dmx_kernel.h: the exported wrapper that unpacks `dmx_kernel_args` and a private body whose buffers are
/// noalias arguments. `finish` returns OK, or the first failure. And what register tiles need of LLVM.
class CpuBuilder final : public KernelBuilder {
public:
  CpuBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name, unsigned buffers, unsigned dims,
             const IsaLevel &isa, llvm::ArrayRef<bool> noalias = {});
  /// The builder of a kernel of this target.
  static CpuBuilder &of(KernelBuilder &b) { return static_cast<CpuBuilder &>(b); }

  void finish() override;
  void failIf(Value condition, int32_t code) override;
  const IsaLevel &isa() const { return static_cast<const IsaLevel &>(processor()); }

  static constexpr int64_t kTileBytes = 2048;
  /// !llvm.ptr: kTileBytes, room for the sums of a register tile, on the stack; one for the whole kernel.
  Value tileBuffer();
  /// i64: what this thread's last call of the task left by `keep`, which says what is prepared in scratch; -1 if this
  /// is the first one.
  Value kept() { return load(getI64Type(), keptNumber, idx(0)); }
  void keep(Value number) { store(number, keptNumber, idx(0)); }
  /// Keeps loads that are emitted later from being scheduled before this point; costs no instruction. Between the steps
  /// of an unrolled register tile it keeps the registers of one step from adding to those of the next.
  void fence();
  /// A fence that also gives the pointer a value LLVM knows nothing about. Keeps it from merging equal loads through
  /// different copies and spilling the values; loading twice is cheaper.
  Value opaque(Value pointer);
  static Value opaque(mlir::ImplicitLocOpBuilder &b, Value pointer);
  /// The vector, of which LLVM knows only that a register holds it. For levels with AVX-512.
  Value held(Value vector);
  /// Prefetch of the line that holds the element; locality 3 = L1 .. 0 = none.
  void prefetch(mlir::Type element, Value base, Value offset, int locality, bool write = false);

private:
  Value keptNumber; ///< !llvm.ptr
  Value status;     ///< stack slot of the sticky failure, made on demand
  Value tile;       ///< tileBuffer, made on demand
};

} // namespace dmxc::cpu
