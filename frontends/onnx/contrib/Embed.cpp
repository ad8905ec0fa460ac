//===- Embed.cpp - embeddings of com.microsoft ----------------------------===//
#include "Families.h"

#include "../NodeContext.h"

#include "frontends/common/ops/Norm.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Rows of a table of rank 2, in f32.
Val rowsOf(NodeContext &c, int table, const Val &ids) {
  Val rows = c.operand(table);
  c.requireShape(rows.rank() == 2,
                 "the embedding (operand " + std::to_string(table) + ") is " + rows.describe() + "; expected rank 2");
  c.requireShape(mayEqual(rows.extent(1), c.operand(2).extent(-1)),
                 "the embeddings " + rows.describe() + " and " + c.operand(2).describe() + " differ in their width");
  return c.e.cast(c.e.gather(rows, ids, 0), DType::F32);
}

/// An operand of ids, i64 [batch, sequence]; `shared`: the batch may be 1.
Val idsOf(NodeContext &c, int operand, const char *what, const Dims &dims, bool shared = false) {
  Val ids = c.cast64(operand);
  Dims expected = dims;
  if (shared && ids.rank() == 2 && ids.extent(0).is(1))
    expected[0] = 1;
  c.requireShape(mayEqual(ids.dims(), expected),
                 std::string(what) + " " + ids.describe() + " must be [" + dimsString(expected) + "]");
  return c.e.expectDims(ids, expected);
}

/// How many ones each row of the mask has, as ONNX Runtime counts; i32 [batch].
Val maskIndex(NodeContext &c, const Dims &dims) {
  Emitter &e = c.e;
  if (!c.has(7))
    return e.splat(DType::I32, {dims[0]}, 0);
  Val ones = e.compare(Compare::eq, idsOf(c, 7, "the mask", dims), e.intScalar(DType::I64, 1));
  return e.reduce(Reduction::sum, e.cast(ones, DType::I32), {1}, false);
}

void importEmbedLayerNorm(NodeContext &c) {
  Emitter &e = c.e;
  Val ids = c.cast64(0);
  c.requireShape(ids.rank() == 2, "input_ids are " + ids.describe() + "; expected rank 2");
  c.requireShape(c.has(1) == c.has(4), "segment_ids and segment_embedding must both be there or both be left out");
  Dims dims = ids.dims();
  Val places = c.has(8) ? idsOf(c, 8, "position_ids", dims, true) : e.iota(DType::I64, {1, dims[1]}, 1);
  Val words = rowsOf(c, 2, ids), sum = e.add(words, rowsOf(c, 3, places));
  if (c.has(1))
    sum = e.add(sum, rowsOf(c, 4, idsOf(c, 1, "segment_ids", dims)));
  Dim hidden = words.extent(2);
  Dims expected{dims[0], dims[1], hidden};
  c.requireShape(mayEqual(sum.dims(), expected), "the embeddings differ in their sizes: " + dimsString(sum.dims()) +
                                                     " where the words have " + dimsString(expected));
  sum = e.expectDims(sum, expected);
  auto vectorOf = [&](int operand) {
    Val value = c.operand(operand);
    c.requireShape(value.rank() == 1 && mayEqual(value.extent(0), hidden),
                   "gamma and beta must have " + hidden.str() + " numbers, not " + value.describe());
    return e.cast(value, DType::F32);
  };
  Val y = normalize(e, Normalization::standard, sum, {2}, c.attrFloat("epsilon", 1e-12));
  y = e.add(e.mul(y, vectorOf(5)), vectorOf(6));
  DType type = c.operand(2).dtype();
  c.result(0, e.cast(y, type));
  if (c.wants(1))
    c.result(1, maskIndex(c, dims));
  c.result(2, e.cast(sum, type));
}

} // namespace

std::vector<OpRows> contribEmbedOps() {
  using namespace types;
  constexpr TypeSet F = kContribFloat;
  return {{"EmbedLayerNormalization",
           {1},
           "TTUUUUUTT>3",
           importEmbedLayerNorm,
           "epsilon,mask_index_type",
           {Index, Index, F, F, F, F, F, Index, Index},
           "",
           kMicrosoft}};
}

} // namespace dmxc::onnxfe
