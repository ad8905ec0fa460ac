//===- LinearAlgebra.h - helpers around matrix products ---------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// Bytes as i32, what a product adds up. Constant matrices stay ops on their bytes instead of being folded here: the
/// compiler's products of bytes look for them.
Val widenedBytes(Emitter &e, const Val &bytes);
/// A matrix operand of bytes as i32, without its zero point where it has one: one number, or one a row (of the left
/// operand) or a column (of the right one).
Val withoutZeroPoint(NodeContext &c, int operand, int zeroPoint, bool rows);
/// alpha * A B + beta * C, as the attributes of Gemm say.
Val gemm(NodeContext &c);

} // namespace dmxc::onnxfe
