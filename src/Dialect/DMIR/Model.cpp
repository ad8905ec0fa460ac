//===- Model.cpp - facts of a whole model ---------------------------------===//
#include "dmxc/Dialect/DMIR/Model.h"

#include "dmxc/Support/Visible.h"

using namespace mlir;
using namespace dmxc;

std::set<std::string> dmir::nodeNames(ModuleOp module, const llvm::StringSet<> &read) {
  std::set<std::string> all;
  for (const auto &entry : read)
    all.insert(visible(entry.getKey()));
  module.walk([&](Operation *op) {
    if (isa_and_nonnull<DMIRDialect>(op->getDialect()) && !isa<ConstantOp>(op))
      all.insert(nodeName(op));
  });
  return all;
}

void dmir::setNodeCount(ModuleOp module, const std::set<std::string> &nodes) {
  module->setAttr(kNodesAttr, Builder(module.getContext()).getI64IntegerAttr(static_cast<int64_t>(nodes.size())));
}

DictionaryAttr dmir::roundedFact(MLIRContext *context, int64_t bytes, int64_t kept, double error) {
  Builder b(context);
  auto entry = [&](StringRef key, Attribute value) { return b.getNamedAttr(key, value); };
  return b.getDictionaryAttr({entry("bytes", b.getI64IntegerAttr(bytes)), entry("error", b.getF64FloatAttr(error)),
                              entry("kept", b.getI64IntegerAttr(kept))});
}

double dmir::roundedError(DictionaryAttr rounded) { return rounded.getAs<FloatAttr>("error").getValueAsDouble(); }

int64_t dmir::nominalSize(Operation *op, StringRef symbol, int64_t wanted) {
  DimBounds bounds = symbolBounds(op, symbol);
  return std::clamp(wanted, std::max<int64_t>(bounds.min, 1), std::max<int64_t>(bounds.max, 1));
}

bool dmir::holds(DimConstraint::Kind kind, int64_t lhs, int64_t rhs) {
  switch (kind) {
  case DimConstraint::Kind::Equal:
    return lhs == rhs;
  case DimConstraint::Kind::LessOrEqual:
    return lhs <= rhs;
  case DimConstraint::Kind::Broadcast:
    return lhs == rhs || lhs == 1 || rhs == 1;
  case DimConstraint::Kind::BroadcastTo:
    return lhs == rhs || lhs == 1;
  }
  return false;
}
