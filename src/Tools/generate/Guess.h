//===- Guess.h - tokens that may come next ----------------------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <vector>

namespace dmxc::tools {

/// Up to `most` tokens: what followed where prompt and answer last had the three tokens that end the answer, else two,
/// else one. Empty where they were never before.
std::vector<int64_t> guessed(const std::vector<int64_t> &prompt, const std::vector<int64_t> &answer, int64_t most);

} // namespace dmxc::tools
