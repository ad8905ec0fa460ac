//===- Report.h - what dmx-run reports --------------------------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Tools/Run.h"

namespace dmxc::tools {

struct RunReport {
  std::string bundle, model;
  double loadMs = 0, sessionMs = 0, runMs = 0;
  std::optional<LatencyFigures> latency;
  std::vector<std::pair<std::string, Comparison>> comparisons;
  std::string rule; ///< by which those were judged
  std::vector<TaskFigures> tasks;
  uint32_t profiledRuns = 0;
  uint64_t droppedEvents = 0;

  uint32_t threads = 0;
  std::string target, isa, betterIsa, machine;
  uint64_t arenaBytes = 0, arenaLowerBound = 0, scratchBytes = 0, constantBytes = 0;
  double peakRssMb = 0;
  /// Copies the session's facts and this process' peak memory.
  void setInfo(const dmx_session_info &info);
};

/// "x86-64-v3; ...", with what to do where the processor has a better level than the bundle.
std::string levelText(const RunReport &report);
void printBenchmark(const RunReport &report, std::ostream &out);
/// Tasks by their share of the time, the longest first.
void printTaskTable(const RunReport &report, std::ostream &out);
Status writeReportJson(const std::string &path, const RunReport &report, bool perTask);

/// Chrome's trace-event format (chrome://tracing, ui.perfetto.dev): one row a
/// thread, one slice a task.
Status writeChromeTrace(const std::string &path, const std::string &model, const std::vector<dmx_profile_event> &events,
                        const std::vector<TaskFigures> &tasks);

} // namespace dmxc::tools
