//===- Formulas.h - small formulas that many operators share ----*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

Val square(Emitter &e, const Val &x);
/// Half precision as f32, for squares and powers, which soon leave its range.
Val widened(Emitter &e, const Val &x);
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
/// Horner's scheme; the highest power's coefficient first.
Val polynomial(Emitter &e, const Val &x, llvm::ArrayRef<double> coefficients);
/// ln(exp(x) + exp(y)) of one type and shape.
Val logAddExp(Emitter &e, const Val &x, const Val &y);
/// The standard normal distribution's cumulative and density functions.
Val normalCdf(Emitter &e, const Val &x);
Val normalPdf(Emitter &e, const Val &x);
/// value where condition holds, else 0.
Val whereOrZero(Emitter &e, const Val &condition, const Val &value);

Val sumOver(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep);
Val meanOver(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes, bool keep);
/// ln(sum(exp(x))) over axes, which stay as 1.
Val logSumExp(Emitter &e, const Val &x, llvm::ArrayRef<int64_t> axes);
/// first, first + 1, .. below the rank.
std::vector<int64_t> axesFrom(int64_t first, int64_t rank);
/// The gradient of a broadcast: sums over the axes that were made.
Val sumTo(Emitter &e, Val x, const Dims &dims);

/// With a new axis of 1.
Val unsqueeze(Emitter &e, const Val &x, int64_t axis);
/// Axis `from` moved to `to`, the others in order.
Val moveAxis(Emitter &e, const Val &x, int64_t from, int64_t to);
/// [n, spatial.., c] as [n, c, spatial..], and back.
Val channelsFirst(Emitter &e, const Val &x);
Val channelsLast(Emitter &e, const Val &x);
/// [.., c * r * r, h, w] as [.., c, h * r, w * r], and back.
Val pixelShuffle(Emitter &e, const Val &x, int64_t r);
Val pixelUnshuffle(Emitter &e, const Val &x, int64_t r);
/// A vector as an axis of a tensor of `rank` whose other axes are 1.
Val alongAxis(Emitter &e, const Val &vector, int64_t axis, int64_t rank);
/// [c] as [c, 1, 1, ...] that broadcasts along axis 1 of a tensor of `rank`.
Val perChannel(Emitter &e, const Val &value, int64_t rank);

} // namespace dmxc::frontend
