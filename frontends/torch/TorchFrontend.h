//===- TorchFrontend.h - exported PyTorch programs to DMIR ------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Import.h"

#include "llvm/Support/raw_ostream.h"

namespace dmxc {

/// The frontend of what `torch.export.save` writes (.pt2), all containers of schema version 8. Thread-safe; one MLIR
/// context a call.
///
/// Errors are reported as Diagnostics with a stable id: `torch-file` (the archive is damaged or another kind of file),
/// `torch-program` (its JSON), `torch-tensor` (a payload), `torch-graph` (names and results of the graph), `torch-dim`
/// (sizes of the inputs), `op-unknown`, `op-unsupported`, `op-argument`, `op-dtype`, `op-rank`, `op-shape`, `op-size`,
/// `op-operand-not-constant`, `op-dynamic-dim`. All nodes are looked at: one run reports every problem that does not
/// follow from another one.
const Frontend &torchFrontend();

namespace torchfe {
/// The table of operators for `dmxc --print-ops`: one line an overload; refused operators come with their reason.
void printAtenTable(llvm::raw_ostream &os, bool json);
} // namespace torchfe

} // namespace dmxc
