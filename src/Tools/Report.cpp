//===- Report.cpp - what dmx-run reports ----------------------------------===//
#include "Report.h"
#include "dmxc/Tools/Compare.h"

#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Tools/Progress.h"
#include "inspect/InspectView.h"

#include "schemas/BundleFormat.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <ostream>
#include <set>
#include <sys/resource.h>

namespace dmxc::tools {

namespace {

std::string text(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

std::string bytesText(uint64_t bytes) { return humanBytes(static_cast<double>(bytes)); }

std::string dumped(const Json &json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

/// Rounded to nanoseconds, so that the file has no noise digits.
double ms(double value) { return std::round(value * 1e6) / 1e6; }

double percentile(const std::vector<double> &sorted, double share) {
  double rank = share * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(rank);
  size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (rank - static_cast<double>(below));
}

Json taskJson(const RunReport &report) {
  Json all = Json::array();
  for (const TaskFigures &task : report.tasks) {
    double calls = static_cast<double>(std::max<uint64_t>(task.calls, 1));
    all.push_back({{"name", task.name},
                   {"kernel", task.kernel},
                   {"nodes", task.nodes},
                   {"calls", task.calls},
                   {"mean_ms", ms(static_cast<double>(task.totalNs) / calls / 1e6)},
                   {"busy_ms", ms(static_cast<double>(task.busyNs) / calls / 1e6)},
                   {"slices", task.slices},
                   {"flops", task.flops},
                   {"bytes", task.bytes}});
  }
  return all;
}

} // namespace

LatencyFigures latencyFigures(std::vector<double> times) {
  LatencyFigures figures;
  if (times.empty())
    return figures;
  std::sort(times.begin(), times.end());
  figures.iters = times.size();
  figures.min = times.front();
  figures.median = percentile(times, 0.5);
  figures.mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  figures.p90 = percentile(times, 0.9);
  figures.p99 = percentile(times, 0.99);
  return figures;
}

void RunReport::setInfo(const dmx_session_info &info) {
  threads = info.threads;
  target = info.target ? info.target : "";
  isa = info.isa ? info.isa : "";
  betterIsa = info.better_isa ? info.better_isa : "";
  machine = info.machine ? info.machine : "";
  arenaBytes = info.arena_bytes;
  arenaLowerBound = info.arena_lower_bound;
  scratchBytes = info.scratch_bytes;
  constantBytes = info.constant_bytes;
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  peakRssMb = static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string levelText(const RunReport &r) {
  if (r.betterIsa.empty())
    return r.isa + (r.machine.empty() ? "" : ": " + r.machine);
  // Beside the level that it has, unless that is one machine's own: levels of one family differ behind the last dash.
  auto family = [](const std::string &level) { return level.substr(0, level.rfind('-')); };
  std::string levels = (family(r.isa) == family(r.betterIsa) ? r.isa + "+" : "") + r.betterIsa;
  return r.isa + "; this processor has " + r.betterIsa +
         ", which the bundle has no code of: compile the model with -t " + std::string(dmx::format::kHostTarget) + ":" +
         levels + " for more speed";
}

Status noteMachine(ModelSession &session) {
  auto info = session.info();
  if (!info)
    return info.takeError();
  RunReport report;
  report.setInfo(*info);
  if (report.machine.empty())
    return Status::ok();
  auto held = holdProgress();
  std::cerr << "runs on " << report.target << " " << levelText(report) << "\n";
  return Status::ok();
}

void printBenchmark(const RunReport &r, std::ostream &out) {
  const LatencyFigures &l = *r.latency;
  out << visible(r.model) << ": " << r.threads << (r.threads == 1 ? " thread" : " threads") << ", " << r.target << " "
      << r.isa << ", " << l.iters << " runs\n";
  if (!r.betterIsa.empty() || !r.machine.empty())
    out << "  level " << levelText(r) << "\n";
  out << "  latency ms   min " << text("%.4f", l.min) << "   median " << text("%.4f", l.median) << "   mean "
      << text("%.4f", l.mean) << "   p90 " << text("%.4f", l.p90) << "   p99 " << text("%.4f", l.p99) << "\n";
  out << "  load " << text("%.2f ms", r.loadMs) << ", session " << text("%.2f ms", r.sessionMs) << ", first run "
      << text("%.2f ms", r.runMs) << "\n";
  out << "  arena " << bytesText(r.arenaBytes) << " (lower bound " << bytesText(r.arenaLowerBound) << "), constants "
      << bytesText(r.constantBytes) << ", scratch " << bytesText(r.scratchBytes) << ", peak RSS "
      << text("%.1f MiB", r.peakRssMb) << "\n";
}

void printTaskTable(const RunReport &report, std::ostream &out) {
  std::vector<const TaskFigures *> order;
  double total = 0;
  for (const TaskFigures &task : report.tasks) {
    order.push_back(&task);
    total += static_cast<double>(task.totalNs);
  }
  std::stable_sort(order.begin(), order.end(), [](auto *a, auto *b) { return a->totalNs > b->totalNs; });
  out << "  share     mean ms   GFLOP/s   GB/s  threads  task\n";
  for (const TaskFigures *task : order) {
    if (!task->calls)
      continue;
    double ns = static_cast<double>(task->totalNs) / static_cast<double>(task->calls);
    char line[128];
    std::snprintf(line, sizeof line, "%6.2f %%  %9.4f  %8.1f  %5.1f  %7u  ",
                  total > 0 ? 100.0 * static_cast<double>(task->totalNs) / total : 0.0, ns / 1e6,
                  ns > 0 && task->flops > 0 ? static_cast<double>(task->flops) / ns : 0.0,
                  ns > 0 && task->bytes > 0 ? static_cast<double>(task->bytes) / ns : 0.0, task->slices);
    out << line << visible(task->name);
    if (!task->kernel.empty())
      out << " [" << visible(task->kernel) << "]";
    out << "\n";
  }
  if (report.droppedEvents)
    out << "  " << report.droppedEvents << " profile events were dropped\n";
}

Status writeReportJson(const std::string &path, const RunReport &r, bool perTask) {
  Json root = {{"model", r.model},          {"bundle", r.bundle},   {"target", r.target},  {"isa", r.isa},
               {"better_isa", r.betterIsa}, {"machine", r.machine}, {"threads", r.threads}};
  if (r.latency) {
    const LatencyFigures &l = *r.latency;
    root["iters"] = l.iters;
    root["latency"] = {{"unit", "ms"},       {"min", ms(l.min)}, {"median", ms(l.median)},
                       {"mean", ms(l.mean)}, {"p90", ms(l.p90)}, {"p99", ms(l.p99)}};
  }
  root["load_ms"] = ms(r.loadMs);
  root["session_ms"] = ms(r.sessionMs);
  root["first_run_ms"] = ms(r.runMs);
  root["peak_rss_mb"] = r.peakRssMb;
  root["arena_bytes"] = r.arenaBytes;
  root["arena_lower_bound"] = r.arenaLowerBound;
  root["scratch_bytes"] = r.scratchBytes;
  root["constant_bytes"] = r.constantBytes;
  if (!r.comparisons.empty()) {
    Json all = Json::array();
    for (const auto &[name, c] : r.comparisons)
      all.push_back({{"output", name},
                     {"pass", c.pass},
                     {"mismatches", c.mismatches},
                     {"count", c.count},
                     {"max_abs", c.maxAbsolute},
                     {"max_rel", c.maxRelative},
                     {"sqnr_db", std::isfinite(c.sqnr) ? Json(c.sqnr) : Json()}, // null: no noise
                     {"structural", c.structural}});
    root["rule"] = r.rule;
    root["comparisons"] = std::move(all);
  }
  if (perTask) {
    root["profiled_runs"] = r.profiledRuns;
    root["tasks"] = taskJson(r);
  }
  return writeFile(path, dumped(root));
}

Status writeChromeTrace(const std::string &path, const std::string &model, const std::vector<dmx_profile_event> &events,
                        const std::vector<TaskFigures> &tasks) {
  Json all = Json::array();
  all.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", model}}}});
  std::set<uint32_t> threads;
  for (const dmx_profile_event &event : events)
    threads.insert(event.thread);
  for (uint32_t thread : threads)
    all.push_back({{"name", "thread_name"},
                   {"ph", "M"},
                   {"pid", 1},
                   {"tid", thread},
                   {"args", {{"name", "thread " + std::to_string(thread)}}}});
  uint64_t origin = events.empty() ? 0 : events.front().start_ns;
  for (const dmx_profile_event &event : events) {
    Json args = {{"run", event.run}, {"task", event.task}};
    if (event.task < tasks.size()) {
      args["kernel"] = tasks[event.task].kernel;
      args["nodes"] = tasks[event.task].nodes;
      args["flops"] = tasks[event.task].flops;
    }
    all.push_back({{"name", event.name ? event.name : ""},
                   {"cat", "task"},
                   {"ph", "X"},
                   {"pid", 1},
                   {"tid", event.thread},
                   {"ts", static_cast<double>(event.start_ns - origin) / 1000},
                   {"dur", static_cast<double>(event.end_ns - event.start_ns) / 1000},
                   {"args", std::move(args)}});
  }
  Json root = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}};
  return writeFile(path, dumped(root));
}

std::string tensorSummary(const Tensor &tensor) {
  std::string summary = std::string(dtypeName(tensor.dtype())) + " " + shapeString(tensor.shape());
  int64_t count = tensor.numElements();
  if (count == 0)
    return summary + ", no elements";
  double low = INFINITY, high = -INFINITY;
  int64_t nans = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = tensor.asDouble(i);
    nans += std::isnan(value);
    low = std::min(low, std::isnan(value) ? low : value);
    high = std::max(high, std::isnan(value) ? high : value);
  }
  if (nans < count)
    summary += ", min " + text("%.6g", low) + ", max " + text("%.6g", high);
  if (nans)
    summary += ", " + std::to_string(nans) + " NaN";
  summary += ", [";
  for (int64_t i = 0; i < std::min<int64_t>(count, 8); ++i)
    summary += (i ? ", " : "") + text("%.6g", tensor.asDouble(i));
  return summary + (count > 8 ? ", ...]" : "]");
}

} // namespace dmxc::tools
