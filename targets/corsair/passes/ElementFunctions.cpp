//===- ElementFunctions.cpp - functions of single elements ----------------===//
#include "ElementFunctions.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "targets/corsair/decide/Ops.h"

#include "schemas/corsair/SimdFunctions.h"

using namespace mlir;
using namespace dmxc;

OwningOpRef<Operation *> dmxc::namedOp(lldmir::SimdOp op) {
  OperationState state(op->getLoc(), ("dmir." + op.getFunction()).str());
  state.addAttributes(op.getParametersAttr() ? op.getParametersAttr().getValue() : ArrayRef<NamedAttribute>());
  if (!RegisteredOperationName::lookup(state.name.getStringRef(), op->getContext()))
    return {};
  state.addTypes(RankedTensorType::get({}, Float16Type::get(op->getContext())));
  return Operation::create(state);
}

OwningOpRef<lldmir::SimdOp> dmxc::functionOf(lldmir::ConvOp conv, Attribute unit) {
  auto all = cast<DictionaryAttr>(unit);
  OpBuilder builder(conv.getContext());
  auto node = all.getAs<StringAttr>("node");
  const Location loc = node ? Location(NameLoc::get(node)) : conv.getLoc();
  return lldmir::SimdOp::create(builder, loc, TypeRange(), all.getAs<StringAttr>("function").getValue(), ValueRange(),
                                ValueRange(), all.getAs<DictionaryAttr>("parameters"));
}

std::optional<ElementFunction> dmxc::elementwise(lldmir::SimdOp op) {
  using F = corsair::hw::SimdFunction;
  if (op.getFunction() == lldmir::kCopy)
    return ElementFunction{F::Copy};
  if (OwningOpRef<Operation *> named = namedOp(op)) {
    std::optional<F> function = corsair::elementwiseFunction(named.get());
    return function ? std::optional(ElementFunction{*function}) : std::nullopt;
  }
  static constexpr F own[] = {F::Fma, F::Affine, F::Clip, F::LeakyRelu, F::HardSigmoid};
  std::optional<F> function = corsair::hw::simdFunctionFromName(op.getFunction());
  if (!function || !llvm::is_contained(own, *function))
    return std::nullopt;
  auto number = [&](StringRef key) {
    auto given = op.getParametersAttr() ? op.getParametersAttr().getAs<FloatAttr>(key) : FloatAttr();
    return given ? static_cast<float>(given.getValueAsDouble()) : 0.0F;
  };
  return ElementFunction{*function, number("imm0"), number("imm1")};
}
