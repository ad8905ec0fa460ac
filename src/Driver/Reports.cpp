//===- Reports.cpp - progress and times -----------------------------------===//
#include "Reports.h"

#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

#include <cstdio>
#include <sys/resource.h>
#include <unistd.h>

namespace dmxc::driver {

static ProgressMode effectiveMode(const Options &options) {
  if (options.quiet || options.jsonDiagnostics)
    return ProgressMode::None;
  if (options.progress != ProgressMode::Auto)
    return options.progress;
  const char *term = std::getenv("TERM");
  bool terminal = isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
  return terminal ? ProgressMode::Auto : ProgressMode::None;
}

Progress::Progress(const Options &options, size_t steps) : mode(effectiveMode(options)), steps(steps) {}

void Progress::step(const std::string &name, const std::string &summary) {
  ++count;
  if (mode == ProgressMode::None)
    return;
  std::string line = llvm::formatv("[{0}/{1}] {2}: {3}", count, steps, name, summary).str();
  if (mode == ProgressMode::Plain) {
    std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  std::fprintf(stderr, "\r\033[K%.*s", 79, line.c_str());
  std::fflush(stderr);
  shown = true;
}

void Progress::clear() {
  if (shown)
    std::fprintf(stderr, "\r\033[K");
  shown = false;
}

/// Highest resident size so far, in MiB.
static double peakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024.0;
}

std::string timeReport(const std::vector<TimeRow> &rows, bool json) {
  double total = 0;
  for (const TimeRow &row : rows)
    total += row.pass.empty() ? row.seconds : 0;
  if (json) {
    nlohmann::ordered_json phases = nlohmann::ordered_json::array();
    for (const TimeRow &row : rows)
      if (row.pass.empty())
        phases.push_back({{"phase", row.phase}, {"seconds", row.seconds}, {"passes", nlohmann::ordered_json::array()}});
    for (const TimeRow &row : rows)
      for (auto &phase : phases)
        if (!row.pass.empty() && phase["phase"] == row.phase)
          phase["passes"].push_back({{"pass", row.pass}, {"seconds", row.seconds}});
    return nlohmann::ordered_json{{"seconds", total}, {"peak_rss_mb", peakMemory()}, {"phases", phases}}.dump(1) + "\n";
  }
  std::string text = "    seconds  share  step\n";
  for (const TimeRow &phase : rows) {
    if (!phase.pass.empty())
      continue;
    text += llvm::formatv("{0,11:f3} {1,5:f1}%  {2}\n", phase.seconds, total ? 100 * phase.seconds / total : 0.0,
                          phase.phase)
                .str();
    for (const TimeRow &pass : rows)
      if (!pass.pass.empty() && pass.phase == phase.phase)
        text += llvm::formatv("{0,11:f3} {1,5:f1}%    {2}\n", pass.seconds, total ? 100 * pass.seconds / total : 0.0,
                              pass.pass)
                    .str();
  }
  return text + llvm::formatv("{0,11:f3}         total; peak memory {1:f0} MiB\n", total, peakMemory()).str();
}

RoundingTotals roundingOf(const CompiledModel &model) {
  RoundingTotals totals;
  for (const ConstantPayload &constant : model.constants) {
    if (!constant.rounded)
      continue;
    ++totals.weights;
    totals.before += constant.rounded->bytes;
    totals.after += constant.size;
    if (!totals.worst || totals.worst->error < constant.rounded->error)
      totals.worst = &*constant.rounded;
  }
  return totals;
}

std::string RoundingTotals::errorText() const { return llvm::formatv("{0:e2}", worst ? worst->error : 0.0).str(); }

std::string RoundingTotals::summary() const {
  if (!weights)
    return "";
  return llvm::formatv("rounded {0} {1}: {2} in {3}, relative RMS error at most {4} ('{5}')", weights,
                       weights == 1 ? "weight" : "weights", byteText(before), byteText(after), errorText(), worst->node)
      .str();
}

std::string byteText(uint64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  const char *units[] = {"KiB", "MiB", "GiB"};
  double value = bytes / 1024.0;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return llvm::formatv("{0:f1} {1}", value, units[unit]).str();
}

} // namespace dmxc::driver
