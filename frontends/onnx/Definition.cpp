//===- Definition.cpp - a node against its operator's definition ----------===//
#include "Definition.h"

#include <algorithm>
#include <map>

namespace dmxc::onnxfe {
namespace {

std::string version(const OpRow &row) { return "version " + std::to_string(row.since) + " of the operator"; }

void requireMost(const OpRow &row, size_t given, size_t most, const std::string &what) {
  if (given > most)
    fail("op-operand", version(row) + " has at most " + std::to_string(most) + " " + what + (most == 1 ? "" : "s") +
                           ", the node has " + std::to_string(given));
}

} // namespace

void requireAttributes(const OpRow &row, const NodeAttributes &attributes) {
  for (const auto &[name, attribute] : attributes) {
    std::optional<AttributeKind> wanted = attributeKind(row, name);
    if (!wanted)
      fail("op-attribute", version(row) + " has no attribute '" + name + "'" +
                               (*row.attributes ? " (it has " + attributeNames(row) + ")" : " (it has none)"));
    if (kindOf(attribute) != wanted && !std::holds_alternative<std::monostate>(attribute))
      fail("op-attribute", "the attribute '" + name + "' must be " + describe(*wanted));
  }
}

void requireCounts(const OpRow &row, size_t operands, size_t results) {
  requireMost(row, operands, mostOperands(row), "operand");
  requireMost(row, results, mostResults(row), "result");
}

void requireTypes(const OpRow &row, const std::vector<Val> &operands) {
  std::map<char, size_t> firsts; // by type variable
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i] || !operands[i].isTensor())
      continue;
    DType type = operands[i].dtype();
    TypeSet accepted =
        row.operandTypes.empty() ? types::Any : row.operandTypes[std::min(i, row.operandTypes.size() - 1)];
    if (!(accepted & bitOf(type)))
      fail("op-dtype", "operand " + std::to_string(i) + " is " + std::string(dtypeName(type)) +
                           "; accepted: " + typeSetName(accepted));
    char variable = typeVariable(row, i);
    if (variable == '.')
      continue;
    size_t first = firsts.try_emplace(variable, i).first->second;
    if (DType other = operands[first].dtype(); other != type)
      fail("op-dtype", "operands " + std::to_string(first) + " and " + std::to_string(i) + " are " +
                           std::string(dtypeName(other)) + " and " + std::string(dtypeName(type)) +
                           "; the definition has one type for both");
  }
}

} // namespace dmxc::onnxfe
