//===- Heads.cpp - what attention of com.microsoft is made of -------------===//
#include "Heads.h"

#include "frontends/common/ops/Attention.h"
#include "frontends/common/ops/Formulas.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

Val splitHeads(NodeContext &c, const Val &x, int64_t heads, const char *what) {
  c.requireShape(x.rank() == 3, std::string(what) + " is " + x.describe() + "; expected rank 3");
  c.requireShape(heads > 0 && x.extent(2).valueOr(0) % heads == 0, "the " + x.extent(2).str() + " numbers of " + what +
                                                                       " do not divide into " + std::to_string(heads) +
                                                                       " heads");
  return c.e.reshape(x, {x.extent(0), x.extent(1), heads, Dim::floorDiv(x.extent(2), heads)});
}

Val headsFirst(Emitter &e, const Val &x) { return e.transpose(x, {0, 2, 1, 3}); }

Val joinHeads(Emitter &e, const Val &x) {
  Val last = headsFirst(e, x);
  return e.reshape(last, {last.extent(0), last.extent(1), last.extent(2) * last.extent(3)});
}

Angles anglesAt(NodeContext &c, int cosines, int sines, const Val &positions, Dim half) {
  Val cosine = c.operand(cosines), sine = c.operand(sines);
  c.requireShape(cosine.rank() == 2 && mayEqual(cosine.dims(), sine.dims()) && mayEqual(cosine.extent(1), half),
                 "cos_cache " + cosine.describe() + " and sin_cache " + sine.describe() +
                     " must be two matrices of one shape, with " + half.str() + " columns");
  auto at = [&](const Val &cache) {
    Val expected = c.e.expectDims(cache, {cache.extent(0), half});
    return c.e.cast(c.e.gather(expected, positions, 0), DType::F32);
  };
  return {at(cosine), at(sine)};
}

Angles anglesFrom(Emitter &e, Dim first, Dim rows, int64_t half) {
  std::vector<double> rates;
  for (int64_t i = 0; i < half; ++i)
    rates.push_back(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  Val position = e.cast(e.add(e.iota(DType::I64, {1, rows, 1}, 1), e.size(first)), DType::F64);
  Val angle = e.mul(position, e.floats(DType::F64, {1, 1, half}, rates));
  return {e.cast(e.emit<CosOp>({angle}), DType::F32), e.cast(e.emit<SinOp>({angle}), DType::F32)};
}

Val turned(Emitter &e, const Val &x, const Angles &angles, int64_t headAxis, bool neighbours) {
  auto spread = [&](const Val &value) { return unsqueeze(e, value, value.rank() + 1 - headAxis); };
  return rotatePairs(e, x, spread(angles.cosine), spread(angles.sine), neighbours);
}

Val placesOfRows(Emitter &e, Dim batch, Dim heads, Dim rows, const Val &first, std::optional<Dim> last) {
  Dims each{batch, heads, rows, 1};
  Val row = e.add(e.reshape(first, {first.extent(0), 1, 1, 1}), e.iota(DType::I64, {1, 1, rows, 1}, 2));
  if (last)
    row = e.min(row, e.size(*last));
  return e.concat({e.iota(DType::I64, each, 0), e.iota(DType::I64, each, 1), e.broadcast(row, each)}, 3);
}

GroupedAttention::GroupedAttention(Emitter &e, const Val &q, const Val &k, const Val &v)
    : e(e), q(e.cast(q, DType::F32)), k(e.cast(k, DType::F32)), v(e.cast(v, DType::F32)), heads(q.dim(1)),
      perKey(q.dim(1) / k.dim(1)) {}

// Queries of a group lie beside each other, those of one place first: a row's place is the row divided by a number,
// which a mask is read by whatever the number of places is.
Val GroupedAttention::rows(const Val &x) const {
  if (perKey == 1 || (x.extent(1).is(1) && x.extent(2).is(1)))
    return x;
  bool isOfHeads = x.extent(1).is(heads);
  Dims split{x.extent(0), isOfHeads ? heads / perKey : 1, isOfHeads ? perKey : 1, x.extent(2), x.extent(3)};
  Val grouped = e.transpose(e.reshape(x, split), {0, 1, 3, 2, 4});
  Dims whole{x.extent(0), split[1], q.extent(2), perKey, x.extent(3)};
  return e.reshape(e.broadcast(grouped, whole), {whole[0], whole[1], q.extent(2) * perKey, whole[4]});
}

Val GroupedAttention::queries(const Val &x) const {
  if (perKey == 1)
    return x;
  Val grouped = e.reshape(x, {x.extent(0), heads / perKey, q.extent(2), perKey, x.extent(3)});
  return e.reshape(e.transpose(grouped, {0, 1, 3, 2, 4}), {x.extent(0), heads, q.extent(2), x.extent(3)});
}

Val GroupedAttention::scores(const Val &scale, double softcap) const {
  Val scores = e.matmul(rows(e.mul(q, scale)), e.transposeLast(k));
  return softcap == 0 ? scores : e.mul(tanhOf(e, e.mul(scores, 1 / softcap)), softcap);
}

} // namespace dmxc::onnxfe
