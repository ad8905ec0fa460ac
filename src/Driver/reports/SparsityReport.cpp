//===- SparsityReport.cpp - what is said of masks -------------------------===//
#include "Facts.h"
#include "Sparsity.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"
#include <nlohmann/json.hpp>

using namespace mlir;
using Json = nlohmann::ordered_json;

namespace dmxc::driver {

static std::string percent(double part, double whole) {
  return llvm::formatv("{0:f1} %", whole ? 100 * part / whole : 0.0).str();
}

/// "12 of 12 masked attentions by rule, 50.4 % of their scores kept, masked keys skipped in 12"
static std::string countsText(const std::vector<MaskedAttention> &all) {
  size_t rules = 0, skipping = 0, counted = 0;
  int64_t scores = 0, kept = 0;
  for (const MaskedAttention &one : all) {
    rules += !one.rule.empty();
    skipping += one.skips;
    counted += one.counts.has_value();
    if (one.counts)
      scores += one.counts->elements, kept += one.counts->kept;
  }
  std::string text =
      llvm::formatv("{0} of {1} masked attention{2} by rule", rules, all.size(), all.size() == 1 ? "" : "s").str();
  if (scores)
    text += ", " + percent(static_cast<double>(kept), static_cast<double>(scores)) + " of " +
            (counted < rules ? "the known scores" : "their scores") + " kept";
  return text + ", masked keys skipped in " + std::to_string(skipping);
}

std::string summaryOf(const std::vector<MaskedAttention> &all) {
  return all.empty() ? "" : "masks: " + countsText(all);
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

static Json jsonOf(const MaskedAttention &one, bool lists) {
  Json json = {{"node", one.node}};
  if (one.rule.empty()) {
    json["unknown"] = one.from;
  } else {
    json["rule"] = one.rule;
    json["from"] = one.from;
    json["fill"] = one.fill;
  }
  if (!one.rest.empty())
    json["rest"] = one.rest;
  json["algorithm"] = one.algorithm;
  if (one.tile)
    json["tile"] = {one.tile->rows, one.tile->columns};
  if (!one.counts)
    return json;
  json["scores"] = one.counts->elements;
  json["kept"] = one.counts->kept;
  json["empty_tiles"] = one.counts->empty;
  json["full_tiles"] = one.counts->full;
  json["mixed_tiles"] = one.counts->mixed;
  if (one.operations) {
    json["operations"] = one.operations;
    json["issued"] = one.issued();
  }
  if (!lists || !one.counts->allPresent)
    return json;
  Json tiles = Json::array();
  for (const auto &[column, row, columnsEnd, rowsEnd] : one.counts->present)
    tiles.push_back({{column, row}, {columnsEnd, rowsEnd}});
  json["tiles"] = std::move(tiles);
  return json;
}

static std::string textOf(const MaskedAttention &one) {
  std::string text = "\n'" + one.node + "'\n";
  auto line = [&](StringRef name, const std::string &value) {
    if (!value.empty())
      text += llvm::formatv("  {0,-10} {1}\n", name, value).str();
  };
  if (one.rule.empty()) {
    line("no rule", one.from);
  } else {
    line("rule", one.rule);
    line("from", one.from);
    line("fill", one.fill);
  }
  line("rest", one.rest);
  if (one.rule.empty()) {
    line("kernel", one.algorithm);
    return text;
  }
  std::string tiles;
  if (one.tile && one.counts)
    tiles = llvm::formatv(", tiles of {0} x {1}: {2} empty, {3} full, {4} mixed", one.tile->rows, one.tile->columns,
                          one.counts->empty, one.counts->full, one.counts->mixed)
                .str();
  if (one.counts)
    line("kept",
         llvm::formatv("{0} of {1} scores, {2}", one.counts->kept, one.counts->elements,
                       percent(static_cast<double>(one.counts->kept), static_cast<double>(one.counts->elements)))
             .str());
  else
    line("kept", "not counted: sizes are open, or too many for a rule with strides");
  line("kernel", one.algorithm + tiles);
  if (one.operations)
    line("products", llvm::formatv("{0:e3} of {1:e3} operations, {2}", one.issued(), one.operations,
                                   percent(one.issued(), one.operations))
                         .str());
  return text;
}

std::string sparsityReport(const std::vector<MaskedAttention> &all, const std::vector<ProductFact> &facts, bool json) {
  if (!json) {
    std::string text = all.empty() ? "no masked attention\n" : countsText(all) + "\n";
    for (const MaskedAttention &one : all)
      text += textOf(one);
    return text + factsText(facts);
  }
  Json attentions = Json::array();
  for (const MaskedAttention &one : all)
    attentions.push_back(jsonOf(one, /*lists=*/true));
  return Json{{"summary", all.empty() ? "no masked attention" : countsText(all)},
              {"attentions", std::move(attentions)},
              {"facts", factsJson(facts)}}
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

//===----------------------------------------------------------------------===//
// In the module
//===----------------------------------------------------------------------===//

void keepMasks(ModuleOp module, const std::vector<MaskedAttention> &all) {
  if (all.empty())
    return;
  Builder b(module.getContext());
  SmallVector<Attribute> rows;
  for (const MaskedAttention &one : all) {
    NamedAttrList row;
    Json json = jsonOf(one, /*lists=*/false);
    for (const auto &[key, value] : json.items())
      row.set(key, value.is_string()           ? Attribute(b.getStringAttr(value.get<std::string>()))
                   : value.is_number_integer() ? Attribute(b.getI64IntegerAttr(value.get<int64_t>()))
                   : value.is_number()         ? Attribute(b.getF64FloatAttr(value.get<double>()))
                                               : Attribute(b.getStringAttr(value.dump())));
    rows.push_back(row.getDictionary(module.getContext()));
  }
  module->setAttr(dmir::kMasksAttr, b.getDictionaryAttr({b.getNamedAttr("attentions", b.getArrayAttr(rows)),
                                                         b.getNamedAttr("summary", b.getStringAttr(countsText(all)))}));
}

std::string keptMasks(ModuleOp module) {
  auto kept = module->getAttrOfType<DictionaryAttr>(dmir::kMasksAttr);
  auto rows = kept ? kept.getAs<ArrayAttr>("attentions") : ArrayAttr();
  if (!rows)
    return "";
  Json attentions = Json::array();
  for (auto row : rows.getAsRange<DictionaryAttr>()) {
    Json json = Json::object();
    for (NamedAttribute entry : row) {
      std::string key = entry.getName().str();
      if (auto text = dyn_cast<StringAttr>(entry.getValue()))
        json[key] = text.str();
      else if (auto number = dyn_cast<IntegerAttr>(entry.getValue()))
        json[key] = number.getInt();
      else if (auto real = dyn_cast<FloatAttr>(entry.getValue()))
        json[key] = real.getValueAsDouble();
    }
    attentions.push_back(std::move(json));
  }
  return Json{{"masks", std::move(attentions)}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string keptSummary(ModuleOp module) {
  auto kept = module->getAttrOfType<DictionaryAttr>(dmir::kMasksAttr);
  auto summary = kept ? kept.getAs<StringAttr>("summary") : StringAttr();
  return summary ? summary.str() : "";
}

} // namespace dmxc::driver
