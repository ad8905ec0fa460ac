//===- FoursTest.cpp - products of bytes against exact integer sums -------===//

#include "KernelHarness.h"
#include "TestTensors.h"
#include "targets/cpu/conv/Conv.h"
#include "tests/Sample.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using mlir::Value;

namespace {

constexpr int64_t kUntouched = -77;

/// The levels that this machine runs, and those with the dot products that the psABI levels lack.
std::vector<IsaLevel> fourLevels() {
  std::vector<IsaLevel> levels = runnableLevels();
  if (auto host = IsaLevel::byName("host"); host && host->hasVnni)
    levels.push_back(*host);
  IsaLevel narrow = *IsaLevel::byName("x86-64-v3");
  narrow.name = "avxvnni", narrow.features = "+avxvnni", narrow.hasVnni = true;
  narrow.required.push_back("avxvnni");
  if (narrow.runsHere())
    levels.push_back(narrow);
  return levels;
}

/// Random bytes of which every third has the greatest magnitude, so that saturating sums would be noticed.
Tensor randomBytes(DType type, Shape shape, uint64_t seed) {
  Tensor tensor = randomTensor(type, std::move(shape), seed);
  for (int64_t i = 0; i < tensor.numElements(); i += 3)
    tensor.setInt(i, isUnsignedInt(type) ? 255 : i % 2 ? 127 : -128);
  return tensor;
}

void storeVector(CpuBuilder &b, unsigned buffer, Value at, Value value, Value mask) {
  mask ? b.maskedStore(value, b.buffer(buffer), at, mask) : b.store(value, b.buffer(buffer), at);
}

struct Product {
  int64_t batch, m, n, k;
  bool transB = false, heavy = false, dynamicRows = false;
  int64_t padding = 0; ///< bytes between the rows of A
};

/// Sizes in channels; `out` is computed.
struct Window {
  int64_t n, ic, oc, groups;
  ConvKernel::Spatial in, kernel, stride{1, 1, 1}, dilation{1, 1, 1}, low{0, 0, 0}, high{0, 0, 0};
  bool heavy = false;
};

class Fours : public testing::TestWithParam<IsaLevel> {
public:
  void check(const Product &p, int parts = 1, std::function<void(GemmTiles &)> tune = {});
  void checkConv(const Window &w, int parts = 1, std::function<void(ConvTiles &)> tune = {});

private:
  /// The widest level has all cases.
  bool takesNext() { return GetParam().name == fourLevels().back().name || others.takesNext(); }

  sampling::Sample others{3};
};
std::string levelName(const testing::TestParamInfo<IsaLevel> &info) {
  return info.param.name.substr(info.param.name.size() - 2);
}
INSTANTIATE_TEST_SUITE_P(Isa, Fours, testing::ValuesIn(fourLevels()), levelName);

GemmKernel specOf(const Product &p, mlir::Builder &b) {
  GemmKernel spec;
  spec.batch = p.batch, spec.m = p.dynamicRows ? openSize() : Dim(p.m), spec.n = p.n, spec.k = foursOf(p.k);
  spec.aType = b.getI8Type();
  spec.bType = spec.accType = b.getI32Type();
  spec.fours = true;
  spec.lastFour = p.k - 4 * (foursOf(p.k) - 1);
  spec.heavyEpilogue = p.heavy;
  return spec;
}

void emitProduct(CpuBuilder &b, const Product &p, const GemmTiles &tiles) {
  Value m = p.dynamicRows ? b.dim(0) : b.idx(p.m), row = b.idx(p.k + p.padding);
  GemmMatrix a{b.buffer(0), row, b.idx(1), [&](Value z) { return b.mul(z, b.mul(m, row)); }};
  int64_t each = panel16Bytes(foursOf(p.k), p.n, 4) / 4;
  GemmMatrix right{b.buffer(1), {}, {}, [&](Value z) { return b.mulC(z, each); }};
  GemmCallbacks callbacks;
  callbacks.store = [&](Value batch, Value i, Value j, Value value, Value mask) {
    storeVector(b, 2, b.add(b.mulC(b.add(b.mul(batch, m), i), p.n), j), value, mask);
  };
  emitGemm(b, specOf(p, b), tiles, a, right, callbacks, {.m = m});
}

void Fours::check(const Product &p, int parts, std::function<void(GemmTiles &)> tune) {
  if (!takesNext())
    return;
  SCOPED_TRACE(std::to_string(p.batch) + "x" + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
               std::to_string(p.k));
  int64_t row = p.k + p.padding, strideK = p.transB ? 1 : p.n, strideN = p.transB ? p.k : 1;
  Tensor a = randomBytes(DType::U8, {p.batch * p.m * row - p.padding}, 1); // nothing behind the last row
  Tensor right = randomBytes(DType::I8, {p.batch, p.k, p.n}, 2);
  int64_t each = panel16Bytes(foursOf(p.k), p.n, 4);
  Tensor packed(DType::U8, {p.batch * each});
  for (int64_t z = 0; z < p.batch; ++z)
    packFours16(right.data() + z * p.k * p.n, p.k, p.n, strideK, strideN,
                {packed.mutableData() + z * each, static_cast<size_t>(each)});
  mlir::MLIRContext context;
  mlir::Builder types(&context);
  GemmKernel spec = specOf(p, types);
  GemmTiles tiles = chooseGemmTiles(spec, GetParam());
  if (tune)
    tune(tiles);
  TestKernel kernel =
      makeKernel("quads", GetParam(), 3, p.dynamicRows ? 1 : 0, [&](CpuBuilder &b) { emitProduct(b, p, tiles); });
  ASSERT_TRUE(kernel.fn) << kernel.error;
  Tensor out(DType::I32, {p.batch * p.m * p.n});
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.setInt(i, kUntouched);
  int64_t blocks = p.dynamicRows ? (p.m + tiles.rowsPerBlock() - 1) / tiles.rowsPerBlock() : 0;
  int64_t work = p.dynamicRows ? p.batch * blocks * ((p.n + tiles.columns() - 1) / tiles.columns())
                               : *gemmWorkItems(spec, tiles).known();
  for (int part = 0; part < parts; ++part)
    kernel({a, packed, out}, work * part / parts, work * (part + 1) / parts, gemmScratchBytes(spec, tiles), {p.m});
  int64_t wrong = 0, at = 0;
  for (int64_t z = 0; z < p.batch; ++z)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j, ++at) {
        int64_t want = 0;
        for (int64_t kk = 0; kk < p.k; ++kk)
          want += a.asInt((z * p.m + i) * row + kk) * right.asInt(z * p.k * p.n + kk * strideK + j * strideN);
        wrong += out.asInt(at) != want;
      }
  EXPECT_EQ(wrong, 0);
}

TEST_P(Fours, Shapes) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 10, 84},
                         {1, 1000, 37},
                         {2, 33, 5},
                         {4, 65, 64},
                         {5, 7, 2},
                         {13, 16, 9},
                         {14, 32, 8},
                         {29, 31, 3},
                         {37, 48, 66},
                         {64, 64, 64},
                         {127, 300, 259},
                         {128, 256, 256}})
    check({1, m, n, k}, 3);
}

TEST_P(Fours, RowsApartAndBatches) {
  for (int64_t k : {4, 21, 32, 67})
    for (int64_t padding : {0, 3}) {
      check({3, 19, 39, k, true, false, false, padding}, 2);
      check({2, 19, 150, k, false, true, false, padding}, 2);
    }
}

TEST_P(Fours, SeveralPasses) {
  for (bool heavy : {false, true})
    for (int64_t k : {60, 64, 66, 203})
      check({2, 41, 75, k, false, heavy}, 2, [](GemmTiles &t) { t.kBlock = 8, t.tilesPerBlock = 2; });
}

TEST_P(Fours, RowsAtRunTime) {
  for (int64_t m : {1, 2, 6, 14, 33})
    for (int64_t k : {28, 29})
      check({2, m, 43, k, false, false, true}, 2);
}

TEST_P(Fours, RandomShapes) {
  std::mt19937 rng(17);
  for (int i = 0; i < 16; ++i) {
    auto upTo = [&](int n) { return static_cast<int64_t>(1 + rng() % n); };
    Product p{upTo(3), upTo(60), upTo(160), upTo(130)};
    p.transB = rng() % 2, p.heavy = rng() % 2, p.dynamicRows = rng() % 3 == 0, p.padding = upTo(3) - 1;
    check(p, upTo(4));
  }
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

ConvKernel specOf(const Window &w, mlir::Builder &b) {
  ConvKernel s;
  s.n = w.n, s.oc = w.oc, s.groups = w.groups, s.ic = foursOf(w.ic / w.groups) * w.groups;
  s.in = w.in, s.kernel = w.kernel, s.stride = w.stride, s.dilation = w.dilation, s.pad = w.low;
  for (int i = 0; i < 3; ++i)
    s.out[i] = (w.in[i] + w.low[i] + w.high[i] - w.dilation[i] * (w.kernel[i] - 1) - 1) / w.stride[i] + 1;
  s.aType = s.bType = s.accType = b.getI32Type();
  s.input = ConvLayout::Blocked16;
  s.fours = true, s.heavyEpilogue = w.heavy;
  return s;
}

/// The input as [N][C/16][positions][16], lanes beyond C not zero.
Tensor blocked(const Tensor &input, const Window &w, int64_t positions) {
  int64_t blocks = (w.ic + 15) / 16;
  Tensor memory = randomBytes(DType::U8, {w.n, blocks, positions, 16}, 9);
  for (int64_t n = 0, at = 0; n < w.n; ++n)
    for (int64_t c = 0; c < w.ic; ++c)
      for (int64_t p = 0; p < positions; ++p, ++at)
        memory.setInt(((n * blocks + c / 16) * positions + p) * 16 + c % 16, input.asInt(at));
  return memory;
}

int64_t expected(const Window &w, const ConvKernel &s, const Tensor &input, const Tensor &weights, int64_t n,
                 int64_t oc, ConvKernel::Spatial out) {
  int64_t channels = w.ic / w.groups, first = oc / (w.oc / w.groups) * channels, sum = 0;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      ConvKernel::Spatial k{tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
      int64_t at = n * w.ic + first + c;
      bool inside = true;
      for (int i = 0; i < 3; ++i) {
        int64_t x = out[i] * s.stride[i] - s.pad[i] + k[i] * s.dilation[i];
        inside &= x >= 0 && x < s.in[i];
        at = at * s.in[i] + x;
      }
      if (inside)
        sum += input.asInt(at) * weights.asInt((oc * channels + c) * s.taps() + tap);
    }
  return sum;
}

void Fours::checkConv(const Window &w, int parts, std::function<void(ConvTiles &)> tune) {
  if (!takesNext())
    return;
  const IsaLevel &isa = GetParam();
  SCOPED_TRACE("ic" + std::to_string(w.ic) + " oc" + std::to_string(w.oc) + " g" + std::to_string(w.groups) +
               " width " + std::to_string(w.in[2]) + " taps " + std::to_string(w.kernel[2]));
  mlir::MLIRContext context;
  mlir::Builder types(&context);
  ConvKernel spec = specOf(w, types);
  int64_t positions = w.in[0] * w.in[1] * w.in[2], channels = w.ic / w.groups, outs = spec.outPositions();
  Tensor input = randomBytes(DType::U8, {w.n, w.ic, positions}, 1);
  Tensor weights = randomBytes(DType::I8, {w.oc, channels, spec.taps()}, 2), memory = blocked(input, w, positions);
  Tensor packed(DType::U8, {packedConvWeightBytes(spec)});
  int64_t plane = w.kernel[1] * w.kernel[2];
  packConvGroups(spec, channels, weights.data(), {channels * spec.taps(), spec.taps(), plane, w.kernel[2], 1},
                 {packed.mutableData(), static_cast<size_t>(packed.byteSize())});
  ConvTiles tiles = chooseConvTiles(spec, isa);
  if (tune)
    tune(tiles);
  TestKernel kernel = makeKernel("quads", isa, 3, 0, [&](CpuBuilder &b) {
    ConvCallbacks callbacks;
    callbacks.store = [&](Value n, Value oc, Value position, Value value, Value mask) {
      storeVector(b, 2, b.add(b.mulC(b.add(b.mulC(n, outs), position), w.oc), oc), value, mask);
    };
    emitConv(b, specOf(w, b), tiles, b.buffer(0), b.buffer(1), callbacks);
  });
  ASSERT_TRUE(kernel.fn) << kernel.error;
  Tensor out(DType::I32, {w.n * outs * w.oc});
  for (int64_t i = 0; i < out.numElements(); ++i)
    out.setInt(i, kUntouched);
  int64_t work = convWorkItems(spec, tiles), wrong = 0, at = 0;
  for (int part = 0; part < parts; ++part)
    kernel({memory, packed, out}, work * part / parts, work * (part + 1) / parts, convScratchBytes(spec, tiles));
  for (int64_t n = 0; n < w.n; ++n)
    for (int64_t p = 0; p < outs; ++p)
      for (int64_t oc = 0; oc < w.oc; ++oc, ++at) {
        int64_t hw = spec.out[1] * spec.out[2];
        ConvKernel::Spatial place{p / hw, p / spec.out[2] % spec.out[1], p % spec.out[2]};
        wrong += out.asInt(at) != expected(w, spec, input, weights, n, oc, place);
      }
  EXPECT_EQ(wrong, 0);
}

TEST_P(Fours, PointwiseConvolutions) {
  checkConv({2, 33, 70, 1, {1, 5, 9}, {1, 1, 1}}, 3);
  checkConv({1, 64, 64, 1, {1, 9, 15}, {1, 1, 1}, {1, 2, 2}});
  checkConv({1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}});
  checkConv({2, 600, 40, 1, {1, 3, 9}, {1, 1, 1}}, 2); // more blocks of channels than are widened together
}

TEST_P(Fours, TilesThatReadMoreThanIsWidened) {
  checkConv({1, 5, 20, 1, {1, 1, 170}, {1, 1, 20}, {1, 1, 1}, {1, 1, 8}});
  checkConv({1, 2048, 16, 1, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}});
}

TEST_P(Fours, PaddedConvolutions) {
  for (int64_t width : {1, 2, 7, 14, 30})
    for (int64_t ic : {3, 18, 32})
      checkConv({1, ic, 40, 1, {1, 6, width}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}}, 2);
  checkConv({2, 3, 64, 1, {1, 15, 41}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}, {0, 2, 3}, true});
  checkConv({1, 20, 17, 1, {1, 13, 19}, {1, 2, 5}, {1, 3, 2}, {1, 2, 3}, {0, 0, 4}, {0, 3, 1}});
}

TEST_P(Fours, GroupsAndDimensions) {
  checkConv({1, 32, 64, 2, {1, 5, 11}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}});
  checkConv({2, 5, 20, 1, {1, 1, 50}, {1, 1, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {0, 0, 1}}, 3);
  checkConv({1, 17, 18, 1, {4, 5, 6}, {3, 2, 3}, {2, 1, 1}, {1, 1, 1}, {1, 0, 1}, {1, 1, 1}}, 2);
}

TEST_P(Fours, ConvolutionsInPasses) {
  Window w{2, 256, 72, 1, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  checkConv(w, 3, [](ConvTiles &t) { EXPECT_TRUE(t.passes); });
  w.heavy = true;
  checkConv(w, 1);
}

TEST(FourForms, LastFoursAreFilledWithZeros) {
  std::vector<int8_t> src(5 * 2), dst(panel16Bytes(2, 2, 4), 1);
  for (size_t i = 0; i < src.size(); ++i)
    src[i] = 10 + i;
  packFours16(reinterpret_cast<const std::byte *>(src.data()), 5, 2, 2, 1,
              {reinterpret_cast<std::byte *>(dst.data()), dst.size()});
  EXPECT_EQ(dst[4 + 2], 10 + 2 * 2 + 1); // row 2, column 1
  EXPECT_EQ(dst[16 * 4], 10 + 4 * 2);    // row 4, column 0
  EXPECT_EQ(dst[16 * 4 + 1], 0);         // beyond k
  EXPECT_EQ(dst[2 * 4], 0);              // beyond n
}

} // namespace
