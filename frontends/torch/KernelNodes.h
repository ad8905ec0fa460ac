//===- KernelNodes.h - nodes that users wrote kernels for -------*- C++ -*-===//
#pragma once

#include "reader/Schema.h"

#include "frontends/common/UserKernels.h"

namespace dmxc::torchfe {

/// The kernel for an operator by its name in a program, "torch.ops.acme.argmax.default", or in text,
/// "torch.acme.argmax"; null where there is none.
const dmir::KernelDecl *kernelOf(Emitter &e, std::string_view target);

/// What the kernel gives: tensors are its operands in their order, integers its attributes, by name or, without one, in
/// their order.
std::vector<Arg> callKernel(Emitter &e, const std::string &node, const dmir::KernelDecl &kernel,
                            const std::vector<std::pair<std::string, Arg>> &arguments);

} // namespace dmxc::torchfe
