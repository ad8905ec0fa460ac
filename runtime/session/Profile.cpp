//===- Profile.cpp - times of tasks in runs -------------------------------===//

#include "Profile.h"

#include <algorithm>

namespace dmxrt {

void Profile::setTaskCount(size_t count) {
  figures.resize(count);
  spans.resize(count);
}

void Profile::start(uint32_t capacity) {
  std::vector<dmx_profile_event> room;
  room.reserve(capacity);
  events.swap(room);
  eventCapacity = capacity;
  std::fill(figures.begin(), figures.end(), TaskFigures());
  runs = droppedEvents = 0;
  active = capacity != 0;
}

void Profile::record(uint32_t first, std::span<const TaskSlice> slices, std::span<const std::string> names) {
  for (const TaskSlice &slice : slices) {
    uint32_t task = first + slice.task;
    auto &[start, end] = spans[task];
    start = start ? std::min(start, slice.startNs) : slice.startNs;
    end = std::max(end, slice.endNs);
    figures[task].busyNs += slice.endNs - slice.startNs;
    if (events.size() < eventCapacity)
      events.push_back({task, slice.thread, runs, slice.startNs, slice.endNs, names[slice.task].c_str()});
    else
      ++droppedEvents;
  }
  for (const TaskSlice &slice : slices) {
    auto &[start, end] = spans[first + slice.task];
    if (end) {
      ++figures[first + slice.task].calls;
      figures[first + slice.task].totalNs += end - start;
    }
    start = end = 0;
  }
}

void Profile::take(dmx_profile_event *out, uint32_t capacity, uint32_t &count, uint64_t &dropped) {
  if (!out) {
    count = static_cast<uint32_t>(events.size());
    dropped = droppedEvents;
    return;
  }
  std::sort(events.begin(), events.end(), [](const dmx_profile_event &a, const dmx_profile_event &b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.thread < b.thread;
  });
  count = static_cast<uint32_t>(std::min<size_t>(capacity, events.size()));
  std::copy_n(events.begin(), count, out);
  events.erase(events.begin(), events.begin() + count);
  dropped = std::exchange(droppedEvents, 0);
}

} // namespace dmxrt
