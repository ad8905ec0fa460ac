//===- WorkCount.h - how far the work of this process is --------*- C++ -*-===//
//
// Whoever does work that may take long says here what it is and how far it has come; whoever shows it reads. One work
// at a time: a new one replaces the last. All functions are thread-safe.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc {

struct WorkCount {
  std::string unit; ///< "kernels", "bytes"; "" where nothing is counted
  uint64_t done = 0, total = 0;
  std::string running; ///< what of it runs now; may be ""
};

/// Starts counting `total` of something, or nothing.
void beginWork(std::string_view unit = "", uint64_t total = 0);
/// Names what runs now.
void noteWork(std::string_view running);
void advanceWork(uint64_t by = 1);
WorkCount currentWork();

/// What parts of the work took, for reports.
struct WorkTime {
  std::string kind, name; ///< "kernel", its name; "write", "hashing"
  double seconds = 0;
};
/// Adds to the time of that kind and name.
void addWorkTime(std::string_view kind, std::string_view name, double seconds);
/// In the order of their first time; forgets them.
std::vector<WorkTime> takeWorkTimes();

/// Adds the time of its life.
class WorkTimer {
public:
  WorkTimer(std::string_view kind, std::string_view name) : kind(kind), name(name) {}
  WorkTimer(const WorkTimer &) = delete;
  ~WorkTimer() {
    addWorkTime(kind, name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

private:
  std::string kind, name;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

} // namespace dmxc
