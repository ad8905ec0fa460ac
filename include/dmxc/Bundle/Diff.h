//===- Diff.h - what differs between two bundles ----------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Reader.h"

namespace dmxc::bundle {

/// One difference. An empty side means that the thing exists on the other only.
struct Difference {
  std::string what; ///< "entry", "manifest", "tensor", "graph", "buffer",
                    ///< "task", "weight"
  std::string name; ///< which one: "code/cpu/x86-64-v3/kernels.so", "options.opt"
  std::string a, b; ///< the two values, shortened for people
};

/// Structured differences, in a fixed order: manifest fields, inputs and
/// outputs, entries by checksum, graph by graph (dims, arenas, buffers by
/// position, tasks by name and occurrence), weights by name and bytes. Empty
/// exactly when the two have equal manifests (and so equal checksums).
std::vector<Difference> diff(const Bundle &a, const Bundle &b);

} // namespace dmxc::bundle
