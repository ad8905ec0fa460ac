//===- Reports.h - progress and times ---------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Compilation.h"

namespace dmxc::driver {

/// One line on stderr that says which step runs: rewritten in place on a
/// terminal, one line a step otherwise.
class Progress {
public:
  Progress(const Options &options, size_t steps);
  ~Progress() { clear(); }
  void step(const std::string &name, const std::string &summary);
  /// Removes the line, so that a message can be printed.
  void clear();

private:
  ProgressMode mode;
  size_t count = 0, steps;
  bool shown = false;
};

/// The --time-report.
std::string timeReport(const std::vector<TimeRow> &rows, bool json);

/// What rounding a model's constants saves and costs.
struct RoundingTotals {
  int64_t weights = 0;
  uint64_t before = 0, after = 0;         ///< bytes
  const RoundedConstant *worst = nullptr; ///< the one of the greatest error
  std::string errorText() const;          ///< of the worst
  /// "rounded 49 weights: 474.7 MiB in 237.4 MiB, ..."; "" where none is.
  std::string summary() const;
};
RoundingTotals roundingOf(const CompiledModel &model);

/// Bytes for people: "512 B", "1.5 MiB".
std::string byteText(uint64_t bytes);

} // namespace dmxc::driver
