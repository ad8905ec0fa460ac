//===- KeptCode.h - kernels that were compiled before -----------*- C++ -*-===//
//
// Kernels that are equal but for their names and those of what they read are one kernel: it is compiled once, and its
// object is given each of the names. A cache of objects (dmxc/Support/CodeCache.h) makes that one compile of many.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Lowering.h"

#include "dmxc/Dialect/DLIR/DLIR.h"

namespace dmxc::cpu {

/// A kernel's text without its names and locations, of which no code depends: equal texts are equal code.
std::string namelessText(dlir::KernelOp kernel);

/// The object under another name. What is linked from it has the same bytes as if it had been compiled so.
Result<KernelObject> renamed(const KernelObject &object, const std::string &name);

/// The name in a cache of what this compiler makes of a nameless text.
std::string keptName(const std::string &text, const IsaLevel &isa, unsigned optLevel);
/// An object of one kernel without a user's body as bytes, and from them; nothing where they are none.
std::string keptBytes(const KernelObject &object);
std::optional<KernelObject> objectOf(std::string_view kept);

} // namespace dmxc::cpu
