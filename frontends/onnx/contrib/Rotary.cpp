//===- Rotary.cpp - rotary embedding of com.microsoft ---------------------===//
#include "Heads.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// i64 [batch or 1, sequence]: as given, or counted from the one that is given.
Val positionsOf(NodeContext &c, Dim batch, Dim sequence) {
  Emitter &e = c.e;
  Val ids = c.operand(1);
  if (ids.rank() == 2) {
    Dims expected{batch, sequence};
    c.requireShape(mayEqual(ids.dims(), expected),
                   "position_ids " + ids.describe() + " do not fit " + dimsString(expected) + " positions");
    return e.expectDims(c.cast64(1), expected);
  }
  c.requireShape(ids.rank() < 2 && mayEqual(ids.elements(), 1),
                 "position_ids " + ids.describe() + " must be one number, or one for each position");
  return e.add(e.iota(DType::I64, {1, sequence}, 1), e.reshape(c.cast64(1), {1, 1}));
}

void importRotary(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), cache = c.operand(2);
  int64_t heads = c.attrInt("num_heads", 0), turning = c.attrInt("rotary_embedding_dim", 0);
  c.requireAttr(turning == 0 || heads > 0, "rotary_embedding_dim needs num_heads");
  c.requireAttr(turning >= 0 && turning % 2 == 0, "rotary_embedding_dim must be even");
  c.requireShape(x.rank() == 3 || x.rank() == 4, "expected an input of rank 3 or 4, not " + x.describe());
  c.requireShape(cache.rank() == 2, "cos_cache is " + cache.describe() + "; expected rank 2");
  Dim half = cache.extent(1);
  int64_t headAxis = x.rank() == 3 ? 2 : 3;
  Dims original = x.dims();
  if (x.rank() == 3) {
    if (heads == 0) {
      c.requireShape(half.valueOr(0) > 0,
                     "without num_heads, how many columns the caches have must be known at compile time");
      int64_t size = 2 * *half.known();
      c.requireShape(x.extent(2).valueOr(0) % size == 0,
                     "the " + x.extent(2).str() + " numbers do not divide into heads of " + std::to_string(size));
      x = e.reshape(x, {x.extent(0), x.extent(1), Dim::floorDiv(x.extent(2), size), size});
    } else {
      x = splitHeads(c, x, heads, "the input");
    }
  }
  Dim size = x.extent(3), wanted = turning ? Dim(turning) : size;
  c.requireShape(mayEqual(half * 2, wanted) && wanted.valueOr(0) <= size.valueOr(INT64_MAX),
                 "the caches have " + half.str() + " columns, which do not fit " + wanted.str() + " of " + size.str() +
                     " numbers of a head");
  Angles angles = anglesAt(c, 2, 3, positionsOf(c, x.extent(0), x.extent(headAxis == 2 ? 1 : 2)),
                           half.isStatic() ? half : Dim::floorDiv(wanted, 2));
  Val y = turned(e, e.cast(x, DType::F32), angles, headAxis, c.attrInt("interleaved", 0) != 0);
  c.result(e.reshape(e.cast(y, x.dtype()), original));
}

} // namespace

std::vector<OpRows> contribRotaryOps() {
  using namespace types;
  return {{"RotaryEmbedding",
           {1},
           "T.TT>1",
           importRotary,
           "interleaved,is_packed_batching,num_heads,rotary_embedding_dim,scale",
           {kContribFloat, Index, kContribFloat},
           "scale changes nothing, as in ONNX Runtime",
           kMicrosoft}};
}

} // namespace dmxc::onnxfe
