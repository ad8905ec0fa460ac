//===- Cache.h - the first cache of a multiprocessor ------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

namespace dmxrt::cuda {

/// Lines of 128 bytes in sectors of 32; the line that was not used for longest goes.
class SectorCache {
public:
  explicit SectorCache(uint64_t bytes) : most(bytes / 128) {}

  /// Whether a sector was there; it is from now on.
  bool take(uint64_t sector) {
    if (most == 0)
      return false;
    uint64_t line = sector / 4;
    auto bit = static_cast<uint8_t>(1u << sector % 4);
    auto found = lines.find(line);
    if (found == lines.end()) {
      if (lines.size() == most) {
        lines.erase(order.back());
        order.pop_back();
      }
      order.push_front(line);
      lines.emplace(line, Line{order.begin(), bit});
      return false;
    }
    order.splice(order.begin(), order, found->second.place);
    bool was = found->second.sectors & bit;
    found->second.sectors |= bit;
    return was;
  }

private:
  struct Line {
    std::list<uint64_t>::iterator place;
    uint8_t sectors;
  };
  uint64_t most; ///< lines
  std::list<uint64_t> order;
  std::unordered_map<uint64_t, Line> lines;
};

} // namespace dmxrt::cuda
