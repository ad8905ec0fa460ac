//===- InspectFormats.cpp - what a bundle says of its numbers -------------===//
#include "InspectView.h"

#include <algorithm>

namespace dmxc::tools {

using namespace bundle;

Result<Json> debugRows(const Bundle &bundle, const char *entry, const char *key) {
  for (const BundleEntry &one : bundle.entries())
    if (one.name == entry) {
      std::string text(reinterpret_cast<const char *>(one.bytes.data()), one.bytes.size());
      Json root = jsonDepthIsBounded(text) ? Json::parse(text, nullptr, /*allow_exceptions=*/false) : Json();
      if (!root.is_object() || !root.contains(key) || !root[key].is_array())
        return modelError("'" + bundle.path() + "': " + entry + " is no table of " + key + "; compile the model again");
      return root[key];
    }
  return Json(Json::array());
}

Result<FormatsByNode> formatsByNode(const Bundle &bundle) {
  Result<Json> rows = debugRows(bundle, "debug/formats.json", "formats");
  if (!rows)
    return rows.takeError();
  FormatsByNode formats;
  for (const Json &row : *rows) {
    auto text = [&](const char *key) {
      return row.is_object() && row.contains(key) && row[key].is_string() ? row[key].get<std::string>() : std::string();
    };
    formats[text("node")].push_back(text("op") + " " + text("operands") + " -> " + text("result"));
  }
  return formats;
}

std::vector<std::string> arithmeticOf(const TaskDesc &task, const FormatsByNode &formats) {
  std::vector<std::string> all;
  for (const std::string &node : task.nodes)
    if (auto found = formats.find(node); found != formats.end())
      for (const std::string &one : found->second)
        if (std::find(all.begin(), all.end(), one) == all.end())
          all.push_back(one);
  return all;
}

} // namespace dmxc::tools
