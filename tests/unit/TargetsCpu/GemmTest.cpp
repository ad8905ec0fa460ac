//===- GemmTest.cpp - matrix multiplication against a naive reference ----===//

#include "targets/cpu/product/Gemm.h"
#include "KernelHarness.h"
#include "TestTensors.h"
#include "targets/cpu/product/RoundedWeights.h"
#include "tests/Sample.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using mlir::Value;
namespace arith = mlir::arith;

namespace {

/// One product to test. Matrices are dense; `transA`/`transB` say that memory
/// holds [k][m]/[n][k].
struct Case {
  int64_t batch, m, n, k;
  DType a = DType::F32, b = DType::F32, acc = DType::F32;
  bool packedB = true, transA = false, transB = false, heavy = false;
  bool dynamic = false;                      ///< m, n and k at run time (n and k only for a run-time B)
  int64_t padding = 0;                       ///< extra elements in a row of A
  WeightFormat weights = WeightFormat::Kept; ///< of a packed B of f32 and one batch item
  bool readsB = false;                       ///< few rows, a known number, read a run-time B where it lies
};

/// The f32 weights of column `col` (`count` of them, `stride` apart) as the definition of a format rounds them.
void roundColumn(WeightFormat format, Tensor &weights, int64_t first, int64_t stride, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, std::abs(weights.asDouble(first + i * stride)));
  double scale = static_cast<float>(most) / 127.0f;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = first + i * stride;
    uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(weights.asDouble(at)));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    double steps = scale > 0 ? std::nearbyint(weights.asDouble(at) / scale) : 0;
    weights.setDouble(at, format == WeightFormat::BF16 ? std::bit_cast<float>(bits) : steps * scale);
  }
}

struct Problem {
  Case c;
  int64_t lda;
  Tensor a, b, bias, packed;

  explicit Problem(const Case &c) : c(c) {
    lda = (c.transA ? c.m : c.k) + c.padding;
    a = randomTensor(c.a, {c.batch, c.transA ? c.k : c.m, lda}, 1);
    b = randomTensor(c.b, {c.batch, c.k, c.n}, 2);
    bias = randomTensor(c.acc, {c.n}, 3);
    if (c.weights != WeightFormat::Kept) {
      packWithRounding();
      return;
    }
    int64_t bytes = dtypeBits(c.b) / 8, each = panel16Bytes(c.k, c.n, bytes);
    packed = Tensor(DType::U8, {std::max<int64_t>(1, each * c.batch)});
    for (int64_t i = 0; i < c.batch; ++i)
      packPanel16(b.data() + i * c.k * c.n * bytes, c.k, c.n, strideK(), strideN(), bytes,
                  {packed.mutableData() + i * each, static_cast<size_t>(each)});
  }
  /// Packs f32 weights that no format holds exactly, and keeps what the format makes of them as B.
  void packWithRounding() {
    for (int64_t i = 0; i < b.numElements(); ++i)
      b.setDouble(i, b.asDouble(i) * 1.0137f);
    packed = Tensor(DType::U8, {roundedPanelBytes(c.weights, c.k, c.n)});
    packRounded(c.weights, {reinterpret_cast<const float *>(b.data()), c.k, c.n, strideK(), strideN()},
                {packed.mutableData(), static_cast<size_t>(packed.numElements())});
    for (int64_t j = 0; j < c.n; ++j)
      roundColumn(c.weights, b, j * strideN(), strideK(), c.k);
  }
  int64_t strideK() const { return c.transB ? 1 : c.n; }
  int64_t strideN() const { return c.transB ? c.k : 1; }
  double elementA(int64_t z, int64_t i, int64_t kk) const {
    int64_t offset = c.transA ? kk * lda + i : i * lda + kk;
    return a.asDouble(z * a.shape()[1] * lda + offset);
  }
  double want(int64_t z, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t kk = 0; kk < c.k; ++kk)
      sum += elementA(z, i, kk) * b.asDouble(z * c.k * c.n + kk * strideK() + j * strideN());
    return std::max(0.0, sum + bias.asDouble(j));
  }
};

GemmKernel specOf(const Case &c, mlir::Builder &b) {
  GemmKernel spec;
  spec.batch = c.batch;
  spec.m = c.dynamic && !c.readsB ? openSize() : Dim(c.m);
  spec.n = c.dynamic && !c.packedB ? openSize() : Dim(c.n);
  spec.k = c.dynamic && !c.packedB ? openSize() : Dim(c.k);
  spec.aType = mlirType(b, c.a);
  spec.bType = mlirType(b, c.b);
  spec.accType = mlirType(b, c.acc);
  spec.aUnsigned = isUnsignedInt(c.a);
  spec.bUnsigned = isUnsignedInt(c.b);
  if (c.weights != WeightFormat::Kept)
    spec.bType = c.weights == WeightFormat::BF16 ? mlirType(b, DType::BF16) : mlirType(b, DType::I8);
  spec.packedB = c.packedB;
  spec.heavyEpilogue = c.heavy;
  spec.adjacentB = c.readsB;
  return spec;
}

/// relu(sum + bias) to a dense C; sums are scaled by column where `scales` is given.
GemmCallbacks biasRelu(CpuBuilder &b, mlir::Type acc, Value m, Value n, Value scales) {
  GemmCallbacks callbacks;
  callbacks.store = [&b, acc, m, n, scales](Value batch, Value row, Value col, Value value, Value mask) {
    int64_t lanes = mlir::cast<mlir::VectorType>(value.getType()).getNumElements();
    if (scales)
      value = arith::MulFOp::create(b, value, b.load(acc, scales, col, lanes));
    Value bias = mask ? b.maskedLoad(acc, b.buffer(2), col, mask) : b.load(acc, b.buffer(2), col, lanes);
    Value zero = b.constant(value.getType(), 0);
    Value result = mlir::isa<mlir::FloatType>(acc)
                       ? Value(arith::MaximumFOp::create(b, arith::AddFOp::create(b, value, bias), zero))
                       : Value(arith::MaxSIOp::create(b, arith::AddIOp::create(b, value, bias), zero));
    Value to = b.add(b.mul(b.add(b.mul(batch, m), row), n), col);
    mask ? b.maskedStore(result, b.buffer(3), to, mask) : b.store(result, b.buffer(3), to);
  };
  return callbacks;
}

void emitCase(CpuBuilder &b, const Problem &p, const GemmKernel &spec, const GemmTiles &tiles) {
  const Case &c = p.c;
  auto size = [&](unsigned dim, int64_t value) { return c.dynamic ? b.dim(dim) : b.idx(value); };
  Value m = size(0, c.m), n = size(1, c.n), k = size(2, c.k);
  Value lda = c.dynamic ? b.addC(c.transA ? m : k, c.padding) : b.idx(p.lda);
  GemmMatrix a{b.buffer(0), c.transA ? b.idx(1) : lda, c.transA ? lda : b.idx(1), {}};
  a.offset = [&b, &c, m, k, lda](Value z) { return b.mul(z, b.mul(c.transA ? k : m, lda)); };
  GemmMatrix right{b.buffer(1), c.transB ? b.idx(1) : n, c.transB ? k : b.idx(1), {}};
  right.offset = [&b, &c, k, n](Value z) {
    Value columns = c.packedB ? b.mulC(b.ceilDiv(n, b.idx(16)), 16) : n;
    return b.mul(z, b.mul(k, columns));
  };
  Value scales;
  if (c.weights == WeightFormat::S8)
    scales = b.elementPtr(b.getI8Type(), b.buffer(1), b.idx(scalesOffset(c.k, c.n)));
  emitGemm(b, spec, tiles, a, right, biasRelu(b, spec.accType, m, n, scales), {m, n, k});
}

/// Runs the case, its work split in `parts` calls; the number of wrong
/// elements, or -1.
int64_t wrongElements(const Case &c, const IsaLevel &isa, std::string &error, int parts = 1, bool corrupt = false,
                      std::function<void(GemmTiles &)> tune = {}) {
  Problem p(c);
  mlir::MLIRContext context;
  mlir::Builder types(&context);
  GemmKernel shape = specOf(c, types);
  GemmTiles tiles = chooseGemmTiles(shape, isa);
  if (tune)
    tune(tiles);
  TestKernel kernel =
      makeKernel("gemm", isa, 4, c.dynamic ? 3 : 0, [&](CpuBuilder &b) { emitCase(b, p, specOf(c, b), tiles); });
  error = kernel.error;
  if (!kernel.fn)
    return -1;
  GemmKernel fixed = shape;
  fixed.m = c.m, fixed.n = c.n, fixed.k = c.k;
  auto up = [](int64_t x, int64_t y) { return (x + y - 1) / y; };
  int64_t work = c.dynamic ? c.batch * up(c.m, tiles.rowsPerBlock()) * up(c.n, tiles.columns())
                           : *gemmWorkItems(fixed, tiles).known();
  if (corrupt) // of s8 weights a scale, else a weight
    p.packed.mutableData()[(c.weights == WeightFormat::S8 ? scalesOffset(c.k, c.n) : 0) + 3] ^= std::byte(0x40);
  Tensor out(c.acc, {c.batch, c.m, c.n});
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.setDouble(i, -77);
  for (int part = 0; part < parts; ++part) {
    int64_t begin = work * part / parts, end = work * (part + 1) / parts;
    kernel({p.a, c.packedB ? p.packed : p.b, p.bias, out}, begin, end, gemmScratchBytes(shape, tiles), {c.m, c.n, c.k});
  }
  int64_t wrong = 0;
  for (int64_t z = 0, at = 0; z < c.batch; ++z)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j, ++at) {
        double want = p.want(z, i, j), got = out.asDouble(at);
        wrong += !(std::abs(got - want) <= 1e-5 * (16 + c.k + std::abs(want)));
      }
  return wrong;
}

class GemmLevels : public testing::TestWithParam<IsaLevel> {
public:
  /// The widest level has all cases.
  void check(const Case &c, int parts = 1, std::function<void(GemmTiles &)> tune = {}) {
    if (GetParam().name != runnableLevels().back().name && !others.takesNext())
      return;
    std::string error;
    EXPECT_EQ(wrongElements(c, GetParam(), error, parts, false, tune), 0)
        << c.batch << "x" << c.m << "x" << c.n << "x" << c.k << " " << dtypeName(c.a) << " packed " << c.packedB
        << " transA " << c.transA << " transB " << c.transB << " heavy " << c.heavy << " dynamic " << c.dynamic
        << " parts " << parts << " weights " << formatName(c.weights).str() << ": " << error;
  }

private:
  sampling::Sample others{3};
};
std::string levelName(const testing::TestParamInfo<IsaLevel> &info) {
  return info.param.name.substr(info.param.name.size() - 2);
}
INSTANTIATE_TEST_SUITE_P(Isa, GemmLevels, testing::ValuesIn(runnableLevels()), levelName);

TEST_P(GemmLevels, Shapes) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 10, 84},
                         {1, 1000, 37},
                         {2, 33, 5},
                         {4, 65, 64},
                         {5, 7, 1},
                         {13, 16, 9},
                         {14, 32, 8},
                         {29, 31, 3},
                         {37, 48, 66},
                         {64, 64, 64},
                         {127, 100, 59},
                         {3, 5, 0}})
    check({1, m, n, k}, 3);
}

TEST_P(GemmLevels, EmptyResult) {
  check({1, 0, 5, 3});
  check({1, 5, 0, 3});
  check({0, 5, 5, 3});
}

TEST_P(GemmLevels, SeveralPasses) {
  auto small = [](GemmTiles &t) { t.kBlock = 16, t.tilesPerBlock = 2; };
  for (bool heavy : {false, true})
    for (int64_t k : {15, 16, 17, 51, 64}) {
      Case c{2, 41, 75, k};
      c.heavy = heavy;
      check(c, 2, small);
    }
}

TEST_P(GemmLevels, HeavyEpilogue) {
  Case c{1, 23, 50, 12};
  c.heavy = true;
  check(c);
}

TEST_P(GemmLevels, BatchesAndTransposes) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (bool packedB : {false, true}) {
        Case c{3, 19, 39, 21};
        c.transA = transA, c.transB = transB, c.packedB = packedB, c.padding = 3;
        check(c, 2);
      }
}

TEST_P(GemmLevels, OneRowReadsWhatLies) {
  sampling::Sample most{5};
  for (auto [n, k] : {std::array<int64_t, 2>{1, 3},
                      {130, 0},
                      {131, 1},
                      {130, 7},
                      {777, 64},
                      {300, 67},
                      {257, 203},
                      {2500, 76},
                      {4099, 9}})
    for (DType type : {DType::F32, DType::F16, DType::F64, DType::I32})
      for (bool dynamic : {false, true}) {
        if (!most.takesNext())
          continue;
        Case c{2, 1, n, k, type, type, type == DType::F16 ? DType::F32 : type};
        c.packedB = false, c.readsB = true, c.dynamic = dynamic, c.heavy = n % 2 == 1;
        check(c, n > 1000 ? 1 : 5);
      }
}

TEST_P(GemmLevels, RunTimeRightOperandInPasses) {
  for (bool transB : {false, true}) {
    Case c{2, 18, 37, 45};
    c.packedB = false, c.transB = transB;
    check(c, 2, [](GemmTiles &t) { t.kBlock = 20; });
  }
}

TEST_P(GemmLevels, DynamicSizes) {
  for (int64_t m : {1, 2, 6, 14, 33})
    for (bool packedB : {true, false}) {
      Case c{2, m, 43, 29};
      c.dynamic = true, c.packedB = packedB;
      check(c, 2);
      c.heavy = true, c.transB = true, c.transA = true;
      check(c, 1, [](GemmTiles &t) { t.kBlock = 12, t.tilesPerBlock = 2; });
    }
}

TEST_P(GemmLevels, ElementTypes) {
  for (auto [a, b, acc] : {std::array<DType, 3>{DType::F64, DType::F64, DType::F64},
                           {DType::F16, DType::F16, DType::F32},
                           {DType::BF16, DType::BF16, DType::F32},
                           {DType::U8, DType::I8, DType::I32},
                           {DType::I8, DType::U8, DType::I32},
                           {DType::I32, DType::I32, DType::I32},
                           {DType::I64, DType::I64, DType::I64}})
    for (bool packedB : {true, false}) {
      Case c{1, 17, 35, 22, a, b, acc};
      c.packedB = packedB;
      check(c);
      c.transB = true;
      check(c);
    }
}

TEST_P(GemmLevels, RoundedWeights) {
  for (WeightFormat format : {WeightFormat::BF16, WeightFormat::S8}) {
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                           {1, 10, 84},
                           {1, 100, 700},
                           {2, 33, 5},
                           {4, 65, 64},
                           {5, 7, 1},
                           {9, 80, 257},
                           {16, 48, 66},
                           {37, 100, 59}}) {
      Case c{1, m, n, k};
      c.weights = format;
      check(c, 3);
      c.transB = c.heavy = true;
      check(c, 2, [](GemmTiles &t) { t.kBlock = 32, t.tilesPerBlock = 2; });
      c.dynamic = true;
      check(c, 2);
    }
  }
}

TEST_P(GemmLevels, RandomShapes) {
  std::mt19937 rng(11);
  for (int i = 0; i < 12; ++i) {
    auto upTo = [&](int n) { return static_cast<int64_t>(1 + rng() % n); };
    Case c{upTo(3), upTo(60), upTo(120), upTo(90)};
    c.packedB = rng() % 2, c.transA = rng() % 2, c.transB = rng() % 2, c.heavy = rng() % 2;
    c.dynamic = rng() % 3 == 0;
    check(c, upTo(4));
  }
}

TEST(Gemm, ReferenceNoticesAWrongElement) {
  std::string error;
  auto isa = runnableLevels().back();
  EXPECT_GT(wrongElements({1, 9, 20, 6}, isa, error, 1, /*corrupt=*/true), 0) << error;
}

TEST(Gemm, ReferenceNoticesAWrongRoundedWeight) {
  std::string error;
  for (WeightFormat format : {WeightFormat::BF16, WeightFormat::S8}) {
    Case c{1, 9, 20, 6};
    c.weights = format;
    EXPECT_GT(wrongElements(c, runnableLevels().back(), error, 1, /*corrupt=*/true), 0) << error;
  }
}

TEST(Gemm, PackPanel16) {
  std::vector<uint16_t> src(3 * 20), dst(panel16Bytes(3, 20, 2) / 2, 0xffff);
  for (size_t i = 0; i < src.size(); ++i)
    src[i] = i + 1;
  std::span<std::byte> to(reinterpret_cast<std::byte *>(dst.data()), dst.size() * 2);
  packPanel16(reinterpret_cast<const std::byte *>(src.data()), 3, 20, 20, 1, 2, to);
  EXPECT_EQ(dst.size(), 2u * 3 * 16);
  EXPECT_EQ(dst[16 + 5], 20 + 5 + 1);               // row 1, column 5
  EXPECT_EQ(dst[3 * 16 + 2 * 16 + 3], 40 + 19 + 1); // row 2, column 19
  EXPECT_EQ(dst[3 * 16 + 2 * 16 + 4], 0);           // padding
}

} // namespace
