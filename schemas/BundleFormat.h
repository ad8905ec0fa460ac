//===- BundleFormat.h - names of the bundle format --------------*- C++ -*-===//
//
// FORMAT.md's names and limits that the compiler's half and the runtime both compare with.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace dmx::format {

/// The target of a graph's queue whose tasks are kernels on the processor of the host: copies run there when the graph
/// has such a queue, and control flow always.
inline constexpr std::string_view kHostTarget = "cpu";
/// Graphs owned by tasks are nested no deeper ("Branches and loops").
inline constexpr unsigned kMaxNesting = 32;

/// A `min_runtime` like 1.2.3 as numbers that compare like versions; nothing for any other text.
inline std::optional<std::array<unsigned, 3>> parseVersion(std::string_view text) {
  std::array<unsigned, 3> version{};
  const char *at = text.data(), *end = at + text.size();
  for (unsigned &part : version) {
    if (&part != version.data() && (at == end || *at++ != '.'))
      return std::nullopt;
    auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc() || next - at > 5)
      return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(version) : std::nullopt;
}

} // namespace dmx::format
