//===- PositionBias.cpp - biases by relative positions of com.microsoft ---===//
#include "Heads.h"

#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Order.h"

#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Distances beyond share the last bucket.
constexpr int64_t kMaxDistance = int64_t(1) << 20;

/// The bucket of each distance up to `most`: half of them have one distance each, the others grow as its logarithm.
std::vector<int64_t> bucketsOf(int64_t buckets, int64_t most) {
  std::vector<int64_t> found;
  int64_t exact = buckets / 2;
  for (int64_t distance = 0; distance <= most; ++distance) {
    double share = std::log(static_cast<double>(std::max<int64_t>(distance, 1)) / static_cast<double>(exact)) /
                   std::log(static_cast<double>(most) / static_cast<double>(exact));
    auto grown = static_cast<int64_t>(share * static_cast<double>(buckets - exact));
    found.push_back(distance < exact ? distance : std::min(exact + grown, buckets - 1));
  }
  return found;
}

/// The table [buckets, heads] has the buckets of one head one behind the other, whatever its shape says.
void importRelativeBias(NodeContext &c) {
  Emitter &e = c.e;
  Val table = c.operand(0);
  c.requireShape(table.rank() == 2 && table.extent(0).isStatic(),
                 "the table is " + table.describe() + "; expected rank 2 and a known number of buckets");
  bool both = c.attrInt("is_bidirectional", 0) != 0;
  int64_t all = table.dim(0), buckets = both ? all / 2 : all, most = c.attrInt("max_distance");
  c.requireShape(buckets >= 2, std::to_string(all) + " buckets are too few");
  c.requireAttr(most > buckets / 2 && most <= kMaxDistance, "max_distance must be greater than " +
                                                                std::to_string(buckets / 2) +
                                                                ", the distances with a bucket of their own");
  Dim rows = c.size(1, "query_length"), columns = c.size(2, "key_length");
  Val distance = e.sub(e.iota(DType::I64, {1, columns}, 1), e.iota(DType::I64, {rows, 1}, 0));
  Val near = e.min(absOf(e, distance), e.intScalar(DType::I64, most));
  Val bucket = e.gather(e.ints(bucketsOf(buckets, most)), near, 0);
  if (both) {
    Val ahead = e.compare(Compare::gt, distance, e.intScalar(DType::I64, 0));
    bucket = e.add(bucket, whereOrZero(e, ahead, e.intScalar(DType::I64, buckets)));
  }
  Val biases = e.gather(e.reshape(table, {table.extent(1), all}), bucket, 1);
  c.result(unsqueeze(e, biases, 0));
}

/// [batch, sequence, heads * size]; rows without padding are put to their places.
Val paddedQuery(NodeContext &c) {
  Emitter &e = c.e;
  Val query = e.cast(c.operand(0), DType::F32);
  if (!c.has(6))
    return query;
  Val offsets = c.cast64(6);
  c.requireShape(query.rank() == 2 && offsets.rank() == 2,
                 "token_offset " + offsets.describe() + " goes with a query [tokens, n], not " + query.describe());
  Dim tokens = query.extent(0), size = query.extent(1), places = offsets.elements();
  Val at = e.sliceAxis(e.reshape(offsets, {places, 1}), 0, 0, tokens);
  Val whole = scatterND(e, e.splat(DType::F32, {places, size}, 0), at, query, ScatterMode::replace);
  return e.reshape(whole, {offsets.extent(0), offsets.extent(1), size});
}

void importGatedBias(NodeContext &c) {
  Emitter &e = c.e;
  auto wide = [&](int operand) { return e.cast(c.operand(operand), DType::F32); };
  int64_t heads = c.attrInt("num_heads");
  Val query = paddedQuery(c), bias = wide(1), relative = wide(2), weight = wide(3), offset = wide(4), eco = wide(5);
  c.requireShape(query.rank() == 3 && bias.rank() == 1 && mayEqual(bias.extent(0), query.extent(2)),
                 "the query has the dims " + dimsString(query.dims()) + " and its bias " + dimsString(bias.dims()));
  Val layer = headsFirst(e, splitHeads(c, e.add(query, bias), heads, "the query"));
  c.requireShape(weight.rank() == 2 && mayEqual(weight.extent(0), layer.extent(3)) &&
                     weight.extent(1).valueOr(0) % 2 == 0 && mayEqual(offset.dims(), Dims{weight.extent(1)}),
                 "the weight " + weight.describe() + " and its bias " + offset.describe() +
                     " must have a row for each of a head's " + layer.extent(3).str() +
                     " numbers and an even number of columns");
  Dims places{1, heads, layer.extent(2), layer.extent(2)}, one{1, heads, 1, 1};
  c.requireShape(mayEqual(relative.dims(), places) && mayEqual(eco.dims(), one),
                 "rel_pos " + relative.describe() + " must be [" + dimsString(places) + "] and eco_a " +
                     eco.describe() + " [" + dimsString(one) + "]");
  Val gates = e.add(e.matmul(layer, weight), e.expectDims(offset, {weight.extent(1)}));
  gates = e.reshape(gates, {layer.extent(0), heads, layer.extent(2), 2, Dim::floorDiv(weight.extent(1), 2)});
  gates = sigmoid(e, e.reduce(Reduction::sum, gates, {4}, false));
  Val u = e.sliceAxis(gates, 3, 0, 1), r = e.sliceAxis(gates, 3, 1, 1);
  Val gate = e.add(e.mul(u, e.add(e.mul(r, eco), -1.0)), 2.0);
  c.result(e.cast(e.mul(gate, relative), c.operand(0).dtype()));
}

} // namespace

std::vector<OpRows> contribPositionBiasOps() {
  using namespace types;
  constexpr TypeSet F = kContribFloat;
  return {
      {"RelativePositionBias",
       {1},
       ".TT>1",
       importRelativeBias,
       "is_bidirectional,max_distance",
       {F, Index},
       "",
       kMicrosoft},
      {"GatedRelativePositionBias",
       {1},
       "TTTTTT.>1",
       importGatedBias,
       "num_heads",
       {F, F, F, F, F, F, Index},
       "",
       kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
