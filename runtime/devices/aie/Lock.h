//===- Lock.h - a counting lock of a tile -----------------------*- C++ -*-===//
#pragma once

#include "runtime/devices/common/Counter.h"

namespace dmxrt::aie {

using sim::Moment;

/// Who takes from it is ordered behind those who gave what is taken, the oldest first; who waits for an exact value,
/// behind all who changed it.
class Lock {
public:
  int64_t value() const { return now; }
  /// Acquired values as BDs store them: -n is "at least n", n is "exactly n"; both take n.
  bool admits(int64_t acquired) const { return acquired < 0 ? now >= -acquired : now == acquired; }
  void take(int64_t acquired, Moment &taker) {
    int64_t count = acquired < 0 ? -acquired : acquired;
    if (acquired >= 0)
      taker.join(all);
    now -= count;
    drop(count, &taker);
    all.join(taker);
  }
  void give(int64_t count, const Moment &giver) {
    now += count;
    if (count > 0)
      given.emplace_back(count, giver);
    else
      drop(-count, nullptr);
    all.join(giver);
  }
  void set(int64_t value, const Moment &setter) {
    given.clear();
    now = 0;
    give(value, setter);
  }

private:
  void drop(int64_t count, Moment *taker) {
    while (count > 0 && !given.empty()) {
      auto &[left, giver] = given.front();
      int64_t part = std::min(left, count);
      if (taker)
        taker->join(giver);
      count -= part;
      left -= part;
      if (left == 0)
        given.pop_front();
    }
  }

  int64_t now = 0;
  std::deque<std::pair<int64_t, Moment>> given;
  Moment all;
};

} // namespace dmxrt::aie
