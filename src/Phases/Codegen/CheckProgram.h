//===- CheckProgram.h - programs that codegen cannot take -------*- C++ -*-===//
#pragma once

#include "dmxc/Phases/Codegen.h"

namespace dmxc {

/// C1 of dlir.dispatch: the kernel is there, for the task's device, and takes such buffers.
Status checkKernels(dlir::ProgramOp program, const PhaseContext &context);

/// Of a text that somebody may have changed: the rules of bundles that its graphs break, said by buffer and task.
Status checkGraphs(mlir::ModuleOp module, const CompiledModel &model);

} // namespace dmxc
