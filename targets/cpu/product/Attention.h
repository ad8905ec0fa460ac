//===- Attention.h - regions of attention -----------------------*- C++ -*-===//
#pragma once

#include "targets/common/roots/Loops.h"
#include "targets/cpu/Kernels.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

namespace dmxc::cpu {

/// Rows of an attention's weights that become zeros as a whole; false: none.
struct ZeroRows {
  bool whereNaN = false; ///< select(is_nan(w), 0, w)
  dmir::SelectOp choice; ///< select(c, 0, w) with c of one column
  explicit operator bool() const { return whereNaN || static_cast<mlir::Operation *>(choice); }
};

/// g(softmax(f(Q K))) V with f and g elementwise, in f32: Q [.., m, d], K [.., d, t], V [.., t, n]. The batch axes may
/// be other ones from op to op, as long as they are as many elements.
struct Attention {
  dmir::MatMulOp scores;                       ///< Q K
  llvm::SmallVector<mlir::Operation *> before; ///< f: scale, mask; in order
  dmir::SoftmaxOp softmax;
  llvm::SmallVector<mlir::Operation *> after; ///< g: rows without keys
  std::optional<ZeroRows> zeroRows;           ///< all that g does; nothing where it computes weights
  dmir::MatMulOp result;
};

/// The attention whose last product an op is. What is between the products is read there alone.
std::optional<Attention> matchAttention(mlir::Operation *result);
/// The ops that the kernel of an attention's last product computes besides it; none for other ops.
llvm::SmallVector<mlir::Operation *> innerOpsOf(mlir::Operation *result);

/// Plans the kernel of a region whose root is an attention's last product. A work item is a block of rows of one
/// matrix: their scores, whole rows, stay in the thread's scratch.
Result<KernelPlan> planAttention(const RegionBody &body, const Attention &attention, const Choice &choice);

} // namespace dmxc::cpu
