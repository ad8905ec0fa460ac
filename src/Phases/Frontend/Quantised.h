//===- Quantised.h - what a dequantisation looks like -----------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/Tensor.h"

#include <optional>

namespace dmxc::quantised {

inline bool isByte(mlir::Type type) { return type.isSignlessInteger(8) || type.isUnsignedInteger(8); }

/// (bytes - zero) * scale. A null zero is 0; the scale is null for integers. Both may be values of a run.
struct Quantised {
  mlir::Value bytes, zero, scale;
};
/// A value as that, if it is an f32 or i32 tensor computed so, the bytes having its shape.
std::optional<Quantised> matchQuantised(mlir::Value value);

/// At most `depth` ops deep: what a run brings may hang on all of the graph.
bool isConstantExpression(mlir::Value value, int depth = 64);
/// The tensor of a value that is computed from constants alone.
std::optional<Tensor> evaluateConstant(mlir::Value value);
/// Its only element as a float.
std::optional<double> evaluateNumber(mlir::Value value);

} // namespace dmxc::quantised
