//===- UserKernels.h - nodes that users wrote kernels for -------*- C++ -*-===//
#pragma once

#include "Emitter.h"

#include "dmxc/Dialect/DMIR/Kernels.h"

namespace dmxc::frontend {

/// The results of a kernel at a node, with numbers for its attributes. Fails the node where the operands are none that
/// it takes.
std::vector<Val> callKernel(Emitter &e, const std::string &node, const dmir::KernelDecl &kernel,
                            llvm::ArrayRef<Val> operands, const std::map<std::string, int64_t> &numbers);

} // namespace dmxc::frontend
