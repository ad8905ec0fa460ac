//===- Link.h - kernel objects to kernels.so --------------------*- C++ -*-===//
#pragma once

#include "Lowering.h"

#include <span>

namespace dmxc::cpu {

/// Links the objects and a generated table of their kernels (in the order
/// given) into a freestanding shared object as include/dmx/dmx_kernel.h asks:
/// dmx_query_kernels and the table are the only dynamic symbols, nothing is undefined,
/// relocations are relative only. Equal inputs give equal bytes. Uses LLD in
/// this process and temporary files; calls from several threads wait for each
/// other. Fails when a symbol is defined twice or not at all (internal error
/// naming it).
/// `saved` is where the table is kept as .ll; empty: nowhere.
Result<std::vector<char>> linkKernels(std::span<const KernelObject> objects, const IsaLevel &isa,
                                      const std::string &saved = "");
/// How LLD is called, but for its files.
std::vector<std::string> linkerArguments();

} // namespace dmxc::cpu
