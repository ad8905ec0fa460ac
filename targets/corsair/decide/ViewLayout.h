//===- ViewLayout.h - where views look ---------------------------*- C++ -*-===//
//
// Partition foresees which views of a kernel the stages make: which dims of a value walk on through its buffer, which
// stand still, and which reshapes must copy.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../write/DeviceTensor.h"

namespace dmxc::corsair {

/// A value as a view of what is none, strides in elements. That one lies row by row, images with their channels last;
/// neither place nor kind is said.
DeviceTensor viewLayout(mlir::Value value);
/// The same as an operand of a product: where it is broadcast along K, the dim so many from the end, it is written out.
DeviceTensor operandLayout(mlir::Value value, unsigned fromEnd);
/// Whether a view is none: no strides have its result, so that it is copied before.
bool viewCopies(mlir::Operation *view);

} // namespace dmxc::corsair
