//===- OnnxFrontend.h - ONNX models to DMIR ---------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Import.h"

#include "llvm/Support/raw_ostream.h"

namespace dmxc {

/// The frontend of `.onnx` files (ModelProto). Thread-safe; one MLIR context a
/// call.
///
/// Errors are reported as Diagnostics with a stable id: `onnx-file` (the bytes
/// are no valid model), `onnx-external-data`, `onnx-graph` (names, order, types
/// of the graph), `onnx-dim` (an input dim is unknown), `op-unknown`,
/// `op-unsupported`, `op-attribute`, `op-operand`, `op-dtype`, `op-rank`,
/// `op-shape`, `op-size`, `op-operand-not-constant`, `op-dynamic-shape`. All
/// nodes are looked at: one run reports every problem that does not follow from
/// another one.
const Frontend &onnxFrontend();

namespace onnxfe {
/// The table of operators for `dmxc --print-ops`: one line a (op,
/// since-version), with the element types that operand 0 may have, the
/// attributes, and a note; refused operators come with their reason.
void printOpTable(llvm::raw_ostream &os, bool json);
} // namespace onnxfe

} // namespace dmxc
