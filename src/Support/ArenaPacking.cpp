//===- ArenaPacking.cpp - offsets for live ranges -------------------------===//
//
// Dynamic storage allocation is NP-hard; placing ranges greedily, each at the lowest offset that fits, is within a few
// percent of the bound on real networks when the order is right. The order that is right differs, so several are tried.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Support/ArenaPacking.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace dmxc {

namespace {

/// Places the ranges in `order`, each best-fit among the gaps its live neighbours leave.
int64_t place(std::vector<LiveRange> &ranges, const std::vector<size_t> &order) {
  std::vector<size_t> placed; // sorted by offset
  int64_t arena = 0;
  for (size_t index : order) {
    LiveRange &range = ranges[index];
    int64_t best = -1, bestGap = INT64_MAX, end = 0;
    for (size_t other : placed) {
      const LiveRange &q = ranges[other];
      if (q.last < range.first || range.last < q.first)
        continue;
      if (int64_t gap = q.offset - end; gap >= range.size && gap < bestGap) {
        best = end;
        bestGap = gap;
      }
      end = std::max(end, q.offset + q.size);
    }
    range.offset = best >= 0 ? best : end;
    arena = std::max(arena, range.offset + range.size);
    auto at = std::upper_bound(placed.begin(), placed.end(), range.offset,
                               [&](int64_t offset, size_t i) { return offset < ranges[i].offset; });
    placed.insert(at, index);
  }
  return arena;
}

} // namespace

int64_t arenaLowerBound(const std::vector<LiveRange> &ranges) {
  std::map<int64_t, int64_t> change;
  for (const LiveRange &r : ranges) {
    change[r.first] += r.size;
    change[r.last + 1] -= r.size;
  }
  int64_t live = 0, most = 0;
  for (auto [step, delta] : change)
    most = std::max(most, live += delta);
  return most;
}

int64_t packArena(std::vector<LiveRange> &ranges) {
  using Less = std::function<bool(const LiveRange &, const LiveRange &)>;
  auto length = [](const LiveRange &r) { return r.last - r.first; };
  const Less orders[] = {[](const LiveRange &a, const LiveRange &b) { return a.size > b.size; },
                         [&](const LiveRange &a, const LiveRange &b) { return length(a) > length(b); },
                         [&](const LiveRange &a, const LiveRange &b) {
                           return double(a.size) * (length(a) + 1) > double(b.size) * (length(b) + 1);
                         },
                         [](const LiveRange &a, const LiveRange &b) { return a.first < b.first; }};
  std::vector<LiveRange> best;
  int64_t bestSize = INT64_MAX, bound = arenaLowerBound(ranges);
  for (const Less &less : orders) {
    std::vector<size_t> order(ranges.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return less(ranges[a], ranges[b]); });
    std::vector<LiveRange> trial = ranges;
    if (int64_t size = place(trial, order); size < bestSize) {
      bestSize = size;
      best = std::move(trial);
    }
    if (bestSize == bound)
      break;
  }
  ranges = std::move(best);
  return ranges.empty() ? 0 : bestSize;
}

} // namespace dmxc
