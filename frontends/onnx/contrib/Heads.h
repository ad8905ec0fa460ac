//===- Heads.h - what attention of com.microsoft is made of -----*- C++ -*-===//
#pragma once

#include "../NodeContext.h"
#include "Families.h"

namespace dmxc::onnxfe {

/// [batch, sequence, heads * size] as [batch, sequence, heads, size]; fails where the heads do not divide.
Val splitHeads(NodeContext &c, const Val &x, int64_t heads, const char *what);
/// [batch, sequence, heads, size] as [batch, heads, sequence, size], and back with the heads joined.
Val headsFirst(Emitter &e, const Val &x);
Val joinHeads(Emitter &e, const Val &x);
/// Cosines and sines, [.., sequence, half] in f32.
struct Angles {
  Val cosine, sine;
};
/// Those of positions (i64 [batch or 1, sequence]) from the caches in two operands, [positions, half].
Angles anglesAt(NodeContext &c, int cosines, int sines, const Val &positions, Dim half);
/// Those of `rows` positions from `first` on that no cache holds: position / 10000^(i / half).
Angles anglesFrom(Emitter &e, Dim first, Dim rows, int64_t half);
/// x [.., sequence, heads, size] with the angles of its positions; `headAxis` counts from the end.
Val turned(Emitter &e, const Val &x, const Angles &angles, int64_t headAxis, bool neighbours);

/// Where rows go that follow each other from row `first` (i64 [batch or 1, 1]) on in the matrix of each head, i64
/// [batch, heads, rows, 3]; none is behind `last`.
Val placesOfRows(Emitter &e, Dim batch, Dim heads, Dim rows, const Val &first, std::optional<Dim> last = std::nullopt);

/// Attention of some heads in f32: q [batch, heads, queries, size], k and v [batch, kv heads, keys, size], where each
/// kv head serves a group of query heads. The queries of a group stand as rows of one matrix, so that keys and values
/// are read as they are.
class GroupedAttention {
public:
  GroupedAttention(Emitter &e, const Val &q, const Val &k, const Val &v);

  /// What has an element for each query, [batch or 1, heads or 1, queries or 1, n], by the rows of the matrices: those
  /// of a group at one place lie beside each other.
  Val rows(const Val &x) const;
  /// Rows as [batch, heads, queries, n].
  Val queries(const Val &x) const;
  int64_t group() const { return perKey; }

  /// Scaled, and limited to `softcap` where that is not 0; what they are before anything is added.
  Val scores(const Val &scale, double softcap) const;
  /// The weighted sums of the values, [batch, heads, queries, size].
  Val weighted(const Val &weights) const { return queries(e.matmul(weights, v)); }

private:
  Emitter &e;
  Val q, k, v;
  int64_t heads, perKey;
};

} // namespace dmxc::onnxfe
