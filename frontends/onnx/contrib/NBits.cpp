//===- NBits.cpp - weights of few bits with a scale a block ---------------===//
#include "Contrib.h"

#include "frontends/common/ops/BlockQuantized.h"
#include "frontends/common/ops/Formulas.h"
#include "frontends/common/ops/Product.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

void requireBits(NodeContext &c, int64_t bits) {
  c.requireAttr(bits == 2 || bits == 4 || bits == 8, "weights have 2, 4 or 8 bits, not " + std::to_string(bits));
}

void requireBlock(NodeContext &c, int64_t block) {
  c.requireAttr(block >= 16 && (block & (block - 1)) == 0,
                "block_size must be a power of two of at least 16, not " + std::to_string(block));
}

Val shaped(NodeContext &c, const Val &value, const Dims &dims, const char *what, const std::string &why) {
  c.requireShape(mayEqual(value.dims(), dims), std::string("the ") + what + " " + value.describe() + " must have the " +
                                                   "shape " + dimsString(dims) + why);
  return c.e.expectDims(value, dims);
}

namespace {

/// What the attributes of MatMulNBits say of its weights, which are [n, k].
struct Packing {
  int64_t k, n, bits, block;
  int64_t blocks() const { return (k + block - 1) / block; }
  std::string text() const {
    return " for K = " + std::to_string(k) + ", N = " + std::to_string(n) + ", " + std::to_string(bits) +
           " bits and blocks of " + std::to_string(block);
  }
};

Packing packingOf(NodeContext &c) {
  Packing p{c.attrInt("K"), c.attrInt("N"), c.attrInt("bits", 4), c.attrInt("block_size")};
  requireBits(c, p.bits);
  requireBlock(c, p.block);
  for (int64_t size : {p.k, p.n, p.block})
    c.requireAttr(size > 0 && size <= INT32_MAX, "K, N and block_size must be positive, and below 2^31");
  int64_t level = c.attrInt("accuracy_level", 0);
  c.requireAttr(level >= 0 && level <= 4, "accuracy_level is 0 to 4, not " + std::to_string(level));
  c.requireAttr(c.attrInt("weight_prepacked", 0) == 0,
                "the weights are packed for one device (weight_prepacked); export them with weight_prepacked 0");
  return p;
}

/// An operand that has one row for each of the n results; older models have the rows joined.
Val rowsOf(NodeContext &c, int i, const Packing &p, int64_t width, const char *what) {
  Val value = c.operand(i);
  if (value.rank() == 1)
    return c.e.reshape(shaped(c, value, {p.n * width}, what, p.text()), {p.n, width});
  return shaped(c, value, {p.n, width}, what, p.text());
}

Val zeroPointsOf(NodeContext &c, const Packing &p) {
  if (!c.has(3))
    return Val();
  if (c.operand(3).dtype() == DType::U8)
    return rowsOf(c, 3, p, (p.blocks() * p.bits + 7) / 8, "packed zero points");
  if (c.operand(3).dtype() != c.operand(2).dtype())
    fail("op-dtype", "zero points that are not packed must have the scales' type, not " +
                         std::string(dtypeName(c.operand(3).dtype())));
  return rowsOf(c, 3, p, p.blocks(), "zero points");
}

/// g_idx: the block whose scale each of the k weights has.
Val groupsOf(NodeContext &c, const Packing &p) {
  if (!c.has(4))
    return Val();
  Val groups = c.operand(4);
  c.requireShape(groups.rank() == 1 &&
                     (mayEqual(groups.extent(0), p.k) || mayEqual(groups.extent(0), p.blocks() * p.block)),
                 "g_idx " + groups.describe() + " must have one number for each of the K = " + std::to_string(p.k) +
                     " weights, or for each of the " + std::to_string(p.blocks()) + " whole blocks'");
  Emitter &e = c.e;
  Val zero = e.scalarLike(groups, 0), end = e.intScalar(groups.dtype(), p.blocks());
  Val inside = both(e, e.compare(Compare::ge, groups, zero), e.compare(Compare::lt, groups, end));
  if (inside.isConstant())
    for (int64_t i = 0; i < inside.numElements(); ++i)
      c.requireShape(inside.constant().asInt(i) != 0, "g_idx has the number " +
                                                          std::to_string(groups.constant().asInt(i)) + ", but there " +
                                                          "are " + std::to_string(p.blocks()) + " blocks");
  else
    c.requireAtRun(inside);
  return groups;
}

/// Whether the model leaves the projection out, which it says with an empty B.
bool isOmitted(const Val &packed) {
  return llvm::any_of(packed.dims(), [](Dim dim) { return dim.is(0); });
}

Val product(NodeContext &c, const Packing &p, const Val &a) {
  Emitter &e = c.e;
  if (isOmitted(c.operand(1))) {
    Dims dims = a.dims();
    dims.back() = p.n;
    return e.splat(DType::F32, dims, 0);
  }
  const int64_t bytes = p.block * p.bits / 8;
  BlockQuantized q;
  q.codes = e.reshape(shaped(c, c.operand(1), {p.n, p.blocks(), bytes}, "packed weights", p.text()),
                      {p.n, p.blocks() * bytes});
  q.bits = p.bits;
  q.block = p.block;
  q.count = p.k;
  q.scales = rowsOf(c, 2, p, p.blocks(), "scales");
  q.zeros = zeroPointsOf(c, p);
  q.groups = groupsOf(c, p);
  return numpyMatMul(e, e.cast(a, DType::F32), e.transposeLast(blockDequantize(e, q)));
}

// Computed in f32 whatever the types are; accuracy_level allows less than that.
void importMatMulNBits(NodeContext &c) {
  Packing p = packingOf(c);
  Val a = c.operand(0);
  c.requireShape(a.rank() > 0 && mayEqual(a.extent(-1), p.k),
                 "A " + a.describe() + " must have K = " + std::to_string(p.k) + " columns");
  Val y = product(c, p, a);
  if (c.has(5))
    y = c.e.add(y, c.e.cast(shaped(c, c.operand(5), {p.n}, "bias", p.text()), DType::F32));
  c.result(c.e.cast(y, a.dtype()));
}

//===--- MatMulBnb4 --------------------------------------------------------===//

/// The numbers of FP4 and NF4, which bitsandbytes defines.
constexpr double kFp4[16] = {0,    0.005208333333,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
                             -0.0, -0.005208333333, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr double kNf4[16] = {-1.0,
                             -0.6961928009986877,
                             -0.5250730514526367,
                             -0.39491748809814453,
                             -0.28444138169288635,
                             -0.18477343022823334,
                             -0.09105003625154495,
                             0.0,
                             0.07958029955625534,
                             0.16093020141124725,
                             0.24611230194568634,
                             0.33791524171829224,
                             0.44070982933044434,
                             0.5626170039176941,
                             0.7229568362236023,
                             1.0};

/// The first `count` numbers of a table that bytes name; the first of each byte in its high bits.
Val tableNumbers(Emitter &e, const Val &bytes, llvm::ArrayRef<double> table, Dim count) {
  Val codes = e.reshape(unpackedBits(e, bytes, 4, bytes.extent(0) * 2), {bytes.extent(0), 2});
  codes = e.reshape(e.slice(codes, {Dim(0), Dim(1)}, codes.dims(), {1, -1}), {bytes.extent(0) * 2});
  Val indices = e.cast(e.sliceAxis(codes, 0, 0, count), DType::I32);
  return e.gather(e.floats(DType::F32, {16}, table), indices, 0);
}

void importMatMulBnb4(NodeContext &c) {
  Emitter &e = c.e;
  const int64_t k = c.attrInt("K"), n = c.attrInt("N"), block = c.attrInt("block_size"), type = c.attrInt("quant_type");
  requireBlock(c, block);
  for (int64_t size : {k, n, block})
    c.requireAttr(size > 0 && size <= INT32_MAX, "K, N and block_size must be positive, and below 2^31");
  c.requireAttr(type == 0 || type == 1, "quant_type is 0 (FP4) or 1 (NF4), not " + std::to_string(type));
  c.requireAttr(c.attrInt("training_mode", 0) == 0, "training is not supported");
  const Dim count = n * k, blocks = Dim::ceilDiv(count, block);
  const std::string why = " for K = " + std::to_string(k) + " and N = " + std::to_string(n);
  Val bytes = e.reshape(c.operand(1), {c.operand(1).elements()});
  bytes = shaped(c, bytes, {Dim::ceilDiv(count, 2)}, "packed weights", why);
  Val scales = e.cast(shaped(c, c.operand(2), {blocks}, "scales (absmax)", why), DType::F32);
  scales = e.broadcast(e.reshape(scales, {blocks, 1}), {blocks, block});
  scales = e.sliceAxis(e.reshape(scales, {blocks * block}), 0, 0, count);
  Val weights = e.mul(tableNumbers(e, bytes, type ? kNf4 : kFp4, count), scales);
  weights = e.reshape(weights, {n, k});
  const bool turned = c.attrInt("transB", 1) != 0;
  Val a = c.operand(0);
  c.requireShape(a.rank() > 0 && mayEqual(a.extent(-1), turned ? k : n),
                 "A " + a.describe() + " must have " + std::to_string(turned ? k : n) + " columns");
  Val y = numpyMatMul(e, e.cast(a, DType::F32), turned ? e.transposeLast(weights) : weights);
  c.result(e.cast(y, a.dtype()));
}

//===--- GatherBlockQuantized ----------------------------------------------===//

/// The axes that are gathered and that has blocks; what they are of the data.
struct Table {
  Val data, scales, zeros; ///< zeros may be null
  int64_t gatherAxis, blockAxis;
  int64_t bits = 0; ///< of packed bytes, else 0
  Dim block;
  Dim count; ///< numbers along the axis that has blocks
};

void requireBytes(NodeContext &c, Table &t) {
  t.bits = c.attrInt("bits", 4);
  requireBits(c, t.bits);
  c.requireAttr(t.gatherAxis == 0, "packed bytes are gathered along axis 0, not " + std::to_string(t.gatherAxis));
  c.requireAttr(t.blockAxis == t.data.rank() - 1 && t.blockAxis != 0,
                "packed bytes have blocks along the last of two or more axes, not along axis " +
                    std::to_string(t.blockAxis));
  t.count = t.data.extent(-1) * (8 / t.bits);
}

/// Fails unless scales (and zero points) fit the data.
void requireParameters(NodeContext &c, Table &t, bool floats) {
  Dims dims = t.data.dims();
  dims[t.blockAxis] = Dim::ceilDiv(t.count, t.block);
  c.requireShape(t.scales.rank() == t.data.rank(), "the scales " + t.scales.describe() + " must have the data's rank");
  for (int64_t i = 0; i < t.data.rank(); ++i)
    if (floats && i != t.blockAxis && t.scales.extent(i).is(1))
      dims[i] = 1;
  const std::string why = ": one for each block of " + t.block.str();
  t.scales = shaped(c, t.scales, dims, "scales", why);
  if (floats)
    c.requireShape(!t.zeros, "numbers of a float type have no zero points");
  if (!t.zeros)
    return;
  if (t.bits)
    dims.back() = Dim::ceilDiv(dims.back(), 8 / t.bits);
  t.zeros = shaped(c, t.zeros, dims, "zero points", why);
}

Table tableOf(NodeContext &c) {
  Table t{c.operand(0), c.operand(2), c.optional(3), 0, 0, 0, 0, 0};
  const DType type = t.data.dtype();
  t.gatherAxis = c.normalizeAxis(c.attrInt("gather_axis", 0), t.data.rank());
  t.blockAxis = c.normalizeAxis(c.attrInt("quantize_axis", 1), t.data.rank());
  t.count = t.data.extent(t.blockAxis);
  const int64_t block = c.attrInt("block_size", 128);
  const bool floats = isFloat(type), wholeRow = floats && block == 0;
  if (!wholeRow)
    requireBlock(c, block);
  t.block = wholeRow ? Dim::max(t.count, 1) : Dim(block);
  if (type == DType::U8)
    requireBytes(c, t);
  else if (!floats)
    c.requireAttr(c.attrInt("bits", 4) == 4, "numbers of type " + std::string(dtypeName(type)) + " have 4 bits, not " +
                                                 std::to_string(c.attrInt("bits", 4)));
  if (t.zeros && t.zeros.dtype() != type)
    fail("op-dtype", "the zero points must have the data's type, not " + std::string(dtypeName(t.zeros.dtype())));
  requireParameters(c, t, floats);
  return t;
}

/// The table's rows, whose axis of blocks is `axis`, as numbers.
Val dequantized(Emitter &e, const Table &t, const Val &data, const Val &scales, const Val &zeros, int64_t axis) {
  const int64_t last = data.rank() - 1;
  BlockQuantized q;
  q.codes = moveAxis(e, data, axis, last);
  q.scales = moveAxis(e, scales, axis, last);
  q.zeros = zeros ? moveAxis(e, zeros, axis, last) : Val();
  q.bits = t.bits;
  q.block = t.block;
  q.count = t.count;
  return moveAxis(e, blockDequantize(e, q), last, axis);
}

// What is gathered stays as few bits as it has: only the rows that a run asks for are unpacked.
void importGatherBlockQuantized(NodeContext &c) {
  Emitter &e = c.e;
  Table t = tableOf(c);
  Val indices = c.operand(1);
  Dim rows = t.data.extent(t.gatherAxis);
  Val least = e.size(Dim(0) - rows, indices.dtype()), end = e.size(rows, indices.dtype());
  Val inside = both(e, e.compare(Compare::ge, indices, least), e.compare(Compare::lt, indices, end));
  Val safe = e.select(inside, indices, e.scalarLike(indices, 0));
  auto take = [&](const Val &x) { return !x || x.extent(t.gatherAxis).is(1) ? x : e.gather(x, safe, t.gatherAxis); };
  Val y;
  if (t.gatherAxis == t.blockAxis) {
    y = e.gather(dequantized(e, t, t.data, t.scales, t.zeros, t.blockAxis), safe, t.gatherAxis);
  } else {
    const int64_t axis = t.blockAxis < t.gatherAxis ? t.blockAxis : t.blockAxis + indices.rank() - 1;
    Val data = e.gather(t.data, safe, t.gatherAxis), scales = take(t.scales);
    // A scale that all rows share broadcasts against what was gathered.
    if (scales.rank() != data.rank()) {
      Dims dims = scales.dims();
      dims.erase(dims.begin() + t.gatherAxis);
      dims.insert(dims.begin() + t.gatherAxis, indices.rank(), 1);
      scales = e.reshape(scales, dims);
    }
    y = dequantized(e, t, data, scales, t.zeros ? e.gather(t.zeros, safe, t.gatherAxis) : Val(), axis);
  }
  Dims dims(y.rank(), 1);
  for (int64_t i = 0; i < indices.rank(); ++i)
    dims[t.gatherAxis + i] = indices.extent(i);
  // An index outside of the table gives zeros.
  c.result(e.cast(whereOrZero(e, e.reshape(inside, dims), y), t.scales.dtype()));
}

} // namespace

std::vector<OpRows> contribNBitsOps() {
  using namespace types;
  constexpr TypeSet U8 = bitOf(DType::U8);
  return {
      {"MatMulNBits",
       {1},
       "T.T..T>1",
       importMatMulNBits,
       "K,N,accuracy_level,bits,block_size,weight_prepacked",
       {kContribFloat, U8, kContribFloat, U8 | kContribFloat, bitOf(DType::I32), kContribFloat},
       "weight_prepacked 0",
       kMicrosoft},
      {"MatMulBnb4",
       {1},
       "T.T>1",
       importMatMulBnb4,
       "K,N,block_size,quant_type=int,training_mode,transB",
       {kContribFloat, U8, kContribFloat},
       "",
       kMicrosoft},
      {"GatherBlockQuantized",
       {1},
       "T..T>1",
       importGatherBlockQuantized,
       "bits,block_size,gather_axis,quantize_axis",
       {U8 | bitOf(DType::I4) | bitOf(DType::U4) | Narrow, Index, kContribFloat, Any},
       "",
       kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
