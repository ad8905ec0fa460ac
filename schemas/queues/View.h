//===- View.h - programs of queues for people and tools ---------*- C++ -*-===//
//
// What a machine's own describeCode, printCode and compareCode (include/dmxc/Tools/CodeView.h) give on.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Program.h"

#include <optional>

namespace dmx::queues {

std::optional<std::string> describe(std::span<const std::byte> code, const Machine &machine, std::string_view kernel,
                                    std::string &error);
std::optional<std::string> print(std::span<const std::byte> code, const Machine &machine, std::string_view kernel,
                                 std::string &error);
std::optional<std::string> compare(std::span<const std::byte> a, std::span<const std::byte> b, const Machine &machine,
                                   std::string &error);

} // namespace dmx::queues
