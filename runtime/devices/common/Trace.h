//===- Trace.h - a run as a Chrome trace ------------------------*- C++ -*-===//
#pragma once

#include "TextWriter.h"

#include <set>
#include <utility>

namespace dmxrt::sim {

/// Writes intervals as they come: a process per unit of the device, a row per engine of it.
class Trace {
public:
  Trace() { out.add("{\"displayTimeUnit\": \"ns\", \"traceEvents\": ["); }

  /// The names of a process and of a row, the first time that they come.
  void process(uint32_t process, const std::string &name);
  void row(uint32_t process, uint32_t row, const std::string &name);
  /// Begins an interval; `finish` ends it, after arguments.
  void begin(uint32_t process, uint32_t row, double microseconds, double duration, std::string_view name);
  void argument(const char *key, std::string_view text);
  void argument(const char *key, uint32_t number);
  void finish();

  bool save(const std::string &path) {
    out.add("\n]}\n");
    return out.save(path);
  }

private:
  void entry() { out.add("%s\n", entries++ ? "," : ""); }
  void key(const char *key) { out.add("%s\"%s\": ", arguments++ ? ", " : "", key); }

  TextWriter out;
  uint64_t entries = 0;
  int arguments = 0; ///< of the interval at hand
  std::set<uint32_t> processes;
  std::set<std::pair<uint32_t, uint32_t>> rows;
};

} // namespace dmxrt::sim
