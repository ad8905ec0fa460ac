//===- AtenTable.cpp - one row per ATen overload --------------------------===//
#include "AtenTable.h"
#include "TorchFrontend.h"

#include "dmxc/Support/Diagnostic.h"

#include <nlohmann/json.hpp>

namespace dmxc::torchfe {

static constexpr std::string_view kOps = "torch.ops.", kAten = "torch.ops.aten.";

std::string_view operatorName(std::string_view target) {
  if (isAten(target))
    return target.substr(kAten.size());
  return target.starts_with(kOps) ? target.substr(kOps.size()) : std::string_view();
}

bool isAten(std::string_view target) { return target.starts_with(kAten); }

AtenTable::AtenTable() {
  for (auto family :
       {elementwiseOps,   selectOps,        activationOps,   viewOps,        joinOps,    createOps,   reduceOps,
        indexOps,         productOps,       attentionOps,    convolutionOps, poolOps,    normOps,     lossOps,
        resampleOps,      recurrentOps,     sizeOps,         complexOps,     fourierOps, libraryOps,  refusedOps,
        compositeOps,     statisticsOps,    columnOps,       specialOps,     orderOps,   countingOps, differenceOps,
        fakeQuantizeOps,  visionOps,        diagonalOps,     arrangeOps,     bitOps,     taperOps,    marginLossOps,
        linearAlgebraOps, factorisationOps, singularValueOps})
    for (const AtenRow &row : family())
      add(row);
  addSecondNames();
  addRefused();
}

void AtenTable::add(const AtenRow &row) {
  Schema schema(row.signature);
  std::string name = schema.name;
  all.emplace(std::move(name), AtenOp{row, std::move(schema)});
}

void AtenTable::addSecondNames() {
  for (auto [second, first] : secondNames()) {
    std::vector<AtenRow> rows;
    for (auto at = all.lower_bound(std::string(first) + ".");
         at != all.end() && at->first.starts_with(std::string(first) + "."); ++at)
      rows.push_back(at->second.row);
    for (AtenRow &row : rows) {
      signatures.push_back(std::string(second) + std::string(row.signature).substr(first.size()));
      row.signature = signatures.back().c_str();
      add(row);
    }
  }
}

void AtenTable::addRefused() {
  for (const RefusedFamily &family : refusedFamilies())
    for (const char *name : family.names) {
      signatures.push_back(std::string(name) + "(...) -> ...");
      add({signatures.back().c_str(), nullptr, family.reason});
    }
}

const AtenTable &AtenTable::get() {
  static const AtenTable table;
  return table;
}

const AtenOp *AtenTable::find(std::string_view name) const {
  auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

const AtenOp *AtenTable::findInPlace(std::string_view name) const {
  static const std::map<std::string_view, std::string_view> functional = functionalForms();
  if (auto form = functional.find(name); form != functional.end())
    return find(form->second);
  size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot < 2 || name[dot - 1] != '_')
    return nullptr;
  return find(std::string(name.substr(0, dot - 1)) + std::string(name.substr(dot)));
}

std::string AtenTable::nearest(const std::string &name) const {
  std::vector<std::string> names;
  for (const auto &[known, op] : all)
    names.push_back(known);
  return nearestName(name, names);
}

void printAtenTable(llvm::raw_ostream &os, bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (!json)
    os << "| op | imported | signature | note |\n|---|---|---|---|\n";
  for (const auto &[name, op] : AtenTable::get().ops()) {
    bool imported = op.row.import != nullptr;
    if (json)
      list.push_back({{"domain", "aten"},
                      {"op", name},
                      {"imported", imported},
                      {"signature", op.row.signature},
                      {"note", op.row.note}});
    else
      os << "| " << name << " | " << (imported ? "yes" : "no") << " | " << op.row.signature << " | " << op.row.note
         << " |\n";
  }
  if (json)
    os << list.dump(1) << "\n";
}

} // namespace dmxc::torchfe
