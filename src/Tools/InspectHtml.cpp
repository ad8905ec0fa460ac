//===- InspectHtml.cpp - a bundle as one web page -------------------------===//
#include "InspectView.h"

#include "dmxc/Bundle/Validate.h"
#include "dmxc/Tools/Inspect.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dmxc::tools {

using namespace bundle;

namespace {

constexpr const char *style = R"(
body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5em 0 2em}
th,td{border:1px solid #ccc;padding:.15em .5em;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
th{background:#f2f2f2;position:sticky;top:0}
svg{background:#fafafa;border:1px solid #ccc}
rect.b{stroke:#fff;stroke-width:.5}
rect.b:hover{stroke:#000;stroke-width:1.5}
)";

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string cell(const Json &value) {
  bool numeric = value.is_number();
  std::string text = value.is_string() ? value.get<std::string>() : "";
  if (value.is_array())
    for (const Json &item : value)
      text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  else if (!value.is_string())
    text = value.dump();
  return (numeric ? "<td class=\"n\">" : "<td>") + escaped(text) + "</td>";
}

std::string tableHtml(const Table &table) {
  std::string html = "<h2>" + escaped(table.name) + "</h2>\n<table><tr>";
  for (const std::string &column : table.columns)
    html += "<th>" + escaped(column) + "</th>";
  html += "</tr>\n";
  for (const std::vector<Json> &row : table.rows) {
    html += "<tr>";
    for (const Json &value : row)
      html += cell(value);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

/// One rectangle a buffer: its tasks from left to right, its bytes upwards.
std::string memoryMap(const GraphDesc &graph, size_t arena, int64_t arenaSize, const std::vector<Lifetime> &lives) {
  constexpr double width = 1100, height = 420;
  double tasks = std::max<double>(1, static_cast<double>(graph.tasks.size()));
  double bytes = std::max<double>(1, static_cast<double>(arenaSize));
  std::string svg = "<svg width=\"1100\" height=\"420\" role=\"img\">\n";
  for (const Lifetime &life : lives) {
    if (static_cast<size_t>(life.arena) != arena || life.first < 0)
      continue;
    double x = width * static_cast<double>(life.first) / tasks;
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
    svg += "<rect class=\"b\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(w) + "\" height=\"" +
           number(std::max(h, 0.5)) + "\" fill=\"hsl(" + std::to_string(life.buffer * 137 % 360) +
           " 55% 60%)\"><title>" + escaped(title) + "</title></rect>\n";
  }
  return svg + "</svg>\n";
}

std::string memorySection(const GraphDesc &graph) {
  auto dims = extremeDims(graph, true);
  if (!dims)
    return "<p>" + escaped(dims.error().message) + "</p>\n";
  std::vector<Lifetime> lives = lifetimes(graph, *dims);
  std::string html;
  for (size_t i = 0; i < graph.arenas.size(); ++i) {
    auto size = graph.arenas[i].size.evaluate(*dims);
    if (!size)
      continue;
    html += "<h2>memory of '" + escaped(graph.name) + "', arena " + std::to_string(i) + " (" +
            humanBytes(static_cast<double>(*size)) +
            ")</h2>\n<p>Tasks from left to right, bytes upwards; a rectangle is a "
            "buffer from its first to its last use. Symbolic dims are at their "
            "upper "
            "bounds.</p>\n" +
            memoryMap(graph, i, *size, lives);
  }
  return html;
}

} // namespace

std::string inspectHtml(const Bundle &bundle) {
  std::string title = escaped(bundle.manifest().modelName) + " - bundle";
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<title>" +
                     title + "</title><style>" + style + "</style></head><body>\n<h1>" + title + "</h1>\n<table>\n";
  View summary = makeView(bundle, "summary");
  for (const auto &[name, value] : summary.facts)
    html += "<tr><th>" + escaped(name) + "</th>" + cell(value) + "</tr>\n";
  html += "</table>\n";
  for (const Table &table : summary.tables)
    html += tableHtml(table);
  for (const GraphDesc &graph : bundle.graphs().graphs)
    html += memorySection(graph);
  for (const char *what : {"tasks", "kernels", "sizes"})
    for (const Table &table : makeView(bundle, what).tables)
      html += tableHtml(table);
  return html + "</body></html>\n";
}

} // namespace dmxc::tools
