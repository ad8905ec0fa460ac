//===- WorkCount.cpp - how far the work of this process is ----------------===//
#include "dmxc/Support/WorkCount.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace dmxc {

namespace {

struct State {
  std::mutex mutex;
  WorkCount count;
  std::atomic<uint64_t> done{0};
  std::vector<WorkTime> times;
  std::map<std::pair<std::string, std::string>, size_t> rows; ///< of `times`
};

State &state() {
  static State *const only = new State; // threads may still count while the process ends
  return *only;
}

} // namespace

void beginWork(std::string_view unit, uint64_t total) {
  std::lock_guard lock(state().mutex);
  state().count = {std::string(unit), 0, total, ""};
  state().done = 0;
}

void noteWork(std::string_view running) {
  std::lock_guard lock(state().mutex);
  state().count.running = running;
}

void advanceWork(uint64_t by) { state().done.fetch_add(by, std::memory_order_relaxed); }

WorkCount currentWork() {
  std::lock_guard lock(state().mutex);
  WorkCount now = state().count;
  now.done = state().done;
  return now;
}

void addWorkTime(std::string_view kind, std::string_view name, double seconds) {
  std::lock_guard lock(state().mutex);
  auto [place, isNew] = state().rows.try_emplace({std::string(kind), std::string(name)}, state().times.size());
  if (isNew)
    state().times.push_back({std::string(kind), std::string(name), 0});
  state().times[place->second].seconds += seconds;
}

std::vector<WorkTime> takeWorkTimes() {
  std::lock_guard lock(state().mutex);
  state().rows.clear();
  return std::exchange(state().times, {});
}

} // namespace dmxc
