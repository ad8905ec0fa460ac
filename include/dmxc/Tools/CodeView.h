//===- CodeView.h - viewers of targets' code --------------------*- C++ -*-===//
//
// dmx-inspect knows no target: what a code object holds is told by the viewer of
// its format, which lives with the format (schemas/<target>) and is found by the build
// (tools/cmake/DmxcRegistry.cmake). Formats without one, such as the
// CPU's shared objects, are listed by name and size only.
//
// describe() gives JSON:
//   machine    {name, fingerprint, ...}
//   memories   [{memory, per, units, capacity, footprint}]; bytes of one unit
//   kernels    [{name, runs_on, streams: [names], instructions: {group: count}, footprint: {memory: bytes}}]
// and in full also
//   kernels    [{..., arguments: [{name, role, type, shape, form, pieces: [{memory, unit, address, bytes, ...}]}],
//               dims, init, main, map: {phases: [{name, steps}], ordered, unknown: {memory: accesses},
//               ranges: [{memory, units, begin, end, kind, name, first, last, argument?}]}}]
//   streams, functions   [{name, instructions, code: [{op, fields}]}]
// A range's kind "temporary" is one that comes and goes within the last phase; the others are permanent. first and
// last are steps, counted through all phases.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dmxc::tools {

/// A format's functions. Where they give nothing, the bytes are not sound and `error` says why.
struct CodeViewer {
  std::string_view target;
  /// Of all kernels, or of one; a name that the object does not have gives no kernels.
  std::optional<std::string> (*describe)(std::span<const std::byte> code, std::string_view kernel, bool full,
                                         std::string &error);
  /// The format's text, which its assembler makes the same bytes of.
  std::optional<std::string> (*print)(std::span<const std::byte> code, std::string_view kernel, std::string &error);
  /// JSON: [{what, name, a, b}]; empty for equal objects.
  std::optional<std::string> (*compare)(std::span<const std::byte> a, std::span<const std::byte> b, std::string &error);
};

/// Generated.
std::span<const CodeViewer> codeViewers();
/// Null for a format that is only listed.
const CodeViewer *findCodeViewer(std::string_view target);

} // namespace dmxc::tools
