//===- Math.h - small formulas that several families share ------*- C++ -*-===//
#pragma once

#include "../AtenContext.h"

#include "frontends/common/ops/Formulas.h"

namespace dmxc::torchfe {

using dmir::Compare;
using dmir::Reduction;

/// Computes in f32 where the operand is f16 or bf16 and rounds once.
template <typename Formula> Val computeWide(AtenContext &c, const Val &x, Formula formula) {
  return c.cast(formula(c.wide(x)), x.dtype());
}

/// The operands converted to the type that torch computes them with.
std::vector<Val> promote(AtenContext &c, const std::vector<Operand> &operands);
/// b * alpha; alpha of 1 is left out.
Val scaled(AtenContext &c, const Val &b, const char *name = "alpha");
/// Bools as numbers.
Val asNumbers(AtenContext &c, const Val &x);
/// 0 none, 1 mean, 2 sum, as losses name their reductions.
Val reduceLoss(AtenContext &c, const Val &loss);

/// The results of another operator of the table, its arguments in order; of those that are left out the defaults.
std::vector<Arg> call(AtenContext &c, const char *target, std::vector<Arg> arguments);
/// Its only result.
Val called(AtenContext &c, const char *target, std::vector<Arg> arguments);
/// Tensors with the shape that they broadcast to.
std::vector<Val> broadcastTogether(AtenContext &c, std::vector<Val> tensors);
/// Two tensors as floats of one type and shape.
std::pair<Val, Val> floatPair(AtenContext &c, const char *first, const char *second);

} // namespace dmxc::torchfe
