//===- Attention.h - parts of attention -------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <limits>

namespace dmxc::frontend {

/// What is added to the score of a key that a query may not see.
inline constexpr double kMasked = -std::numeric_limits<double>::infinity();

/// Each key head of [.., heads, keys, size] serves a group of query heads: as many as there are of those.
Val repeatHeads(Emitter &e, const Val &x, Dim heads);
/// The square root of the scale, which is one over the root of the heads' size where it is not given; f64.
Val rootOfScale(Emitter &e, std::optional<double> scale, Dim size);
/// The scale itself, f32, where 0 stands for none that is given.
Val scaleOrDefault(Emitter &e, double scale, Dim size);
/// q k^T, scaled by the root on both sides: products stay small in half precision.
Val scaledScores(Emitter &e, const Val &q, const Val &k, const Val &rootOfQ, const Val &rootOfK);
/// x [.., size] with pairs of its first numbers turned by angles, whose cosines and sines [.., half] broadcast against
/// x; numbers behind the pairs stay. A pair is two neighbours, or numbers `half` apart.
Val rotatePairs(Emitter &e, const Val &x, const Val &cosine, const Val &sine, bool neighbours);
/// Queries that see no key under what is added to their scores, [.., keys], with an axis of 1 for keys: torch gives 0
/// for them, not NaN. Null where each is known to see one.
Val rowsWithoutKeys(Emitter &e, const Val &bias);
/// A mask that is added to scores of `type`: bools say who may see whom.
Val additiveMask(Emitter &e, const Val &mask, DType type, const Val &zero, const Val &masked);

} // namespace dmxc::frontend
