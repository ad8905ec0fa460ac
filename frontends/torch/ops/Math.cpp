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

Val reduceLoss(AtenContext &c, const Val &loss) {
  int64_t kind = c.integer("reduction");
  c.require(kind >= 0 && kind <= 2, "the reduction " + std::to_string(kind) + " is unknown");
  std::vector<int64_t> all = axesFrom(0, loss.rank());
  return kind == 0 ? loss : kind == 1 ? meanOver(c.e, loss, all, false) : sumOver(c.e, loss, all, false);
}

} // namespace dmxc::torchfe
