//===- ConvTest.cpp - convolution against a naive reference --------------===//

#include "targets/cpu/conv/Conv.h"
#include "KernelHarness.h"
#include "TestTensors.h"
#include "dmxc/Target/DecisionsMade.h"
#include "targets/cpu/conv/Winograd.h"
#include "targets/cpu/product/GemmTile.h"
#include "tests/Sample.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using mlir::Value;
namespace arith = mlir::arith;

namespace {

/// One convolution to test; `spec.out` is computed from `padEnd`.
struct Case {
  ConvKernel spec;
  ConvKernel::Spatial padEnd{0, 0, 0};
  DType a = DType::F32, b = DType::F32, acc = DType::F32;
  bool dynamicBatch = false;
  int zeroPoint = 0; ///< subtracted from the input
  bool winograd = false;
};

Case makeCase(int64_t n, int64_t ic, int64_t oc, ConvKernel::Spatial in, ConvKernel::Spatial kernel) {
  Case c;
  c.spec.n = n, c.spec.ic = ic, c.spec.oc = oc;
  c.spec.in = in, c.spec.kernel = kernel;
  return c;
}

std::string describe(const Case &c) {
  auto text = [](const ConvKernel::Spatial &s) {
    return std::to_string(s[0]) + "," + std::to_string(s[1]) + "," + std::to_string(s[2]);
  };
  return "n" + std::to_string(c.spec.n) + " ic" + std::to_string(c.spec.ic) + " oc" + std::to_string(c.spec.oc) + " g" +
         std::to_string(c.spec.groups) + " in " + text(c.spec.in) + " k " + text(c.spec.kernel) + " s " +
         text(c.spec.stride) + " d " + text(c.spec.dilation) + " p " + text(c.spec.pad) + "/" + text(c.padEnd) + " " +
         std::string(dtypeName(c.a)) + (c.spec.input == ConvLayout::Plain ? " plain" : " blocked") +
         (c.spec.heavyEpilogue ? " heavy" : "") + (c.winograd ? " winograd" : "");
}

class Problem {
public:
  explicit Problem(Case given) : c(std::move(given)) {
    ConvKernel &s = c.spec;
    for (int i = 0; i < 3; ++i)
      s.out[i] = (s.in[i] + s.pad[i] + c.padEnd[i] - s.dilation[i] * (s.kernel[i] - 1) - 1) / s.stride[i] + 1;
    input = randomTensor(c.a, {s.n, s.ic, positions()}, 1);
    weights = randomTensor(c.b, {s.oc, s.groupIc(), s.taps()}, 2);
    bias = randomTensor(c.acc, {(s.oc + 15) / 16 * 16}, 3);
    fillMemory();
  }

  /// Sets the types, which live in a context.
  ConvKernel specIn(mlir::Builder &b) const {
    ConvKernel s = c.spec;
    s.aType = mlirType(b, c.a), s.bType = mlirType(b, c.b), s.accType = mlirType(b, c.acc);
    s.aUnsigned = isUnsignedInt(c.a), s.bUnsigned = isUnsignedInt(c.b);
    return s;
  }

  double want(int64_t n, int64_t oc, int64_t d, int64_t h, int64_t w) const {
    const ConvKernel &s = c.spec;
    double sum = 0;
    ConvKernel::Spatial out{d, h, w};
    for (int64_t ic = 0; ic < s.groupIc(); ++ic)
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        ConvKernel::Spatial k{tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
        int64_t at = 0;
        bool inside = true;
        for (int i = 0; i < 3; ++i) {
          int64_t x = out[i] * s.stride[i] - s.pad[i] + k[i] * s.dilation[i];
          inside &= x >= 0 && x < s.in[i];
          at = at * s.in[i] + x;
        }
        if (!inside)
          continue;
        int64_t channel = oc / s.groupOc() * s.groupIc() + ic;
        sum += (input.asDouble((n * s.ic + channel) * positions() + at) - c.zeroPoint) *
               weights.asDouble((oc * s.groupIc() + ic) * s.taps() + tap);
      }
    return sum + bias.asDouble(oc);
  }

  /// Of outputs as blocks of 16 channels, whose padding is -77.
  int64_t wrongIn(const Tensor &out) const {
    const ConvKernel &s = c.spec;
    int64_t blocks = (s.oc + 15) / 16, positions = s.outPositions(), wrong = 0;
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t oc = 0; oc < blocks * 16; ++oc)
        for (int64_t pos = 0; pos < positions; ++pos) {
          double got = out.asDouble(((n * blocks + oc / 16) * positions + pos) * 16 + oc % 16);
          if (oc >= s.oc) {
            wrong += got != -77;
            continue;
          }
          int64_t hw = s.out[1] * s.out[2];
          double expected = want(n, oc, pos / hw, pos / s.out[2] % s.out[1], pos % s.out[2]);
          wrong += !(std::abs(got - expected) <= 1e-5 * (16 + s.groupIc() * s.taps() + std::abs(expected)));
        }
    return wrong;
  }

  int64_t positions() const { return c.spec.in[0] * c.spec.in[1] * c.spec.in[2]; }

  Case c;
  Tensor input, weights, bias, memory, packed;

private:
  /// The input in its layout (padding lanes are NaN), and the packed weights.
  void fillMemory() {
    const ConvKernel &s = c.spec;
    memory = input;
    if (s.input == ConvLayout::Blocked16) {
      int64_t blocks = (s.ic + 15) / 16;
      memory = Tensor(c.a, {s.n, blocks, positions(), 16});
      for (int64_t i = 0; i < memory.numElements(); ++i)
        isFloat(c.a) ? memory.setDouble(i, NAN) : memory.setInt(i, 99);
      for (int64_t n = 0, at = 0; n < s.n; ++n)
        for (int64_t ch = 0; ch < s.ic; ++ch)
          for (int64_t p = 0; p < positions(); ++p, ++at)
            memory.setDouble(((n * blocks + ch / 16) * positions() + p) * 16 + ch % 16, input.asDouble(at));
    }
    mlir::MLIRContext context;
    mlir::Builder types(&context);
    ConvKernel typed = specIn(types);
    if (c.winograd) {
      packed = Tensor(DType::U8, {winogradWeightBytes(s.oc, s.ic)});
      return packWinogradWeights(s.oc, s.ic, s.stride[2], weights.data(),
                                 {packed.mutableData(), static_cast<size_t>(packed.byteSize())});
    }
    packed = Tensor(DType::U8, {packedConvWeightBytes(typed)});
    int64_t k2 = s.kernel[2], k1 = s.kernel[1];
    packConvWeights(typed, weights.data(), {s.groupIc() * s.taps(), s.taps(), k1 * k2, k2, 1},
                    {packed.mutableData(), static_cast<size_t>(packed.byteSize())});
  }
};

/// Adds the bias; writes blocked16.
ConvCallbacks addBias(CpuBuilder &b, const ConvKernel &spec, int zeroPoint) {
  ConvCallbacks callbacks;
  int64_t blocks = (spec.oc + 15) / 16, positions = spec.outPositions();
  mlir::Type acc = spec.accType;
  callbacks.store = [=, &b](Value n, Value oc, Value position, Value value, Value mask) {
    int64_t lanes = mlir::cast<mlir::VectorType>(value.getType()).getNumElements();
    Value bias = b.load(acc, b.buffer(2), oc, lanes);
    Value sum = mlir::isa<mlir::FloatType>(acc) ? Value(arith::AddFOp::create(b, value, bias))
                                                : Value(arith::AddIOp::create(b, value, bias));
    Value block = b.add(b.mulC(n, blocks), b.floorDiv(oc, b.idx(16)));
    Value at = b.add(b.mulC(b.add(b.mulC(block, positions), position), 16), b.rem(oc, b.idx(16)));
    mask ? b.maskedStore(sum, b.buffer(3), at, mask) : b.store(sum, b.buffer(3), at);
  };
  if (zeroPoint)
    callbacks.mapA = [=, &b](Value x) -> Value {
      return arith::SubIOp::create(b, x, b.constantInt(x.getType(), zeroPoint));
    };
  return callbacks;
}

/// The same convolution for minimal filtering; sizes of images are dims where the batch is.
WinogradSpec winogradSpec(const Case &c, const ConvKernel &s) {
  auto size = [&](const char *name, int64_t known) { return c.dynamicBatch ? Dim::symbol(name) : Dim(known); };
  return {s.accType,
          s.ic,
          s.oc,
          size("n", s.n),
          size("h", s.in[1]),
          size("w", s.in[2]),
          size("p", s.out[1]),
          size("q", s.out[2]),
          s.pad[1],
          s.pad[2],
          s.heavyEpilogue,
          s.stride[2]};
}

/// How a case is computed on a level.
struct Plan {
  Plan(const Case &given, const ConvKernel &spec, const IsaLevel &isa, const std::function<void(ConvTiles &)> &tune)
      : given(given), isa(isa) {
    if (given.winograd) {
      WinogradSpec filtering = winogradSpec(given, spec);
      winograd = chooseWinogradTiles(filtering, isa);
      scratch = winogradScratchBytes(filtering, winograd);
      return;
    }
    direct = chooseConvTiles(spec, isa);
    if (tune)
      tune(direct);
    scratch = convScratchBytes(spec, direct);
  }

  int64_t items(const ConvKernel &spec) const {
    if (!given.winograd)
      return convWorkItems(spec, direct) * (given.dynamicBatch ? given.spec.n : 1);
    Case known = given;
    known.dynamicBatch = false;
    WinogradTiles tiles = winograd;
    tiles.blocks =
        *Dim::ceilDiv(ceilDivInt(given.spec.out[1], 2) * ceilDivInt(given.spec.out[2], 2), tiles.blockTiles).known();
    return *winogradWorkItems(winogradSpec(known, given.spec), tiles).known();
  }

  void emit(CpuBuilder &b, const ConvKernel &spec, const ConvCallbacks &callbacks) const {
    if (given.winograd) {
      WinogradSpec inside = winogradSpec(given, spec);
      return emitWinograd(b, inside, winograd, b.buffer(0), b.buffer(1), callbacks);
    }
    emitConv(b, spec, direct, b.buffer(0), b.buffer(1), callbacks, given.dynamicBatch ? b.dim(0) : Value());
  }

  const Case &given;
  const IsaLevel &isa;
  ConvTiles direct;
  WinogradTiles winograd{};
  int64_t scratch;
};

/// The number of wrong outputs (also those written that should not be), or -1. The kernel computes all of them once for
/// each number of `cuts`, in as many parts.
int64_t wrongElements(const Case &given, const IsaLevel &isa, std::string &error, std::vector<int> cuts = {1},
                      bool corrupt = false, std::function<void(ConvTiles &)> tune = {}) {
  Problem p(given);
  mlir::MLIRContext context;
  mlir::Builder types(&context);
  ConvKernel spec = p.specIn(types);
  if (given.dynamicBatch)
    spec.n = kDynamic;
  Plan plan(p.c, spec, isa, tune);
  bool open = given.winograd && given.dynamicBatch;
  TestKernel kernel = makeKernel("conv", isa, 4, open ? 5 : given.dynamicBatch, [&](CpuBuilder &b) {
    dmir::SymbolSet symbols;
    for (const char *name : {"n", "h", "w", "p", "q"})
      symbols.insert(b.getStringAttr(name));
    b.setSymbols(symbols);
    ConvKernel inside = p.specIn(b);
    if (given.dynamicBatch)
      inside.n = kDynamic;
    plan.emit(b, inside, addBias(b, inside, given.zeroPoint));
  });
  error = kernel.error;
  if (!kernel.fn)
    return -1;
  if (corrupt)
    p.packed.mutableData()[3] ^= std::byte(0x40);
  const ConvKernel &s = p.c.spec;
  int64_t blocks = (s.oc + 15) / 16, positions = s.outPositions();
  Tensor out(p.c.acc, {s.n, blocks, positions, 16});
  int64_t work = plan.items(spec), wrong = 0;
  for (int parts : cuts) {
    for (int64_t i = 0; i < out.numElements(); ++i)
      out.setDouble(i, -77);
    for (int part = 0; part < parts; ++part)
      kernel({p.memory, p.packed, p.bias, out}, work * part / parts, work * (part + 1) / parts, plan.scratch,
             {s.n, s.in[1], s.in[2], s.out[1], s.out[2]});
    wrong += p.wrongIn(out);
  }
  return wrong;
}

class ConvLevels : public testing::TestWithParam<IsaLevel> {
public:
  /// The widest level has all cases.
  bool takesNext() { return GetParam().name == runnableLevels().back().name || others.takesNext(); }

  void check(const Case &c, int parts = 1, std::function<void(ConvTiles &)> tune = {}) {
    if (!takesNext())
      return;
    for (ConvLayout layout : {ConvLayout::Blocked16, ConvLayout::Plain}) {
      Case laid = c;
      laid.spec.input = layout;
      std::string error;
      EXPECT_EQ(wrongElements(laid, GetParam(), error, {parts}, false, tune), 0) << describe(laid) << ": " << error;
    }
  }

private:
  sampling::Sample others{3};
};
std::string levelName(const testing::TestParamInfo<IsaLevel> &info) {
  return info.param.name.substr(info.param.name.size() - 2);
}
INSTANTIATE_TEST_SUITE_P(Isa, ConvLevels, testing::ValuesIn(runnableLevels()), levelName);

TEST_P(ConvLevels, Pointwise) {
  check(makeCase(2, 33, 70, {1, 5, 9}, {1, 1, 1}), 3);
  Case strided = makeCase(1, 16, 32, {1, 9, 15}, {1, 1, 1});
  strided.spec.stride = {1, 2, 2};
  check(strided);
  check(makeCase(1, 1, 1, {1, 1, 1}, {1, 1, 1}));
}

TEST_P(ConvLevels, Padded3x3) {
  for (int64_t width : {1, 2, 7, 14, 30}) {
    Case c = makeCase(1, 18, 40, {1, 6, width}, {1, 3, 3});
    c.spec.pad = {0, 1, 1}, c.padEnd = {0, 1, 1};
    check(c, 2);
  }
}

TEST_P(ConvLevels, StemLike) {
  Case c = makeCase(2, 3, 64, {1, 15, 41}, {1, 7, 7});
  c.spec.pad = {0, 3, 3}, c.padEnd = {0, 2, 3}, c.spec.stride = {1, 2, 2};
  check(c);
}

TEST_P(ConvLevels, AsymmetricStridedDilated) {
  Case c = makeCase(1, 20, 17, {1, 13, 19}, {1, 2, 5});
  c.spec.pad = {0, 0, 4}, c.padEnd = {0, 3, 1};
  c.spec.stride = {1, 3, 2}, c.spec.dilation = {1, 2, 3};
  check(c);
}

TEST_P(ConvLevels, OneAndThreeDimensions) {
  Case one = makeCase(2, 5, 20, {1, 1, 50}, {1, 1, 4});
  one.spec.pad = {0, 0, 2}, one.padEnd = {0, 0, 1};
  check(one, 3);
  Case three = makeCase(1, 17, 18, {4, 5, 6}, {3, 2, 3});
  three.spec.pad = {1, 0, 1}, three.padEnd = {1, 1, 1}, three.spec.stride = {2, 1, 1};
  check(three, 2);
}

TEST_P(ConvLevels, Groups) {
  for (auto [ic, oc, groups] : {std::array<int64_t, 3>{32, 64, 2},
                                {48, 48, 3},
                                {40, 40, 40},
                                {16, 16, 16},
                                {16, 16, 4},
                                {24, 48, 24},
                                {32, 32, 4},
                                {8, 24, 4},
                                {64, 32, 32},
                                {20, 20, 2},
                                {34, 32, 2}}) {
    Case c = makeCase(1, ic, oc, {1, 5, 11}, {1, 3, 3});
    c.spec.groups = groups;
    c.spec.pad = {0, 1, 1}, c.padEnd = {0, 1, 1};
    check(c);
  }
}

TEST_P(ConvLevels, PaddingLargerThanInput) {
  Case c = makeCase(1, 16, 16, {1, 2, 3}, {1, 3, 3});
  c.spec.pad = {0, 4, 5}, c.padEnd = {0, 4, 5};
  check(c);
}

TEST_P(ConvLevels, SmallImagesInPasses) {
  Case c = makeCase(2, 64, 72, {1, 7, 7}, {1, 3, 3});
  c.spec.pad = {0, 1, 1}, c.padEnd = {0, 1, 1};
  check(c, 3);
  auto passes = [](ConvTiles &t) { EXPECT_TRUE(t.passes); };
  std::string error;
  EXPECT_EQ(wrongElements(c, GetParam(), error, {1}, false, passes), 0) << error;
  c.spec.groups = 2, c.spec.oc = 64, c.spec.ic = 128, c.spec.heavyEpilogue = true;
  check(c);
}

TEST_P(ConvLevels, TilesDoneInParts) {
  // 5 pixels times 4 vectors do not fit in 7 sums: one vector at a time.
  Case c = makeCase(1, 20, 60, {1, 3, 5}, {1, 3, 3});
  c.spec.pad = {0, 1, 1}, c.padEnd = {0, 1, 1};
  check(c, 1, [](ConvTiles &t) { t.vectors = 4, t.sums = 7, t.rows = 5; });
  check(c, 1, [](ConvTiles &t) { t.vectors = 4, t.rows = 2; });
}

TEST_P(ConvLevels, TailsOfHalfAVector) {
  // Alone, and after a whole vector; sums of one run and of several, whose totals are in registers or in memory.
  for (auto [oc, ic, heavy] : {std::array<int64_t, 3>{5, 20, 1}, {24, 144, 0}, {24, 144, 1}, {25, 144, 0}, {40, 40, 1}})
    for (int64_t factor : {1, 2}) {
      Case c = makeCase(1, ic, oc, {1, 1, 28}, {1, 1, 1});
      c.spec.heavyEpilogue = heavy;
      check(c, 2, [&](ConvTiles &t) { t.rows *= factor; });
    }
}

TEST_P(ConvLevels, HeavyEpilogueAndDynamicBatch) {
  Case c = makeCase(3, 16, 40, {1, 4, 13}, {1, 3, 3});
  c.spec.pad = {0, 1, 1}, c.padEnd = {0, 1, 1};
  c.spec.heavyEpilogue = true, c.dynamicBatch = true;
  check(c, 2);
}

TEST_P(ConvLevels, ElementTypes) {
  for (auto [a, b, acc] : {std::array<DType, 3>{DType::F64, DType::F64, DType::F64},
                           {DType::F16, DType::F16, DType::F32},
                           {DType::BF16, DType::BF16, DType::F32},
                           {DType::U8, DType::I8, DType::I32},
                           {DType::I8, DType::U8, DType::I32}})
    for (int64_t groups : {1, 20}) {
      Case c = makeCase(1, 20, 40, {1, 4, 9}, {1, 3, 2});
      c.a = a, c.b = b, c.acc = acc, c.spec.groups = groups;
      c.spec.pad = {0, 1, 1};
      c.zeroPoint = isInt(a) ? 3 : 0;
      check(c);
    }
}

TEST_P(ConvLevels, RandomSpecs) {
  std::mt19937 rng(5);
  for (int i = 0; i < 12; ++i) {
    auto upTo = [&](int n) { return static_cast<int64_t>(1 + rng() % n); };
    Case c = makeCase(upTo(2), upTo(40), upTo(70), {upTo(2), upTo(9), upTo(33)}, {1, upTo(3), upTo(4)});
    for (int d = 0; d < 3; ++d) {
      c.spec.stride[d] = upTo(2), c.spec.dilation[d] = upTo(2);
      int64_t need = c.spec.dilation[d] * (c.spec.kernel[d] - 1);
      c.spec.pad[d] = upTo(3) - 1;
      c.padEnd[d] = std::max<int64_t>(upTo(3) - 1, need - c.spec.in[d] - c.spec.pad[d] + 1);
    }
    check(c, upTo(3));
  }
}

TEST_P(ConvLevels, Winograd) {
  sampling::Sample ways(4); // of each shape one
  for (auto [n, ic, oc, height, width, pad, padEnd, stride] :
       {std::array<int64_t, 8>{1, 32, 64, 14, 14, 1, 1, 1},
        {2, 48, 40, 9, 13, 1, 1, 1},  // odd sizes, a tail of channels
        {1, 32, 96, 30, 31, 1, 0, 1}, // several blocks, the last one short
        {1, 64, 33, 8, 6, 0, 0, 1},
        {2, 32, 32, 5, 5, 2, 2, 1},
        {1, 96, 16, 1, 2, 1, 1, 1},
        {1, 32, 40, 1, 5, 1, 1, 1},
        {1, 160, 32, 7, 7, 1, 1, 1}, // one block whose last tiles overhang
        {1, 32, 48, 9, 8, 1, 1, 1},
        {1, 32, 48, 8, 11, 1, 1, 1},
        {1, 32, 64, 28, 28, 1, 1, 2},
        {2, 48, 40, 19, 25, 1, 0, 2},
        {1, 32, 33, 61, 60, 0, 1, 2},
        {2, 48, 40, 13, 17, 1, 1, 2},
        {1, 32, 48, 14, 17, 1, 1, 2},
        {1, 32, 48, 17, 14, 1, 0, 2},
        {2, 16, 32, 2, 3, 1, 1, 2}}) {
    Case c = makeCase(n, ic, oc, {1, height, width}, {1, 3, 3});
    c.spec.pad = {0, pad, pad}, c.padEnd = {0, padEnd, padEnd}, c.spec.stride = {1, stride, stride};
    c.winograd = true;
    if (!takesNext())
      continue;
    for (bool heavy : {false, true})
      for (bool open : {false, true}) {
        if (!ways.takesNext())
          continue;
        c.spec.heavyEpilogue = heavy, c.dynamicBatch = open;
        std::string error;
        EXPECT_EQ(wrongElements(c, GetParam(), error, {1, 3}), 0) << describe(c) << " open " << open << ": " << error;
      }
  }
}

TEST(Conv, WinogradOnlyWhereItPays) {
  WinogradSpec spec{{}, 64, 64, 1, 14, 14, 14, 14, 1, 1};
  EXPECT_TRUE(winogradPays(spec));
  spec.outHeight = 7, spec.outWidth = Dim::symbol("w");
  EXPECT_TRUE(winogradPays(spec));
  spec.outHeight = 1; // half of each tile is not there
  EXPECT_FALSE(winogradPays(spec));
  spec.outHeight = 0;
  EXPECT_FALSE(winogradPays(spec));
  EXPECT_FALSE(winogradPays({{}, 16, 64, 1, 14, 14, 14, 14, 1, 1}));
  EXPECT_FALSE(winogradPays({{}, 64, 16, 1, 14, 14, 14, 14, 1, 1}));
  spec.outHeight = 14, spec.stride = 2;
  EXPECT_TRUE(winogradPays(spec));
  spec.outHeight = spec.outWidth = 7; // transforms cost more than the few products saved
  EXPECT_FALSE(winogradPays(spec));
  spec.ic = spec.oc = 512;
  EXPECT_TRUE(winogradPays(spec));
  spec.outHeight = spec.outWidth = 3; // waits for weights
  EXPECT_FALSE(winogradPays(spec));
}

TEST(Conv, ReferenceNoticesAWrongElement) {
  std::string error;
  Case c = makeCase(1, 16, 16, {1, 4, 4}, {1, 3, 3});
  EXPECT_GT(wrongElements(c, runnableLevels().back(), error, {1}, /*corrupt=*/true), 0) << error;
  c.winograd = true;
  EXPECT_GT(wrongElements(c, runnableLevels().back(), error, {1}, /*corrupt=*/true), 0) << error;
}

} // namespace

/// What emitters would call to choose ends the program while kernels are emitted.
TEST(Choosing, EndsWithThePhasePartition) {
  mlir::MLIRContext context;
  mlir::Type f32 = mlir::Float32Type::get(&context);
  const IsaLevel &isa = IsaLevel::nominal();
  GemmKernel product;
  product.m = product.n = product.k = 64;
  product.aType = product.bType = product.accType = f32;
  ConvKernel direct;
  direct.ic = direct.oc = 32;
  direct.in = direct.out = {1, 14, 14};
  direct.aType = direct.bType = direct.accType = f32;
  WinogradSpec filtering{f32, 64, 64, 1, 14, 14, 14, 14, 1, 1};
  EXPECT_GT(chooseGemmTiles(product, isa).rows, 0);
  auto late = [](auto choose) {
    DecisionsMade made;
    choose();
  };
  EXPECT_DEATH(late([&] { chooseGemmTiles(product, isa); }), "a blocking is decided after the phase partition");
  EXPECT_DEATH(late([&] { chooseConvTiles(direct, isa); }), "blocking is decided after the phase partition");
  EXPECT_DEATH(late([&] { chooseWinogradTiles(filtering, isa); }), "a block of tiles is decided after");
  EXPECT_DEATH(late([&] { winogradPays(filtering); }), "minimal filtering is decided after");
}
