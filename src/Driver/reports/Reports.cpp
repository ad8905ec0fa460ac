//===- Reports.cpp - progress and times -----------------------------------===//
#include "Reports.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sys/resource.h>

namespace dmxc::driver {

tools::ProgressForm progressForm(const Options &options) {
  if (options.quiet || options.jsonDiagnostics || options.progress == ProgressMode::None)
    return tools::ProgressForm::None;
  return options.progress == ProgressMode::Plain ? tools::ProgressForm::Plain : tools::progressFormOfStderr();
}

/// Highest resident size so far, in MiB.
static double peakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024.0;
}

/// The kernels that took longest to compile, slowest first.
static std::vector<WorkTime> slowestKernels(const std::vector<WorkTime> &parts) {
  constexpr size_t most = 10;
  std::vector<WorkTime> kernels;
  for (const WorkTime &part : parts)
    if (part.kind == "kernel")
      kernels.push_back(part);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const WorkTime &a, const WorkTime &b) { return a.seconds > b.seconds; });
  kernels.resize(std::min(most, kernels.size()));
  return kernels;
}

/// The rows with what writing consists of: parts that may overlap.
static std::vector<TimeRow> withWriting(std::vector<TimeRow> rows, const std::vector<WorkTime> &parts) {
  for (const WorkTime &part : parts)
    if (part.kind == "write")
      rows.push_back({"write", part.name, part.seconds});
  return rows;
}

static std::string timeReportJson(const std::vector<TimeRow> &rows, const std::vector<WorkTime> &kernels,
                                  const std::optional<CodeCache::Counts> &cached, double total) {
  using Json = nlohmann::ordered_json;
  Json phases = Json::array(), slowest = Json::array();
  for (const TimeRow &row : rows)
    if (row.pass.empty())
      phases.push_back({{"phase", row.phase}, {"seconds", row.seconds}, {"passes", Json::array()}});
  for (const TimeRow &row : rows)
    for (auto &phase : phases)
      if (!row.pass.empty() && phase["phase"] == row.phase)
        phase["passes"].push_back({{"pass", row.pass}, {"seconds", row.seconds}});
  for (const WorkTime &kernel : kernels)
    slowest.push_back({{"kernel", kernel.name}, {"seconds", kernel.seconds}});
  Json report{{"seconds", total}, {"peak_rss_mb", peakMemory()}, {"phases", phases}, {"slowest_kernels", slowest}};
  if (cached)
    report["cache"] = {{"found", cached->found}, {"compiled", cached->made}, {"damaged", cached->damaged}};
  return report.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string timeReport(const std::vector<TimeRow> &timed, const std::vector<WorkTime> &parts,
                       const std::optional<CodeCache::Counts> &cached, bool json) {
  std::vector<TimeRow> rows = withWriting(timed, parts);
  std::vector<WorkTime> kernels = slowestKernels(parts);
  double total = 0;
  for (const TimeRow &row : rows)
    total += row.pass.empty() ? row.seconds : 0;
  if (json)
    return timeReportJson(rows, kernels, cached, total);
  auto line = [&](double seconds, const std::string &name) {
    return llvm::formatv("{0,11:f3} {1,5:f1}%  {2}\n", seconds, total ? 100 * seconds / total : 0.0, name).str();
  };
  std::string text = "    seconds  share  step\n";
  for (const TimeRow &phase : rows) {
    if (!phase.pass.empty())
      continue;
    text += line(phase.seconds, phase.phase);
    for (const TimeRow &pass : rows)
      if (!pass.pass.empty() && pass.phase == phase.phase)
        text += line(pass.seconds, "  " + pass.pass);
  }
  text += llvm::formatv("{0,11:f3}         total; peak memory {1:f0} MiB\n", total, peakMemory()).str();
  if (cached)
    text += llvm::formatv("{0,11}  kernels' code from the cache, {1} compiled, {2} damaged and made anew\n",
                          cached->found, cached->made, cached->damaged)
                .str();
  if (!kernels.empty())
    text += "    seconds  slowest kernels, on whatever threads\n";
  for (const WorkTime &kernel : kernels)
    text += llvm::formatv("{0,11:f3}  {1}\n", kernel.seconds, kernel.name).str();
  return text;
}

RoundingTotals roundingOf(const CompiledModel &model) {
  RoundingTotals totals;
  for (const ConstantPayload &constant : model.constants) {
    if (!constant.rounded)
      continue;
    ++totals.weights;
    totals.before += constant.rounded->bytes;
    totals.after += constant.rounded->kept;
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

/// Which inputs stay beside states with a length: those that a decoder's texts say follow it, else all.
static std::string staysInput(const CompiledModel &model, mlir::ModuleOp module) {
  auto texts = module->getAttrOfType<mlir::DictionaryAttr>(dmir::kMetadataAttr);
  std::string followers, all;
  for (const bundle::EntryPoint &entry : model.entryPoints)
    for (const bundle::TensorDesc &input : entry.inputs) {
      all += (all.empty() ? "'" : ", '") + input.name + "'";
      for (const char *role : {"generate.mask", "generate.positions"})
        if (auto name = texts ? texts.getAs<mlir::StringAttr>(role) : mlir::StringAttr();
            name && name.getValue() == input.name)
          followers += (followers.empty() ? "'" : ", '") + input.name + "'";
    }
  return followers.empty() ? all + " stay inputs, also where they say no more than how many rows there are"
                           : "inputs that follow their length: " + followers;
}

std::string statesSummary(const CompiledModel &model, mlir::ModuleOp module) {
  std::string text;
  for (const bundle::GraphDesc &graph : model.graph.graphs)
    for (const bundle::DimDesc &length : graph.dims) {
      if (!length.next)
        continue;
      int64_t count = 0, bytes = 0;
      for (const bundle::BufferDesc &buffer : graph.buffers)
        if (buffer.length == length.name)
          ++count, bytes += buffer.size.constant().value_or(0);
      text += (text.empty() ? "" : "\n") +
              llvm::formatv("states: {0} with room for {1} rows of '{2}', {3} a session; {4}", count, length.max,
                            length.name, byteText(static_cast<uint64_t>(bytes)), staysInput(model, module))
                  .str();
    }
  return text;
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
