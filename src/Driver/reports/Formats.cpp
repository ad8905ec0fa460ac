//===- Formats.cpp - in which numbers nodes are computed ------------------===//
#include "Formats.h"
#include "PlacementSizes.h"

#include "llvm/ADT/StringExtras.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using Json = nlohmann::ordered_json;

namespace dmxc::driver {

/// Of a row of dmir::kFormatsAttr.
static constexpr std::array<llvm::StringLiteral, 4> keys = {"node", "op", "operands", "result"};

/// In the order of `keys`.
static std::array<std::string, 4> textsOf(const NodeFormats &one) {
  return {one.node, one.op, llvm::join(one.formats.operands, " "), one.formats.result};
}

std::vector<NodeFormats> nodeFormats(ModuleOp module, const PhaseContext &context) {
  std::vector<NodeFormats> all;
  module.walk([&](dmir::RegionOp region) {
    const TargetBackend *target = context.target(region.getDevice());
    for (Operation &op : *region.getBlock())
      if (std::optional<OpFormats> formats = isComputed(op) ? target->formatsOf(&op) : std::nullopt)
        all.push_back({dmir::nodeName(&op), op.getName().stripDialect().str(), std::move(*formats)});
  });
  return all;
}

std::string formatTable(ArrayRef<NodeFormats> all) {
  if (all.empty())
    return "";
  std::vector<std::array<std::string, 4>> rows;
  rows.emplace_back();
  llvm::copy(keys, rows.front().begin());
  for (const NodeFormats &one : all)
    rows.push_back(textsOf(one));
  std::array<size_t, 4> widths{};
  for (const auto &row : rows)
    for (size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text = "formats:\n";
  for (const auto &row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      text += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
    text += "  " + row.back() + "\n";
  }
  return text;
}

void keepFormats(ModuleOp module, ArrayRef<NodeFormats> all) {
  if (all.empty())
    return;
  Builder b(module.getContext());
  SmallVector<Attribute> rows;
  for (const NodeFormats &one : all) {
    NamedAttrList row;
    for (auto [key, text] : llvm::zip_equal(keys, textsOf(one)))
      row.set(key, b.getStringAttr(text));
    rows.push_back(row.getDictionary(module.getContext()));
  }
  module->setAttr(dmir::kFormatsAttr, b.getArrayAttr(rows));
}

std::string keptFormats(ModuleOp module) {
  auto kept = module->getAttrOfType<ArrayAttr>(dmir::kFormatsAttr);
  if (!kept)
    return "";
  Json all = Json::array();
  for (auto row : kept.getAsRange<DictionaryAttr>()) {
    Json json = Json::object();
    for (llvm::StringRef key : keys)
      if (auto text = row.getAs<StringAttr>(key))
        json[key.str()] = text.str();
    all.push_back(std::move(json));
  }
  return Json{{"formats", std::move(all)}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dmxc::driver
