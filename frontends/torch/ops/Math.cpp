//===- Math.cpp - small formulas that several families share --------------===//
#include "Math.h"

namespace dmxc::torchfe {

std::vector<Val> promote(AtenContext &c, const std::vector<Operand> &operands) {
  DType type = AtenContext::promoted(operands);
  std::vector<Val> values;
  for (const Operand &operand : operands)
    values.push_back(c.cast(operand.value, type));
  return values;
}

Val scaled(AtenContext &c, const Val &b, const char *name) {
  const Arg &alpha = c.arg(name);
  if (alpha.isNone() || (alpha.ints.size() == 1 && alpha.ints[0].is(1)) ||
      (alpha.numbers.size() == 1 && alpha.numbers[0] == 1))
    return b;
  c.require(isFloat(b.dtype()) || alpha.kind != Arg::Kind::Float, "alpha must be an integer for integers");
  return c.e.mul(b, c.cast(c.operand(name).value, b.dtype()));
}

Val asNumbers(AtenContext &c, const Val &x) { return x.dtype() == DType::Bool ? c.cast(x, DType::U8) : x; }

Val reduceLoss(AtenContext &c, const Val &loss) {
  int64_t kind = c.integer("reduction");
  c.require(kind >= 0 && kind <= 2, "the reduction " + std::to_string(kind) + " is unknown");
  std::vector<int64_t> all = axesFrom(0, loss.rank());
  return kind == 0 ? loss : kind == 1 ? meanOver(c.e, loss, all, false) : sumOver(c.e, loss, all, false);
}

std::vector<Arg> call(AtenContext &c, const char *target, std::vector<Arg> arguments) {
  const AtenOp &op = *AtenTable::get().find(target);
  for (size_t i = arguments.size(); i < op.schema.parameters.size(); ++i)
    arguments.push_back(op.schema.parameters[i].otherwise.value_or(Arg::none()));
  return callOperator(op, std::move(arguments), c.name, c.e);
}
Val called(AtenContext &c, const char *target, std::vector<Arg> arguments) {
  return call(c, target, std::move(arguments))[0].tensors[0];
}

std::vector<Val> broadcastTogether(AtenContext &c, std::vector<Val> tensors) {
  Dims dims;
  for (const Val &tensor : tensors) {
    std::optional<llvm::SmallVector<Dim>> wider = dmir::broadcastDims(dims, tensor.dims());
    c.requireShape(wider.has_value(),
                   "shapes " + dimsString(dims) + " and " + dimsString(tensor.dims()) + " do not broadcast");
    dims = Dims(*wider);
  }
  for (Val &tensor : tensors)
    tensor = c.e.broadcast(tensor, dims);
  return tensors;
}

std::pair<Val, Val> floatPair(AtenContext &c, const char *first, const char *second) {
  std::vector<Val> v = promote(c, {{c.tensor(first), false}, {c.tensor(second), false}});
  v = broadcastTogether(c, {c.asFloat(v[0]), c.asFloat(v[1])});
  return {v[0], v[1]};
}

} // namespace dmxc::torchfe
