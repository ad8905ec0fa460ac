//===- View.h - code objects for people and tools ---------------*- C++ -*-===//
//
// What dmx-inspect shows of a .dmxisa image. The three functions are what every
// viewer of a target's code offers (include/dmxc/Tools/CodeView.h has the form of
// their JSON); a failure names what is wrong with the bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Image.h"

namespace dmx::corsair {

/// The image with one kernel and what it uses: it assembles by itself. Without kernels when it has none of that name.
Image imageOf(const Image &image, std::string_view kernel);

/// JSON: machine, memories and kernels with their counts of instructions; with `full` also arguments, launches, streams
/// line by line and memory maps. Of one kernel when a name is given.
std::optional<std::string> describeCode(std::span<const std::byte> code, std::string_view kernel, bool full,
                                        std::string &error);
/// The text form (ISA.md section 13), which assembles to the same bytes again.
std::optional<std::string> printCode(std::span<const std::byte> code, std::string_view kernel, std::string &error);
/// JSON: a list of {what, name, a, b}; empty for equal images.
std::optional<std::string> compareCode(std::span<const std::byte> a, std::span<const std::byte> b, std::string &error);

} // namespace dmx::corsair
