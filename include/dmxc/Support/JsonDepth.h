//===- JsonDepth.h - JSON that may be hostile -------------------*- C++ -*-===//
#pragma once

#include <string_view>

namespace dmxc {

/// Deeper than any file of ours nests, and far below what the stack holds: JSON libraries copy, print and destroy
/// values by recursion.
inline constexpr int kMaxJsonDepth = 200;

/// Whether the brackets of a text in JSON nest no deeper; to be asked before it is parsed.
bool jsonDepthIsBounded(std::string_view text);

} // namespace dmxc
