//===- DeviceFormats.h - DMIR in the numbers of a device --------*- C++ -*-===//
//
// What a graph loses to the formats of the simulated card alone (schemas/corsair/NUMERICS.md): in its regions the
// operands of products are BFP16_64 and all other floats f16. The sums are the interpreter's, so the bits are not the
// card's; a result that is as far away as this is far away because of the formats.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::fuzz {

/// Puts casts to the formats and back before the operands of products and behind what enters a region of the card.
void castToDeviceFormats(mlir::ModuleOp module);

/// Rounds what the ops of such regions give to f16.
reference::OpObserver narrowing();

} // namespace dmxc::fuzz
