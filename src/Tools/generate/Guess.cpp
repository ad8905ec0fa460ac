//===- Guess.cpp - tokens that may come next ------------------------------===//
#include "Guess.h"

#include <algorithm>

namespace dmxc::tools {

std::vector<int64_t> guessed(const std::vector<int64_t> &prompt, const std::vector<int64_t> &answer, int64_t most) {
  std::vector<int64_t> all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  for (std::ptrdiff_t size = 3; size >= 1; --size) {
    if (static_cast<std::ptrdiff_t>(all.size()) <= size)
      continue;
    auto tail = all.end() - size;
    // What ends before the last token, so that there is one behind it.
    auto found = std::find_end(all.begin(), all.end() - 1, tail, all.end());
    if (found == all.end() - 1)
      continue;
    auto from = found + size;
    return {from, from + std::min<std::ptrdiff_t>(most, all.end() - from)};
  }
  return {};
}

} // namespace dmxc::tools
