//===- MathTraits.h - what mathematics asks about a processor ---*- C++ -*-===//
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dmxc::kernels {

/// The instructions that functions are faster with. The defaults have none.
struct MathTraits {
  virtual ~MathTraits() = default;

  bool hasFma = false; ///< fused multiply-add of f32 and f64
  /// m * 2^floor(n), rounded once, for vectors that one instruction takes; null for others.
  virtual mlir::Value scale(mlir::ImplicitLocOpBuilder &b, mlir::Value m, mlir::Value n) const { return {}; }
  /// Whether `scale` takes a type.
  virtual bool scales(mlir::Type type) const { return false; }
  /// Whether `lookUp` and `within` are there, and `scale` for vectors of 16 f32.
  virtual bool hasTables() const { return false; }
  /// The elements of a table, a vector of 16 f32, that the low four bits of 16 i32 tell.
  virtual mlir::Value lookUp(mlir::ImplicitLocOpBuilder &b, mlir::Value table, mlir::Value lanes) const { return {}; }
  /// 16 f32 brought into [-limit, limit], `limit` as many and positive; a NaN may become either end.
  virtual mlir::Value within(mlir::ImplicitLocOpBuilder &b, mlir::Value x, mlir::Value limit) const { return {}; }
};

} // namespace dmxc::kernels
