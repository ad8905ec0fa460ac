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
/// 0 none, 1 mean, 2 sum, as losses name their reductions.
Val reduceLoss(AtenContext &c, const Val &loss);

} // namespace dmxc::torchfe
