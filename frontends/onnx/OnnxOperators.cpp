//===- OnnxOperators.cpp - ONNX' operators for other formats --------------===//
#include "OnnxOperators.h"
#include "Definition.h"
#include "NodeContext.h"

namespace dmxc::onnxfe {
namespace {

constexpr int64_t kNewestOpset = 26;

class OnnxOperators : public frontend::OperatorSet {
  std::vector<Val> import(Emitter &e, const std::string &op, std::vector<Val> operands,
                          const frontend::OperatorAttributes &attributes, size_t results,
                          std::optional<int64_t> version) const override {
    int64_t opset = version.value_or(kNewestOpset);
    const OpRow *row = OpTable::get().find("", op, opset);
    if (!row)
      fail("op-unknown", "ONNX has no operator " + op + " in opset " + std::to_string(opset));
    if (!row->import)
      fail("op-unsupported", row->note);
    NodeAttributes own;
    for (const auto &[name, value] : attributes)
      own[name] = attributeOf(value);
    requireAttributes(*row, own);
    while (!operands.empty() && !operands.back())
      operands.pop_back();
    requireCounts(*row, operands.size(), results);
    requireTypes(*row, operands);
    std::vector<std::string> names;
    for (size_t i = 0; i < results; ++i)
      names.push_back("y" + std::to_string(i));
    NodeContext context(*row, opset, op, std::move(operands), std::move(own), std::move(names), e);
    row->import(context);
    context.tieRequirements();
    std::vector<Val> values(results);
    for (size_t i = 0; i < results; ++i)
      if (auto found = context.results().find(static_cast<int>(i)); found != context.results().end())
        values[i] = found->second;
    return values;
  }
};

} // namespace

const frontend::OperatorSet &onnxOperators() {
  static const OnnxOperators operators;
  return operators;
}

} // namespace dmxc::onnxfe
