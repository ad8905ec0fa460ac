//===- InspectTimeline.cpp - a trace as a figure --------------------------===//
#include "Html.h"
#include "InspectCode.h"
#include "InspectHtml.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace dmxc::tools {

using namespace html;

namespace {

constexpr double kLeft = 120, kWidth = 1100, kRow = 15;
/// Pages with more rectangles are no pleasure.
constexpr size_t kMostShapes = 30000;

/// To the nanosecond.
std::string micro(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

struct Slice {
  double start = 0, end = 0;
  std::string name, colour, title;
  size_t count = 1;
};

struct Row {
  std::string name;
  std::vector<Slice> slices;
  double busy = 0;
};

struct Process {
  std::string name;
  std::map<int64_t, Row> rows;
};

/// Slices that share a pixel become one.
void mergeNarrow(Row &row, double perPixel) {
  std::stable_sort(row.slices.begin(), row.slices.end(),
                   [](const Slice &a, const Slice &b) { return a.start < b.start; });
  std::vector<Slice> merged;
  for (Slice &slice : row.slices) {
    bool narrow = slice.end - slice.start < perPixel;
    if (Slice *last = merged.empty() ? nullptr : &merged.back();
        last && narrow && slice.start - last->end < perPixel / 2 && last->end - last->start < 4 * perPixel) {
      last->end = std::max(last->end, slice.end);
      last->count += slice.count;
    } else {
      merged.push_back(std::move(slice));
    }
  }
  row.slices = std::move(merged);
}

/// Processes with their rows; times in microseconds.
class Timeline {
public:
  explicit Timeline(const Json &trace) {
    for (const Json &event : partOf(trace, "traceEvents"))
      add(event);
  }
  std::string run();

private:
  std::map<int64_t, Process> processes;
  double begin = 0, end = 0;
  bool any = false;

  void add(const Json &event);
  std::string figure(Process &process, double perPixel);
};

void Timeline::add(const Json &event) {
  std::string phase = textOf(event, "ph"), name = textOf(event, "name");
  const Json &args = partOf(event, "args");
  Process &process = processes[wholeOf(event, "pid")];
  auto thread = wholeOf(event, "tid");
  if (phase == "M" && name == "process_name")
    process.name = textOf(args, "name");
  if (phase == "M" && name == "thread_name")
    process.rows[thread].name = textOf(args, "name");
  if (phase != "X")
    return;
  double start = numberOf(event, "ts"), duration = std::max(numberOf(event, "dur"), 0.0);
  begin = any ? std::min(begin, start) : start;
  end = any ? std::max(end, start + duration) : start + duration;
  any = true;
  std::string what = textOf(args, "instruction"), title = name;
  if (!what.empty() && what != name)
    title += ", " + what;
  if (std::string stream = textOf(args, "stream"); !stream.empty())
    title += " in " + stream + " at " + std::to_string(wholeOf(args, "at"));
  Row &row = process.rows[thread];
  row.busy += duration;
  row.slices.push_back({start, start + duration, name, colourOf(name), std::move(title), 1});
}

std::string Timeline::figure(Process &process, double perPixel) {
  double height = kRow * static_cast<double>(process.rows.size()) + kRow;
  std::string shapes;
  for (int tick = 0; tick <= 10; ++tick) {
    double x = kLeft + kWidth * tick / 10;
    shapes += line(x, 0, x, height - kRow);
    shapes += text(x, height - 3, tick == 10 ? "end" : "middle", number(begin + (end - begin) * tick / 10) + " us");
  }
  double y = 0;
  for (auto &[thread, row] : process.rows) {
    mergeNarrow(row, perPixel);
    shapes += text(kLeft - 4, y + 11, "end", row.name);
    for (const Slice &slice : row.slices) {
      double x = kLeft + kWidth * (slice.start - begin) / std::max(end - begin, 1e-9);
      double width = std::max(kWidth * (slice.end - slice.start) / std::max(end - begin, 1e-9), 0.5);
      std::string title =
          slice.count > 1 ? std::to_string(slice.count) + " slices, the first: " + slice.title : slice.title;
      title += ": " + micro(slice.start) + " to " + micro(slice.end) + " us";
      shapes += rect(x, y + 1, width, kRow - 2, "", slice.colour, title);
      if (std::string label = fitting(slice.name, width); !label.empty() && slice.count == 1)
        shapes += text(x + 2, y + 11, "start", label);
    }
    y += kRow;
  }
  return svg(kLeft + kWidth + 10, height, shapes);
}

std::string Timeline::run() {
  if (!any)
    return "<p>The trace has no intervals.</p>\n";
  size_t shapes = 0;
  for (auto &[pid, process] : processes)
    for (auto &[thread, row] : process.rows)
      shapes += row.slices.size();
  // Half a pixel is lost on nobody; large traces are drawn coarser.
  double pixels = std::max(0.5, 2.0 * static_cast<double>(shapes) / kMostShapes);
  double perPixel = (end - begin) / kWidth * (shapes > kMostShapes ? pixels : 0.5);
  std::string html;
  for (auto &[pid, process] : processes) {
    if (process.rows.empty())
      continue;
    html += heading(3, process.name.empty() ? "process " + std::to_string(pid) : process.name);
    html += figure(process, perPixel);
    Table busy{"busy", {"row", "us", "share"}, {}};
    for (const auto &[thread, row] : process.rows)
      busy.add({row.name, number(row.busy), number(100 * row.busy / std::max(end - begin, 1e-9)) + " %"});
    html += details("busy times", tableHtml(busy, 4));
  }
  return html;
}

} // namespace

std::string timelineSection(const Json &trace) { return Timeline(trace).run(); }

} // namespace dmxc::tools
