//===- ByteRanges.h - a set of ranges of bytes ------------------*- C++ -*-===//
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dmxrt::cuda {

class ByteRanges {
public:
  using Range = std::pair<uint64_t, uint64_t>; ///< begin, end

  /// Adds a range; the parts of it that were not there.
  std::vector<Range> add(uint64_t begin, uint64_t end) {
    std::vector<Range> fresh;
    if (begin >= end)
      return fresh;
    auto next = ranges.upper_bound(begin);
    if (next != ranges.begin() && std::prev(next)->second >= begin)
      --next;
    uint64_t first = begin, last = end, at = begin;
    while (next != ranges.end() && next->first <= end) {
      if (next->first > at)
        fresh.emplace_back(at, next->first);
      at = std::max(at, std::min(next->second, end));
      first = std::min(first, next->first);
      last = std::max(last, next->second);
      next = ranges.erase(next);
    }
    if (at < end)
      fresh.emplace_back(at, end);
    ranges.emplace(first, last);
    return fresh;
  }

private:
  std::map<uint64_t, uint64_t> ranges; ///< by their begin; none touches another
};

} // namespace dmxrt::cuda
