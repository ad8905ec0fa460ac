//===- OpTable.cpp - one row per (op, since-version) ----------------------===//
#include "OpTable.h"
#include "OnnxFrontend.h"

#include "dmxc/Support/Diagnostic.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace dmxc::onnxfe {

std::string typeSetName(TypeSet set) {
  if (set == types::Any)
    return "any";
  std::string text;
  for (unsigned i = 0; i < kDTypeCount; ++i)
    if (set & (TypeSet(1) << i))
      text += (text.empty() ? "" : " ") + std::string(dtypeName(static_cast<DType>(i)));
  return text;
}

bool rowHasAttribute(const OpRow &row, std::string_view name) {
  std::string_view list = row.attributes;
  while (!list.empty()) {
    size_t comma = list.find(',');
    if (list.substr(0, comma) == name)
      return true;
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
  }
  // A hint for in-place execution that version 1 of many operators carried; it
  // never changed a result.
  return row.since == 1 && name == "consumed_inputs";
}

void OpTable::add(std::vector<OpRows> family) {
  for (OpRows &rows : family)
    for (int since : rows.since)
      all.push_back({rows.name, since, rows.import, rows.attributes, rows.operandTypes, rows.note, rows.domain});
}

OpTable::OpTable() {
  for (auto family : {elementwiseOps,   activationOps, logicOps,   shapeOps,         sliceOps,           gatherOps,
                      dataDependentOps, generatorOps,  reduceOps,  linearAlgebraOps, einsumOps,          convolutionOps,
                      poolOps,          normOps,       lossOps,    quantOps,         resizeOps,          recurrentOps,
                      signalOps,        imageOps,      roiOps,     attentionOps,     linearAttentionOps, mlOps,
                      treeOps,          sequenceOps,   controlOps, refusedOps})
    add(family());
  std::stable_sort(all.begin(), all.end(), [](const OpRow &a, const OpRow &b) {
    return std::tuple(std::string_view(a.domain), std::string_view(a.name), a.since) <
           std::tuple(std::string_view(b.domain), std::string_view(b.name), b.since);
  });
}

const OpTable &OpTable::get() {
  static const OpTable table;
  return table;
}

const OpRow *OpTable::find(std::string_view domain, std::string_view name, int64_t opset) const {
  const OpRow *best = nullptr;
  for (const OpRow &row : all)
    if (row.name == name && row.domain == domain && row.since <= opset)
      best = &row;
  return best;
}

bool OpTable::knows(std::string_view domain, std::string_view name) const { return firstVersion(domain, name) != 0; }

int OpTable::firstVersion(std::string_view domain, std::string_view name) const {
  for (const OpRow &row : all)
    if (row.name == name && row.domain == domain)
      return row.since;
  return 0;
}

std::string OpTable::nearest(const std::string &name) const {
  std::vector<std::string> names;
  for (const OpRow &row : all)
    names.push_back(row.name);
  return nearestName(name, names);
}

void printOpTable(llvm::raw_ostream &os, bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (!json)
    os << "| op | since | imported | operand 0 | attributes | note "
          "|\n|---|---|---|---|---|---|\n";
  for (const OpRow &row : OpTable::get().rows()) {
    std::string name = (*row.domain ? std::string(row.domain) + "." : "") + row.name;
    std::string first = row.operandTypes.empty() ? "any" : typeSetName(row.operandTypes.front());
    if (json)
      list.push_back({{"domain", row.domain},
                      {"op", row.name},
                      {"since", row.since},
                      {"imported", row.import != nullptr},
                      {"operand0", first},
                      {"attributes", row.attributes},
                      {"note", row.note}});
    else
      os << "| " << name << " | " << row.since << " | " << (row.import ? "yes" : "no") << " | "
         << (row.import ? first : "") << " | " << row.attributes << " | " << row.note << " |\n";
  }
  if (json)
    os << list.dump(1) << "\n";
}

} // namespace dmxc::onnxfe
