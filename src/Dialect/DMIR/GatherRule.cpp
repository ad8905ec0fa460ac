//===- GatherRule.cpp - constant indices that follow from their place ------===//
#include "dmxc/Dialect/DMIR/GatherRule.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include <algorithm>

using namespace dmxc;
using namespace dmxc::dmir;
using namespace mlir;

static std::optional<GatherRule> ruleOf(ArrayRef<int64_t> line) {
  const int64_t count = line.size();
  GatherRule rule{line.front(), 0, 1};
  while (rule.run < count && line[rule.run] == rule.first)
    ++rule.run;
  if (rule.run < count)
    rule.step = line[rule.run] - rule.first;
  else
    rule.run = 1;
  for (int64_t i = 0; i < count; ++i)
    if (line[i] != rule.at(i))
      return std::nullopt;
  return rule;
}

std::optional<GatherRule> dmir::gatherRuleOf(GatherOp gather) {
  auto type = cast<RankedTensorType>(gather.getIndices().getType());
  const int64_t size = cast<RankedTensorType>(gather.getData().getType()).getDimSize(gather.getAxis());
  if (type.getRank() != 1 || !type.getElementType().isInteger(64) || !isConstant(gather.getIndices()) ||
      type.getDimSize(0) < 2 || size == ShapedType::kDynamic)
    return std::nullopt;
  std::optional<Tensor> tensor = constantTensor(gather.getIndices());
  if (!tensor)
    return std::nullopt;
  const int64_t count = tensor->numElements();
  std::optional<GatherRule> rule = ruleOf(ArrayRef(tensor->as<int64_t>(), count));
  if (!rule)
    return std::nullopt;
  const int64_t last = rule->at(count - 1);
  return std::min(rule->first, last) >= 0 && std::max(rule->first, last) < size ? rule : std::nullopt;
}

bool dmir::isRuledIndex(const OpOperand &use) {
  auto gather = dyn_cast<GatherOp>(use.getOwner());
  return gather && gather.getIndices() == use.get() && gatherRuleOf(gather);
}

void dmir::cloneInText(OpBuilder &builder, Operation *constant, IRMapping &mapping) {
  std::optional<Tensor> tensor = constantTensor(constant->getResult(0));
  auto copy = cast<ConstantOp>(builder.clone(*constant, mapping));
  if (tensor && !isa<DenseElementsAttr>(copy.getValue()))
    copy.setValueAttr(DenseElementsAttr::getFromRawBuffer(
        cast<ShapedType>(copy.getType()),
        ArrayRef(reinterpret_cast<const char *>(tensor->data()), tensor->byteSize())));
}
