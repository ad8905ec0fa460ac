//===- Quant.h - helpers around quantised values ----------------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// saturate(round(real) + zero): `real` is already divided by the scale; `zero` may be null.
Val saturated(Emitter &e, const Val &real, const Val &zero, DType type, bool saturate = true);

/// What DynamicQuantizeLinear makes of x.
struct DynamicCodes {
  Val codes, scale, zero; ///< u8, and scalars of x's type and of u8
};
DynamicCodes dynamicCodes(Emitter &e, const Val &x);

/// An operand of one number, as a scalar; `what` names it.
Val scalarOperand(NodeContext &c, int operand, const char *what);

} // namespace dmxc::onnxfe
