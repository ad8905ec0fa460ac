//===- AttentionPattern.h - what is attention -------------------*- C++ -*-===//
//
// Attention as graphs have it: two products with a softmax between, whatever way scale, mask and rows without keys are
// written. A target that has a kernel for all of it finds it here. And products without a softmax of whose scores a
// rule leaves many zeros, as linear attention and retention have them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Where.h"

namespace dmxc::kernels {

/// Rows of an attention's weights that become zeros as a whole; false: none.
struct ZeroRows {
  bool whereNaN = false; ///< select(is_nan(w), 0, w)
  dmir::SelectOp choice; ///< select(c, 0, w) with c of one column
  explicit operator bool() const { return whereNaN || static_cast<mlir::Operation *>(choice); }
};

/// g(softmax(f(Q K))) V, or f(Q K) V with f and g elementwise, in f32: Q [.., m, d], K [.., d, t], V [.., t, n]. The
/// batch axes may be other ones from op to op, as long as they are as many elements. Q, K and V may be rounded to bf16,
/// and what a softmax leads to, too.
struct Attention {
  dmir::MatMulOp scores;                       ///< Q K
  llvm::SmallVector<mlir::Operation *> before; ///< f: scale, mask; in order
  dmir::SoftmaxOp softmax;                     ///< null: there is none
  std::optional<dmir::Rule> keep;              ///< what of f(Q K) is not zero, where there is none
  llvm::SmallVector<mlir::Operation *> after;  ///< g: rows without keys
  std::optional<ZeroRows> zeroRows;            ///< all that g does; nothing where it computes weights
  dmir::CastOp rounded;                        ///< of the weights to bf16, behind all of g; null: they are f32
  dmir::MatMulOp result;
  llvm::SmallVector<mlir::Operation *> casts; ///< of Q, K and V, to bf16 or back: from the products on, as far as views

  /// What V is multiplied with, before it is rounded.
  mlir::Value weights() { return rounded ? rounded.getInput() : result.getLhs(); }
};

/// The attention whose last product an op is. What is between the products is read there alone.
std::optional<Attention> matchAttention(mlir::Operation *result);
/// The part of a matrix' elements that blocks of rows look at by a rule of rows and columns.
double keptPart(const dmir::Rule &rule, llvm::ArrayRef<int64_t> dims);
/// The ops that the kernel of an attention's last product computes besides it; none for other ops.
llvm::SmallVector<mlir::Operation *> innerOpsOf(mlir::Operation *result);

} // namespace dmxc::kernels
