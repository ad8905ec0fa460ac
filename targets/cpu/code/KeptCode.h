//===- KeptCode.h - kernels that were compiled before -----------*- C++ -*-===//
//
// A cache of objects (dmxc/Support/CodeCache.h) makes one compile of many: what is kept is named by what it was made
// of, without the names of kernels, which an object is given anew.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelFamilies.h"
#include "Lowering.h"

#include "dmxc/Dialect/DLIR/DLIR.h"

namespace dmxc::cpu {

/// A kernel's text without its names and locations, of which no code depends: equal texts are equal code.
std::string namelessText(dlir::KernelOp kernel);

/// The object with other names for its kernels. What is linked from it has the same bytes as if it had been compiled
/// so.
Result<KernelObject> renamed(KernelObject object, const std::vector<std::string> &names);

/// The name in a cache of what this compiler makes of a nameless text.
std::string keptName(const std::string &text, const IsaLevel &isa, unsigned optLevel);
/// An object without a user's body as bytes, and from them; nothing where they are none.
std::string keptBytes(const KernelObject &object);
std::optional<KernelObject> objectOf(std::string_view kept);

/// What an emitted kernel is beside others.
struct EmittedShape {
  KernelShape shape;
  std::vector<int64_t> contract; ///< its words (dmx_kernel.h)
};
/// The shapes of a level's kernels as bytes, and from them; nothing where they are not `count` shapes.
std::string keptBytes(const std::vector<EmittedShape> &shapes);
std::optional<std::vector<EmittedShape>> shapesOf(std::string_view kept, size_t count);

} // namespace dmxc::cpu
