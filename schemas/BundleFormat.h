//===- BundleFormat.h - names of the bundle format --------------*- C++ -*-===//
//
// FORMAT.md's names and limits that the compiler's half and the runtime both compare with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string_view>

namespace dmx::format {

/// The target of a graph's queue whose tasks are kernels on the processor of the host: copies run there when the graph
/// has such a queue, and control flow always.
inline constexpr std::string_view kHostTarget = "cpu";
/// Graphs owned by tasks are nested no deeper ("Branches and loops").
inline constexpr unsigned kMaxNesting = 32;

} // namespace dmx::format
