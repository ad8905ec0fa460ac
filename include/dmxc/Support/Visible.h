//===- Visible.h - other people's names on a terminal -----------*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>

namespace dmxc {

/// Names and words of other people's models must not move a terminal's cursor, nor look like lines of ours: control
/// characters as "\n", "\t", "\x1b", those of Unicode as "\u009b", bytes that are no UTF-8 as "\xff".
std::string visible(std::string_view text);
/// The same of a text of ours that has such names in it: its lines and tabs stay.
std::string visibleLines(std::string_view text);

} // namespace dmxc
