//===- Reports.h - progress and times ---------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Compilation.h"
#include "dmxc/Support/CodeCache.h"
#include "dmxc/Support/WorkCount.h"
#include "dmxc/Tools/Progress.h"

namespace dmxc::driver {

/// How the options want progress to be said.
tools::ProgressForm progressForm(const Options &options);

/// The --time-report; `parts`: kernels, the slowest of which it has, and what writing consists of. `cached`: what came
/// from --cache.
std::string timeReport(const std::vector<TimeRow> &rows, const std::vector<WorkTime> &parts,
                       const std::optional<CodeCache::Counts> &cached, bool json);

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

/// How many states with a length a session holds, and what the caller still gives it; "" where there are none.
std::string statesSummary(const CompiledModel &model, mlir::ModuleOp module);

/// Bytes for people: "512 B", "1.5 MiB".
std::string byteText(uint64_t bytes);

} // namespace dmxc::driver
