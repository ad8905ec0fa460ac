//===- Functions.h - functions of the vector device for several ops -*- C++ -*-===//
#pragma once

#include "scores/Diagonals.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "schemas/corsair/Isa.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace dmxc::corsair {

namespace hw = dmx::corsair;

/// One function of the vector device that gives what an op of a kernel gives, together with ops that it alone reads.
struct DeviceFunction {
  hw::SimdFunction function;
  llvm::SmallVector<mlir::Value, 3> operands;
  float imm0 = 0, imm1 = 0;
  llvm::SmallVector<int64_t> axes = {}; ///< of rows
  int64_t first = 0;                    ///< of a rotation: where in the rows of x those that are turned begin
  Diagonals diagonals = {};             ///< that a mask keeps
};

/// The rotation that ends in an op which joins its halves, or pairs, along the last dim: y0 = x0 cos - x1 sin,
/// y1 = x1 cos + x0 sin, x0 and x1 being the halves, or the even and the odd places, of x. The operands are x, cos,
/// sin.
std::optional<DeviceFunction> matchRotation(mlir::Operation *op);

/// Which functions compute the ops of a block: masks and softmax of what they keep, rotations, sums of squares,
/// products that are added to, and activations with numbers of their own. The intermediate values are not rounded.
class FunctionChoice {
public:
  /// `areHosts`: the floats of the ops are still the host's, all of them f16 on the device.
  explicit FunctionChoice(mlir::Block &body, bool areHosts = false);

  /// Null for ops that are computed as they stand.
  const DeviceFunction *at(mlir::Operation *op) const;
  /// Whether nothing reads an op any more.
  bool isUnused(mlir::Operation *op) const { return unused.contains(op); }

private:
  void choose(mlir::Operation *op);
  bool isHalf(mlir::Value value) const;
  std::optional<DeviceFunction> activation(mlir::Operation *op) const;
  std::optional<DeviceFunction> clamp(mlir::Operation *op) const;
  std::optional<DeviceFunction> masked(dmir::SoftmaxOp softmax) const;
  void findUnused(mlir::Block &body);

  llvm::DenseMap<mlir::Operation *, DeviceFunction> chosen;
  llvm::DenseSet<mlir::Operation *> unused;
  bool areHosts;
};

} // namespace dmxc::corsair
