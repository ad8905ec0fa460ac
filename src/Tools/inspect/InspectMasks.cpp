//===- InspectMasks.cpp - what a bundle says of masks ---------------------===//
#include "InspectView.h"

namespace dmxc::tools {

using namespace bundle;

/// Rows of a table, with a column for each key that some object has; in a sentence each is too wide for a terminal.
Result<View> masksView(const Bundle &bundle) {
  View view;
  Result<Json> read = debugRows(bundle, "debug/masks.json", "masks");
  if (!read)
    return read.takeError();
  Json masks = std::move(*read);
  view.facts.emplace_back("masked attentions", masks.size());
  for (const char *key : {"sparsity", "masks"})
    for (const auto &[option, value] : bundle.manifest().options)
      if (option == key)
        std::visit([&](const auto &v) { view.facts.emplace_back(key, v); }, value);
  Table table{"masks", {"node", "rule", "kept", "scores", "kernel"}, {}},
      reasons{"where rules are from, or what is no rule", {"node", "from", "rest"}, {}};
  table.textOnly = reasons.textOnly = true;
  for (const Json &mask : masks) {
    auto get = [&](const char *key, const char *otherwise = "") {
      return mask.is_object() && mask.contains(key) ? mask[key] : Json(otherwise);
    };
    table.add({get("node"), get("rule", "none"), get("kept"), get("scores"), get("algorithm")});
    reasons.add(
        {get("node"), mask.is_object() && mask.contains("unknown") ? mask["unknown"] : get("from"), get("rest")});
  }
  view.tables.push_back(std::move(table));
  view.tables.push_back(std::move(reasons));
  view.data.emplace_back("masks", std::move(masks));
  return view;
}

} // namespace dmxc::tools
