//===- InspectTuning.cpp - what dmxc tune found ---------------------------===//
#include "Html.h"
#include "InspectHtml.h"

#include "dmxc/Support/MappedFile.h"

#include <algorithm>

namespace dmxc::tools {

using namespace html;

//===----------------------------------------------------------------------===//
// Databases
//===----------------------------------------------------------------------===//

bool isTuningDatabase(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return false;
  std::string_view text(reinterpret_cast<const char *>((*file)->bytes().data()), (*file)->bytes().size());
  const size_t first = text.find_first_not_of("\r\n\t ");
  return first != std::string_view::npos && text[first] == '{';
}

static Json orNothing(const Json &record, const char *key) {
  auto found = record.find(key);
  return found == record.end() ? Json("") : *found;
}

/// "sha256:1234567890ab": as much as tells regions apart.
static Json shortened(const Json &digest) {
  constexpr size_t most = 7 + 12;
  return digest.is_string() ? Json(digest.get<std::string>().substr(0, most)) : digest;
}

static Json gainOf(const Json &record) {
  const Json before = orNothing(record, "default_clocks"), best = orNothing(record, "clocks");
  const bool isKnown = before.is_number() && best.is_number() && best.get<double>() > 0;
  return isKnown ? Json(number(before.get<double>() / best.get<double>())) : Json("");
}

Result<View> tuningView(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  std::string_view rest(reinterpret_cast<const char *>((*file)->bytes().data()), (*file)->bytes().size());
  Table records{"records", {"region", "target", "level", "default", "best", "gain", "changes", "decided"}, {}};
  Table unusable{"unusable", {"line", "why"}, {}};
  for (size_t lineNumber = 1; !rest.empty(); ++lineNumber) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of("\r\t ") == std::string::npos)
      continue;
    const Json record = jsonDepthIsBounded(line) ? Json::parse(line, nullptr, /*allow_exceptions=*/false)
                                                 : Json(Json::value_t::discarded);
    if (!record.is_object() || !record.contains("region") || !record.contains("decided"))
      unusable.add(
          {lineNumber, record.is_object() ? "it has no region, or nothing decided" : "this is no JSON object"});
    else
      records.add({shortened(record["region"]), orNothing(record, "target"), orNothing(record, "level"),
                   orNothing(record, "default_clocks"), orNothing(record, "clocks"), gainOf(record),
                   orNothing(record, "effect"), record["decided"].dump()});
  }
  View view;
  view.facts = {{"tuning database", path}, {"records", records.rows.size()}};
  if (!records.rows.empty())
    view.tables.push_back(std::move(records));
  if (!unusable.rows.empty())
    view.tables.push_back(std::move(unusable));
  return view;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

/// The best so far over the trials, and each measure as a mark; the default is a line.
static std::string plot(const Json &region, const std::string &unit) {
  constexpr double left = 90, width = 480, height = 120, top = 12;
  std::vector<double> measured;
  for (const Json &value : region["measured"])
    if (value.is_number())
      measured.push_back(value.get<double>());
  if (measured.size() < 2)
    return "";
  const auto [low, high] = std::minmax_element(measured.begin(), measured.end());
  const double least = *low, most = std::min(*high, 2 * measured.front()), span = std::max(most - least, 1.0);
  auto y = [&](double value) { return top + height * (1 - (std::min(value, most) - least) / span); };
  auto x = [&](size_t i) { return left + width * static_cast<double>(i) / static_cast<double>(measured.size() - 1); };
  std::string shapes = line(left, y(measured.front()), left + width, y(measured.front())) +
                       text(left - 6, y(most) + 4, "end", number(most)) +
                       text(left - 6, y(least) + 4, "end", number(least));
  double best = measured.front();
  for (size_t i = 0; i < measured.size(); ++i) {
    const double before = best;
    best = std::min(best, measured[i]);
    if (i > 0)
      shapes += line(x(i - 1), y(before), x(i), y(before)) + line(x(i), y(before), x(i), y(best));
    shapes += rect(x(i) - 2, y(measured[i]) - 2, 4, 4, "", colourOf("trial"),
                   "trial " + std::to_string(i + 1) + ": " + number(measured[i]) + " " + unit);
  }
  return svg(left + width + 20, top + height + 12, shapes);
}

std::string tuningSection(const Json &report) {
  const std::string unit = report.value("unit", "clocks");
  Table table{"regions", {"region", "device", "default", "best", "gain", "trials", "decided"}, {}};
  std::string plots;
  for (const Json &region : report["regions"]) {
    if (!region.is_object())
      continue;
    const Json gain = orNothing(region, "gain");
    table.add({orNothing(region, "node"), orNothing(region, "device"), orNothing(region, "default"),
               orNothing(region, "best"), gain.is_number() ? Json(number(gain.get<double>())) : Json(""),
               orNothing(region, "trials"),
               region.contains("decided") ? Json(region["decided"].dump()) : orNothing(region, "remark")});
    if (auto measured = region.find("measured"); measured != region.end() && measured->is_array())
      if (std::string shapes = plot(region, unit); !shapes.empty())
        plots += heading(3, orNothing(region, "node").dump() + ": " + unit +
                                " of each trial, the best so far, the default") +
                 shapes;
  }
  return tableHtml(table, 3) + plots;
}

} // namespace dmxc::tools
