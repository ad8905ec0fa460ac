//===- Counter.h - tokens that order threads of a device --------*- C++ -*-===//
#pragma once

#include "Shadow.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace dmxrt::sim {

/// What a thread has reached: what it is ordered behind, and its time.
struct Moment {
  VectorClock known;
  uint64_t clock = 0;

  void join(const Moment &other) {
    known.join(other.known);
    clock = std::max(clock, other.clock);
  }
};

/// A token that counts: who takes from it is ordered behind those who gave what is taken, the oldest first.
class Counter {
public:
  explicit Counter(int64_t credits = 0) { give(credits, {}); }
  /// False, and nothing taken, when there are not so many yet.
  bool take(int64_t count, Moment &taker) {
    if (there < count)
      return false;
    there -= count;
    while (count > 0) {
      auto &[left, giver] = given.front();
      int64_t part = std::min(left, count);
      taker.join(giver);
      count -= part;
      left -= part;
      if (left == 0)
        given.pop_front();
    }
    return true;
  }
  void give(int64_t count, const Moment &giver) {
    if (count > 0)
      given.emplace_back(count, giver);
    there += count;
  }

private:
  std::deque<std::pair<int64_t, Moment>> given; ///< the oldest first
  int64_t there = 0;
};

} // namespace dmxrt::sim
