//===- Math.h - small formulas that several families share ------*- C++ -*-===//
#pragma once

#include "../AtenContext.h"

namespace dmxc::torchfe {

using dmir::Compare;
using dmir::Reduction;

/// Computes in f32 where the operand is f16 or bf16 and rounds once.
template <typename Formula> Val computeWide(AtenContext &c, const Val &x, Formula formula) {
  return c.cast(formula(c.wide(x)), x.dtype());
}

Val square(Emitter &e, const Val &x);
Val sigmoid(Emitter &e, const Val &x);
Val tanhOf(Emitter &e, const Val &x);
Val expOf(Emitter &e, const Val &x);
Val logOf(Emitter &e, const Val &x);
Val sqrtOf(Emitter &e, const Val &x);
Val absOf(Emitter &e, const Val &x);
Val negOf(Emitter &e, const Val &x);
Val reciprocal(Emitter &e, const Val &x);
Val isNaN(Emitter &e, const Val &x);
Val both(Emitter &e, const Val &a, const Val &b);
Val either(Emitter &e, const Val &a, const Val &b);
Val notOf(Emitter &e, const Val &x);
/// x ** p for a number p.
Val powerOf(Emitter &e, const Val &x, double p);
/// The standard normal distribution's cumulative and density functions.
Val normalCdf(Emitter &e, const Val &x);
Val normalPdf(Emitter &e, const Val &x);
/// value where condition holds, else 0.
Val whereOrZero(Emitter &e, const Val &condition, const Val &value);
Val sumOver(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep);
Val meanOver(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep);
std::vector<int64_t> axesFrom(int64_t first, int64_t rank);
/// The gradient of a broadcast: sums over the axes that were made.
Val sumTo(Emitter &e, Val x, const Dims &dims);
/// The operands converted to the type that torch computes them with.
std::vector<Val> promote(AtenContext &c, std::vector<Operand> operands);
/// 0 none, 1 mean, 2 sum, as losses name their reductions.
Val reduceLoss(AtenContext &c, const Val &loss);

} // namespace dmxc::torchfe
