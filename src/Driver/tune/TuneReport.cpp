//===- TuneReport.cpp - what dmxc tune says of what it found --------------===//
#include "TuneReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

using nlohmann::json;

namespace dmxc::driver {

static std::string countText(double value) { return std::to_string(static_cast<int64_t>(value + 0.5)); }

static std::string gainText(const TunedRow &row) {
  return row.best > 0 ? llvm::formatv("{0:f2}", row.before / row.best).str() : "-";
}

std::string TuneReport::table() const {
  std::vector<std::vector<std::string>> lines{
      {"region", "device", "default " + unit, "best " + unit, "gain", "trials", "decided"}};
  for (const TunedRow &row : rows)
    if (row.remark.empty())
      lines.push_back({"'" + row.node + "'", row.device, countText(row.before), countText(row.best), gainText(row),
                       std::to_string(row.trials), row.best < row.before ? row.decided : "the default"});
    else
      lines.push_back({"'" + row.node + "'", row.device, "-", "-", "-", "-", row.remark});
  std::vector<size_t> widths(lines[0].size());
  for (const auto &line : lines)
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto &line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      const std::string space(widths[i] - line[i].size(), ' ');
      const bool isNumber = i >= 2;
      text += (isNumber ? space + line[i] : line[i] + space) + "  ";
    }
    text += line.back() + "\n";
  }
  return text;
}

std::string TuneReport::json() const {
  nlohmann::json all{{"kind", "dmxc tune"}, {"model", model}, {"unit", unit}, {"regions", nlohmann::json::array()}};
  for (const TunedRow &row : rows) {
    nlohmann::json one{{"node", row.node}, {"device", row.device}};
    if (row.remark.empty())
      one.update({{"default", row.before},
                  {"best", row.best},
                  {"gain", row.best > 0 ? row.before / row.best : 1},
                  {"trials", row.trials},
                  {"measured", row.measured},
                  {"decided", nlohmann::json::parse(row.decided.empty() ? "{}" : row.decided)}});
    else
      one["remark"] = row.remark;
    all["regions"].push_back(std::move(one));
  }
  return all.dump(1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace dmxc::driver
