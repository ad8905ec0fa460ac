//===- Profile.h - times of tasks in runs -----------------------*- C++ -*-===//
#pragma once

#include "runtime/devices/Device.h"

#include <cstdint>
#include <span>
#include <vector>

namespace dmxrt {

struct TaskFigures {
  uint64_t calls = 0, totalNs = 0, busyNs = 0;
};

/// Collects the slices of runs. Tasks have the session's numbers.
class Profile {
public:
  void setTaskCount(size_t count);
  /// With room for `capacity` events; 0: off. Forgets what there is.
  void start(uint32_t capacity);
  bool on() const { return active; }

  /// One execution of the graph whose tasks are numbered from `first`; `names` are theirs.
  void record(uint32_t first, std::span<const TaskSlice> slices, std::span<const std::string> names);
  void endRun() { ++runs; }

  const TaskFigures &figuresOf(uint32_t task) const { return figures[task]; }
  /// As dmx_session_take_events has it.
  void take(dmx_profile_event *out, uint32_t capacity, uint32_t &count, uint64_t &dropped);

private:
  bool active = false;
  uint64_t runs = 0, droppedEvents = 0;
  std::vector<dmx_profile_event> events; // capacity reserved by start()
  uint32_t eventCapacity = 0;
  std::vector<TaskFigures> figures;
  std::vector<std::pair<uint64_t, uint64_t>> spans; // scratch of record(); zeros outside of it
};

} // namespace dmxrt
