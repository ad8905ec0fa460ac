//===- OpTable.cpp - one row per (op, since-version) ----------------------===//
#include "OpTable.h"
#include "Differences.h"
#include "OnnxFrontend.h"
#include "contrib/Families.h"

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

namespace {

/// The attributes of a row: name, and the kind where the row has it.
std::vector<std::pair<std::string_view, std::string_view>> attributesOf(const OpRow &row) {
  std::vector<std::pair<std::string_view, std::string_view>> attributes;
  for (std::string_view list = row.attributes; !list.empty();) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    size_t end = std::min(item.find('='), item.size());
    attributes.emplace_back(item.substr(0, end), item.substr(std::min(end + 1, item.size())));
  }
  return attributes;
}

std::string_view operandSigns(const OpRow &row) {
  std::string_view signature = row.signature;
  return signature.substr(0, signature.find('>'));
}

} // namespace

std::optional<AttributeKind> attributeKind(const OpRow &row, std::string_view name) {
  for (auto [own, kind] : attributesOf(row))
    if (own == name)
      return kind.empty() ? usualKind(name) : kindNamed(kind);
  // A hint for in-place execution that version 1 of many operators carried; it
  // never changed a result.
  return row.since == 1 && name == "consumed_inputs" ? std::optional(usualKind(name)) : std::nullopt;
}

std::string attributeNames(const OpRow &row) {
  std::string text;
  for (auto [name, kind] : attributesOf(row))
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

size_t mostOperands(const OpRow &row) {
  std::string_view signs = operandSigns(row);
  return signs.ends_with('*') ? SIZE_MAX : signs.size();
}

size_t mostResults(const OpRow &row) {
  char count = row.signature[operandSigns(row).size() + 1];
  return count == '*' ? SIZE_MAX : static_cast<size_t>(count - '0');
}

char typeVariable(const OpRow &row, size_t operand) {
  std::string_view signs = operandSigns(row);
  if (signs.ends_with('*'))
    signs.remove_suffix(1);
  return signs.empty() ? '.' : signs[std::min(operand, signs.size() - 1)];
}

void OpTable::add(const std::vector<OpRows> &family) {
  for (const OpRows &rows : family)
    for (int since : rows.since)
      all.push_back(
          {rows.name, since, rows.signature, rows.import, rows.attributes, rows.operandTypes, rows.note, rows.domain});
}

OpTable::OpTable() {
  for (auto family :
       {elementwiseOps, activationOps, logicOps,           shapeOps,     sliceOps,       gatherOps,   dataDependentOps,
        generatorOps,   reduceOps,     linearAlgebraOps,   einsumOps,    convolutionOps, poolOps,     normOps,
        lossOps,        quantOps,      resizeOps,          recurrentOps, signalOps,      imageOps,    roiOps,
        maxRoiPoolOps,  attentionOps,  linearAttentionOps, mlOps,        mlFeatureOps,   mlLinearOps, treeOps,
        sequenceOps,    optionalOps,   controlOps,         refusedOps})
    add(family());
  for (auto family :
       {contribAttentionOps, contribEmbedOps, contribGroupQueryOps, contribNormOps, contribPositionBiasOps,
        contribRecurrentOps, contribRotaryOps, contribNBitsOps, contribFusedOps, contribQLinearOps, contribQMatMulOps,
        contribMoeOps, contribQMoeOps, contribOtherOps, contribCropOps, contribInverseOps})
    add(family());
  for (const OpRows &refused : contribRefusedOps())
    if (!knows(refused.domain, refused.name))
      add({refused});
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

namespace {

/// Families of element types, largest first.
constexpr std::pair<TypeSet, const char *> kFamilies[] = {{types::Int, "int"},
                                                          {types::Signed, "signed"},
                                                          {types::Unsigned, "unsigned"},
                                                          {types::Float, "float"},
                                                          {types::Narrow, "narrow"}};

/// typeSetName with the families' names for their members.
std::string familyNames(TypeSet set) {
  if (set == types::Any)
    return "any";
  std::string text;
  for (auto [family, name] : kFamilies)
    if ((set & family) == family) {
      text += (text.empty() ? "" : " ") + std::string(name);
      set &= ~family;
    }
  std::string rest = typeSetName(set);
  return text + (text.empty() || rest.empty() ? "" : " ") + rest;
}

/// Of all operands; equal ones at the end are written once, as the row has them.
std::string operandTypes(const OpRow &row) {
  std::vector<std::string> names;
  for (TypeSet set : row.operandTypes)
    names.push_back(familyNames(set));
  while (names.size() > 1 && names.back() == names[names.size() - 2])
    names.pop_back();
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "any" : text;
}

bool sameImport(const OpRow &a, const OpRow &b) {
  return std::string_view(a.domain) == b.domain && std::string_view(a.name) == b.name && a.import == b.import &&
         operandTypes(a) == operandTypes(b) && std::string_view(a.note) == b.note;
}

bool sameOperator(const OpRow &a, const OpRow &b) {
  return std::string_view(a.domain) == b.domain && std::string_view(a.name) == b.name;
}

constexpr const char *kTableHead =
    "| operator | opsets | element types | what is limited, or why it is refused |\n|---|---|---|---|\n";

void printMarkdown(llvm::raw_ostream &os) {
  os << "Element types: any = all there are";
  for (auto [family, name] : kFamilies)
    os << "; " << name << " = " << typeSetName(family);
  os << ". The types of operands are separated by commas; the last one counts for all that follow.\n\n" << kTableHead;
  const std::vector<OpRow> &rows = OpTable::get().rows();
  for (size_t first = 0, next; first < rows.size(); first = next) {
    const OpRow &row = rows[first];
    bool microsoft = std::string_view(row.domain) == kMicrosoft;
    if (microsoft && std::string_view(rows[first - 1].domain) != kMicrosoft)
      os << "\n## The domain com.microsoft\n\nWhat ONNX Runtime's optimiser, its quantisers and model builders "
            "write.\n\n"
         << kTableHead;
    for (next = first + 1; next < rows.size() && sameImport(row, rows[next]);)
      ++next;
    std::string opsets = std::to_string(row.since);
    if (next == rows.size() || !sameOperator(row, rows[next]))
      opsets += " and later";
    else if (rows[next].since - 1 > row.since)
      opsets += " to " + std::to_string(rows[next].since - 1);
    os << "| " << (*row.domain && !microsoft ? std::string(row.domain) + "." : "") << row.name << " | " << opsets
       << " | " << (row.import ? operandTypes(row) : "refused") << " | " << row.note << " |\n";
  }
}

/// The rows of Differences.h that name the operator.
nlohmann::ordered_json differencesOf(std::string_view op) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Difference &row : differences())
    if ((", " + std::string(row.op) + ", ").find(", " + std::string(op) + ", ") != std::string::npos)
      list.push_back({{"name", row.name},
                      {"op", row.op},
                      {"where", row.where},
                      {"reference", row.reference},
                      {"onnx_runtime", row.onnxRuntime},
                      {"torch", row.torch},
                      {"choice", row.choice},
                      {"of_pytorch", row.ofPytorch},
                      {"why", row.why},
                      {"seen", row.seen}});
  return list;
}

} // namespace

void printOpTable(llvm::raw_ostream &os, bool json) {
  if (!json)
    return printMarkdown(os);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const std::vector<OpRow> &rows = OpTable::get().rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    const OpRow &row = rows[i];
    bool newest = i + 1 == rows.size() || !sameOperator(row, rows[i + 1]);
    nlohmann::ordered_json operands = nlohmann::ordered_json::array();
    for (TypeSet set : row.operandTypes)
      operands.push_back(typeSetName(set));
    nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
    for (auto [name, kind] : attributesOf(row))
      attributes[std::string(name)] = nameOf(kind.empty() ? usualKind(name) : kindNamed(kind));
    list.push_back(
        {{"domain", row.domain},
         {"op", row.name},
         {"since", row.since},
         {"imported", row.import != nullptr},
         {"operands", operands},
         {"signature", row.signature},
         {"attributes", attributes},
         {"note", row.note},
         {"differences", newest && std::string_view(row.domain) != kMicrosoft ? differencesOf(row.name)
                                                                              : nlohmann::ordered_json::array()}});
  }
  os << list.dump(1) << "\n";
}

} // namespace dmxc::onnxfe
