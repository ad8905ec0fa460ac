//===- InspectHtml.cpp - a bundle as one web page -------------------------===//
#include "InspectHtml.h"

#include "Html.h"

#include "dmxc/Bundle/Validate.h"
#include "dmxc/Tools/Inspect.h"

#include <algorithm>

namespace dmxc::tools {

using namespace bundle;
using namespace html;

namespace {

/// One rectangle a buffer: its tasks from left to right, its bytes upwards.
std::string memoryMap(const GraphDesc &graph, size_t arena, int64_t arenaSize, const std::vector<Lifetime> &lives) {
  constexpr double left = 70, width = 1100, height = 420;
  double tasks = std::max<double>(1, static_cast<double>(graph.tasks.size()));
  double bytes = std::max<double>(1, static_cast<double>(arenaSize));
  std::string shapes = text(left - 4, 10, "end", humanBytes(bytes)) + text(left - 4, height - 2, "end", "0");
  for (const Lifetime &life : lives) {
    if (static_cast<size_t>(life.arena) != arena || life.first < 0)
      continue;
    double x = left + width * static_cast<double>(life.first) / tasks;
    double w = width * static_cast<double>(life.last - life.first + 1) / tasks;
    double h = height * static_cast<double>(life.size) / bytes;
    double y = height - height * static_cast<double>(life.offset) / bytes - h;
    std::string title = "buffer " + std::to_string(life.buffer) + ": " +
                        std::string(dtypeName(graph.buffers[life.buffer].dtype)) + " " +
                        bundle::shapeString(graph.buffers[life.buffer].shape) + ", " +
                        humanBytes(static_cast<double>(life.size)) + " at " + std::to_string(life.offset) + ", tasks " +
                        std::to_string(life.first) + " (" + graph.tasks[life.first].name + ") to " +
                        std::to_string(life.last) + " (" + graph.tasks[life.last].name + ")";
    // Neighbouring ids get hues far apart.
    shapes +=
        rect(x, y, w, std::max(h, 0.5), "", "hsl(" + std::to_string(life.buffer * 137 % 360) + " 55% 60%)", title);
    std::string label = h >= 11 ? fitting(graph.tasks[life.first].name, w) : "";
    if (!label.empty())
      shapes += text(x + 2, y + std::min(h, 24.0) / 2 + 4, "start", label);
  }
  return svg(left + width, height, shapes);
}

std::string memorySection(const GraphDesc &graph) {
  auto dims = extremeDims(graph, true);
  if (!dims)
    return "<p>" + escaped(dims.error().message) + "</p>\n";
  std::vector<Lifetime> lives = lifetimes(graph, *dims);
  std::string html;
  for (size_t i = 0; i < graph.arenas.size(); ++i) {
    auto size = graph.arenas[i].size.evaluate(*dims);
    if (!size || *size == 0)
      continue;
    html += heading(2, "memory of '" + graph.name + "', arena " + std::to_string(i) + " (" +
                           humanBytes(static_cast<double>(*size)) + ")");
    html += "<p>Tasks from left to right, bytes upwards; a rectangle is a buffer from its first to its last use, with "
            "the name of the task that makes it. Symbolic dims are at their upper bounds.</p>\n";
    html += memoryMap(graph, i, *size, lives);
  }
  return html;
}

} // namespace

Result<std::string> inspectHtml(const Bundle &bundle, const std::vector<std::string> &reportFiles) {
  auto summary = makeView(bundle, "summary"), kernels = makeView(bundle, "kernels");
  if (!kernels)
    return kernels.takeError();
  auto reports = reportSections(bundle, reportFiles);
  if (!reports)
    return reports.takeError();
  std::string title = escaped(bundle.manifest().modelName) + " - bundle";
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title +
                     "</title><style>" + style + "</style></head><body>\n<h1>" + title + "</h1>\n<table>\n";
  for (const auto &[name, value] : summary->facts)
    html += "<tr><th>" + escaped(name) + "</th>" + cell(value) + "</tr>\n";
  html += "</table>\n";
  for (const Table &table : summary->tables)
    html += tableHtml(table);
  for (const GraphDesc &graph : bundle.graphs().graphs)
    html += memorySection(graph);
  html += *reports;
  auto tasks = makeView(bundle, "tasks"), sizes = makeView(bundle, "sizes");
  if (!tasks)
    return tasks.takeError();
  for (const Table &table : tasks->tables)
    html += tableHtml(table);
  html += codeSections(bundle, *kernels);
  for (const Table &table : sizes->tables)
    html += tableHtml(table);
  return html + "</body></html>\n";
}

} // namespace dmxc::tools
