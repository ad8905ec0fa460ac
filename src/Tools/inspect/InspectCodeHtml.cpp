//===- InspectCodeHtml.cpp - what lies where in a device's memories -------===//
#include "Html.h"
#include "InspectCode.h"
#include "InspectHtml.h"

#include <algorithm>
#include <map>
#include <set>

namespace dmxc::tools {

using namespace bundle;
using namespace html;

namespace {

constexpr double kLeft = 70, kWidth = 1100, kHeight = 180, kFoot = 14;
/// More kinds of units than anybody looks at.
constexpr size_t kMostFigures = 8;

struct Range {
  uint64_t begin = 0, end = 0, first = 0, last = 0;
  std::string kind, name, units;
  int argument = -1;
  bool isTemporary() const { return kind == "temporary"; }
};

/// The numbers of "0-3,8".
std::vector<uint64_t> unitsOf(const std::string &list) {
  std::vector<uint64_t> units;
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(',', at), list.size()), dash = list.find('-', at);
    uint64_t first = std::strtoull(list.c_str() + at, nullptr, 10), last = first;
    if (dash < end)
      last = std::strtoull(list.c_str() + dash + 1, nullptr, 10);
    for (uint64_t unit = first; unit <= last; ++unit)
      units.push_back(unit);
    at = end + 1;
  }
  return units;
}

std::vector<Range> rangesOf(const Json &map, const std::string &memory) {
  auto whole = [](const Json &json, const char *key) { return static_cast<uint64_t>(wholeOf(json, key)); };
  std::vector<Range> ranges;
  for (const Json &json : partOf(map, "ranges")) {
    if (textOf(json, "memory") != memory)
      continue;
    Range range{whole(json, "begin"), whole(json, "end"),   whole(json, "first"), whole(json, "last"),
                textOf(json, "kind"), textOf(json, "name"), textOf(json, "units")};
    if (json.contains("argument"))
      range.argument = static_cast<int>(wholeOf(json, "argument"));
    ranges.push_back(std::move(range));
  }
  return ranges;
}

/// Units that hold the same, and what that is.
struct UnitGroup {
  std::vector<uint64_t> units;
  std::vector<const Range *> ranges;
};

std::vector<UnitGroup> groupsOf(const std::vector<Range> &ranges) {
  std::map<uint64_t, std::vector<const Range *>> byUnit;
  for (const Range &range : ranges)
    for (uint64_t unit : unitsOf(range.units))
      byUnit[unit].push_back(&range);
  std::map<std::vector<const Range *>, size_t> seen;
  std::vector<UnitGroup> groups;
  for (const auto &[unit, list] : byUnit) {
    auto [it, fresh] = seen.try_emplace(list, groups.size());
    if (fresh)
      groups.push_back({{}, list});
    groups[it->second].units.push_back(unit);
  }
  return groups;
}

std::string listText(const std::vector<uint64_t> &units) {
  std::string list;
  for (size_t i = 0; i < units.size();) {
    size_t last = i;
    while (last + 1 < units.size() && units[last + 1] == units[last] + 1)
      ++last;
    list += (list.empty() ? "" : ", ") + std::to_string(units[i]);
    list += last > i ? "-" + std::to_string(units[last]) : "";
    i = last + 1;
  }
  return (units.size() > 1 ? "units " : "unit ") + list;
}

/// Names of the tensors behind a kernel's arguments, as the first task that runs it has them.
std::vector<std::string> tensorsOf(const Bundle &bundle, const std::string &kernel) {
  std::vector<std::string> names;
  for (const GraphDesc &graph : bundle.graphs().graphs)
    for (const TaskDesc &task : graph.tasks) {
      if (task.kind != TaskKind::Dispatch || task.kernel != kernel)
        continue;
      for (int64_t id : task.buffers)
        names.push_back(id >= 0 && static_cast<size_t>(id) < graph.buffers.size()
                            ? tensorName(bundle, graph, graph.buffers[static_cast<size_t>(id)])
                            : "");
      return names;
    }
  return names;
}

/// One kernel's use of one code object's memories.
class KernelMaps {
public:
  KernelMaps(const Json &object, const Json &kernel, std::vector<std::string> tensors)
      : object(object), kernel(kernel), map(partOf(kernel, "map")), tensors(std::move(tensors)) {
    for (const Json &phase : partOf(map, "phases"))
      steps += numberOf(phase, "steps");
    steps = std::max(steps, 1.0);
  }

  std::string run() const {
    std::string html = heading(3, "memories of kernel '" + textOf(kernel, "name") + "'");
    html += "<p>Steps from left to right (instructions along the longest chain, the phases one after the other), "
            "addresses of one unit upwards. ";
    html += partOf(map, "ordered") != Json(false)
                ? "A rectangle lasts from its first write to its last read.</p>\n"
                : "The order of the steps is known at run time only: temporaries are shown for the whole phase.</p>\n";
    html += "<p>";
    for (const char *kind : {"input", "output", "state", "const", "resident"})
      html += std::string("<b class=\"key ") + kind + "\">" + kind + "</b>";
    html += "and temporaries in the colour of the task that makes them; resident is what init leaves there</p>\n";
    for (const Json &memory : partOf(object, "memories"))
      html += memorySection(memory);
    return html + tableHtml(permanent(), 3);
  }

private:
  const Json &object, &kernel, &map;
  std::vector<std::string> tensors;
  double steps = 0;

  std::string nameOf(const Range &range) const {
    auto at = static_cast<size_t>(range.argument);
    std::string tensor = range.argument >= 0 && at < tensors.size() ? tensors[at] : "";
    // What was made of an argument has its name.
    const Json &arguments = partOf(kernel, "arguments");
    for (size_t i = 0; range.argument < 0 && !range.isTemporary() && i < arguments.size() && i < tensors.size(); ++i)
      if (textOf(arguments[i], "name") == range.name)
        tensor = tensors[i];
    return range.name + (tensor.empty() || tensor == range.name ? "" : " = " + tensor);
  }
  std::string titleOf(const Range &range) const;
  std::string figure(const UnitGroup &group, double top) const;
  std::string memorySection(const Json &memory) const;
  Table permanent() const;
};

std::string KernelMaps::titleOf(const Range &range) const {
  std::string name = nameOf(range);
  return range.kind + (name.empty() ? "" : (range.isTemporary() ? " of " : " ") + name) + ": " + hex(range.begin) +
         ".." + hex(range.end) + ", " + humanBytes(static_cast<double>(range.end - range.begin)) + ", units " +
         range.units + ", steps " + std::to_string(range.first) + " to " + std::to_string(range.last);
}

std::string KernelMaps::figure(const UnitGroup &group, double top) const {
  std::string shapes = text(kLeft - 4, 10, "end", humanBytes(top)) + text(kLeft - 4, kHeight - 2, "end", "0");
  double at = 0;
  for (const Json &phase : partOf(map, "phases")) {
    double x = kLeft + kWidth * at / steps;
    shapes += line(x, 0, x, kHeight + kFoot) + text(x + 3, kHeight + kFoot - 3, "start", textOf(phase, "name"));
    at += numberOf(phase, "steps");
  }
  for (const Range *range : group.ranges) {
    double x = kLeft + kWidth * static_cast<double>(range->first) / steps;
    double w = kWidth * static_cast<double>(range->last - range->first + 1) / steps;
    double h = kHeight * static_cast<double>(range->end - range->begin) / top;
    double y = kHeight - kHeight * static_cast<double>(range->begin) / top - h;
    shapes += rect(x, y, w, std::max(h, 1.0), range->isTemporary() ? "" : range->kind,
                   range->isTemporary() ? colourOf(range->name) : "", titleOf(*range));
    std::string label = h >= 11 ? fitting(nameOf(*range), w) : "";
    if (!label.empty())
      shapes += text(x + 2, y + std::min(h, 24.0) / 2 + 4, "start", label);
  }
  return svg(kLeft + kWidth, kHeight + kFoot, shapes);
}

std::string KernelMaps::memorySection(const Json &memory) const {
  std::string name = textOf(memory, "memory");
  double capacity = numberOf(memory, "capacity"), used = numberOf(partOf(kernel, "footprint"), name.c_str());
  if (used <= 0)
    return "";
  std::vector<Range> ranges = rangesOf(map, name);
  std::string share = number(100 * used / std::max(capacity, 1.0)) + " %";
  std::string html = heading(4, name + " of a " + textOf(memory, "per") + ": " + humanBytes(used) + " of " +
                                    humanBytes(capacity) + " (" + share + ")");
  html += svg(kLeft + kWidth, 12,
              rect(kLeft, 1, kWidth, 10, "limit", "", "capacity " + humanBytes(capacity)) +
                  rect(kLeft, 1, std::max(kWidth * std::min(used / std::max(capacity, 1.0), 1.0), 1.0), 10, "const", "",
                       "footprint " + humanBytes(used) + ", " + share));
  if (double unknown = numberOf(partOf(map, "unknown"), name.c_str()); unknown > 0)
    html += "<p>" + std::to_string(static_cast<uint64_t>(unknown)) +
            " accesses go to places that are known at run time only and are not shown.</p>\n";
  std::vector<UnitGroup> groups = groupsOf(ranges);
  for (size_t i = 0; i < groups.size() && i < kMostFigures; ++i)
    html += "<p>" + escaped(listText(groups[i].units)) + "</p>\n" + figure(groups[i], used);
  if (groups.size() > kMostFigures)
    html += "<p>" + std::to_string(groups.size() - kMostFigures) + " more kinds of units; --json has them.</p>\n";
  return html;
}

Table KernelMaps::permanent() const {
  Table table{"permanent ranges of kernel '" + textOf(kernel, "name") + "'",
              {"memory", "units", "begin", "end", "bytes", "kind", "name"},
              {}};
  for (const Json &memory : partOf(object, "memories"))
    for (const Range &range : rangesOf(map, textOf(memory, "memory")))
      if (!range.isTemporary())
        table.add({textOf(memory, "memory"), range.units, hex(range.begin), hex(range.end), range.end - range.begin,
                   range.kind, nameOf(range)});
  return table;
}

} // namespace

std::string codeSections(const Bundle &bundle, const View &kernels) {
  std::string html;
  for (const Table &table : kernels.tables)
    html += tableHtml(table);
  for (const auto &[name, objects] : kernels.data)
    for (const Json &object : objects) {
      html += heading(2, "code object " + textOf(object, "entry"));
      for (const Json &kernel : partOf(object, "kernels"))
        html += KernelMaps(object, kernel, tensorsOf(bundle, textOf(kernel, "name"))).run();
      html += details("disassembly of " + textOf(object, "entry"),
                      "<pre>" + escaped(textOf(object, "disassembly")) + "</pre>\n");
    }
  return html;
}

} // namespace dmxc::tools
