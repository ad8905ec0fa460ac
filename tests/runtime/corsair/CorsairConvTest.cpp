//===- CorsairConvTest.cpp - CONV against im2col and the numerics ---------===//

#include "CorsairHarness.h"

#include "schemas/blockfp/DotProduct.h"

#include <chrono>
#include <cstdio>

using namespace dmxtest;

namespace {

struct Conv {
  int64_t h, w, c, n, kh, kw, sh, sw, ph, pw, dh, dw; // c: channels of the group; n: output channels
  int64_t bottom, right;                              // padding on the other sides
  int64_t imc, groups = 1;
  int64_t channels = 0, firstBlock = 0; // of the image, when it has more than the group's

  int64_t oh() const { return (h + ph + bottom - dh * (kh - 1) - 1) / sh + 1; }
  int64_t ow() const { return (w + pw + right - dw * (kw - 1) - 1) / sw + 1; }
  int64_t blocks() const { return (c + 63) / 64; }
  int64_t imageChannels() const { return channels ? channels : c; }
  int64_t chunks() const { return kh * kw * blocks(); }
};

constexpr const char *kConv = R"(
.stream load
  CONFIG_GM slot=0 kind=bfp16r unit=${imagebytes}
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0
  CONFIG_ST slot=0 kind=bfp16c unit=${weightbytes}
  MOVE_DDR2ST slot=0 saddr=0x100000 daddr=0x0 slices=${slices}
  SIGNAL id=0
  HALT
.stream compute
  CONFIG_AC slot=0 win_h=${h} win_w=${w} win_kh=${kh} win_kw=${kw} win_sh=${sh} win_sw=${sw} win_ph=${ph} win_pw=${pw} win_dh=${dh} win_dw=${dw} win_ow=${ow} img_blocks=${blocks} img_band=${band} step_acc=1 k_chunks=${chunks} st_group=${stgroup} st_step=${ststep} pixels=${pixels} pix_slice=64
  CONFIG_GM slot=1 kind=bfp32 unit=64 n0=${groups} s0=16384 t0=256 n1=64 s1=256 t1=${pitch} dslice=${slicebytes}
  CONFIG_GM slot=2 kind=bfp32 unit=64 n0=${groups} s0=16384 t0=256 n1=${rest} s1=256 t1=${pitch}
  WAIT id=0
  LOOP n=${full}
    CONV slot=0 slices=${slices} imc=${imc} ppr=${ppr} groups=${groups} rows=64 img=${img} pix=0+L0*${pixstep} steps=${steps} stream=1
    MOVE_OB2GM slot=1 saddr=0x0 daddr=0x200000+L0*${tilebytes} slices=${slices}
  ENDLOOP
  LOOP n=${hasrest}
    CONV slot=0 slices=0x1 imc=${imc} ppr=${ppr} groups=${groups} rows=64 img=${img} pix=${restpix} steps=${steps} stream=1
    MOVE_OB2GM slot=2 saddr=0x0 daddr=${restout} slices=0x1
  ENDLOOP
  CONFIG_GM slot=3 kind=bfp32 unit=${count}
  MOVE_GM2DDR slot=3 saddr=0x200000 daddr=0x800000
  HALT
.kernel conv
  .footprint DDR=0x1000000 GM=0x400000 ST=0x100000 OB=0x10000 IB=0x12000 WB=0x2100
  .argument x input f32 shape=[${imagepixels},${imagechannels}] form=bfp16r
    .piece DDR unit=0 addr=0x0 begin=[0,0] extent=[${imagepixels},${imagechannels}] strides=[${band},4160]
  .argument w input f32 shape=[${k},${n}] form=bfp16c
    .piece DDR unit=0 addr=0x100000 begin=[0,0] extent=[${k},${n}] strides=[${wband},4160]
  .argument y output f32 shape=[${pixels},${n64}] form=bfp32
    .piece DDR unit=0 addr=0x800000 begin=[0,0] extent=[${pixels},${n64}] strides=[${pitch},4]
  .main
    .launch quad=0 q0=load q1=compute
)";

std::string convText(const Conv &c, int64_t slices) {
  auto str = [](int64_t value) { return std::to_string(value); };
  int64_t imageBlocks = (c.imageChannels() + 63) / 64, imagePixels = c.h * c.w, band = imageBlocks * 4160;
  int64_t pixels = c.oh() * c.ow(), full = pixels / (64 * slices), rest = pixels - full * 64 * slices, ppr = 0;
  while ((int64_t(1) << ppr) < c.imc)
    ++ppr;
  int64_t k = c.chunks() * 64, pitch = c.groups * 256, steps = (c.chunks() + c.imc - 1) / c.imc;
  EXPECT_LE(rest, 64) << "the last slice-wide round has one slice only in this test";
  return fill(kConv, {{"imagebytes", str((imagePixels + 63) / 64 * band)},
                      {"weightbytes", str(c.groups * c.chunks() * 4160)},
                      {"slices", str((1 << slices) - 1)},
                      {"h", str(c.h)},
                      {"w", str(c.w)},
                      {"kh", str(c.kh)},
                      {"kw", str(c.kw)},
                      {"sh", str(c.sh)},
                      {"sw", str(c.sw)},
                      {"ph", str(c.ph)},
                      {"pw", str(c.pw)},
                      {"dh", str(c.dh)},
                      {"dw", str(c.dw)},
                      {"ow", str(c.ow())},
                      {"blocks", str(c.blocks())},
                      {"band", str(band)},
                      {"chunks", str(c.chunks())},
                      {"stgroup", str(c.chunks() * 4160)},
                      {"ststep", str(c.imc * 4160)},
                      {"pixels", str(pixels)},
                      {"groups", str(c.groups)},
                      {"pitch", str(pitch)},
                      {"slicebytes", str(64 * pitch)},
                      {"rest", str(std::max<int64_t>(rest, 1))},
                      {"full", str(full)},
                      {"imc", str(c.imc)},
                      {"ppr", str(ppr)},
                      {"img", str(c.firstBlock * 4160)},
                      {"pixstep", str(64 * slices)},
                      {"steps", str(steps)},
                      {"tilebytes", str(64 * slices * pitch)},
                      {"hasrest", str(rest > 0)},
                      {"restpix", str(full * 64 * slices)},
                      {"restout", str(0x200000 + full * 64 * slices * pitch)},
                      {"count", str(pixels * c.groups * 64)},
                      {"imagepixels", str(imagePixels)},
                      {"imagechannels", str(c.imageChannels())},
                      {"k", str(k)},
                      {"n", str(c.n)},
                      {"wband", str(c.chunks() * 4160)},
                      {"n64", str(c.groups * 64)}});
}

struct Block {
  uint8_t exponent = 0;
  std::vector<int16_t> mantissas = std::vector<int16_t>(64);
};

Block quantized(const std::vector<float> &values) {
  Block block;
  std::vector<float> padded = values;
  padded.resize(64);
  block.exponent = isa::quantizeBlock(padded, {}, block.mantissas);
  return block;
}

/// im2col rows of quantized pixels, dots, trees of imc partials, accumulation in chunk order.
std::vector<float> expectedConv(const Conv &c, const std::vector<float> &x, const std::vector<float> &w) {
  auto pixelBlock = [&](int64_t pixel, int64_t block) {
    std::vector<float> values;
    for (int64_t i = 0; i < 64 && block * 64 + i < c.imageChannels(); ++i)
      values.push_back(x[static_cast<size_t>(pixel * c.imageChannels() + block * 64 + i)]);
    return quantized(values);
  };
  std::vector<std::vector<Block>> image;
  for (int64_t pixel = 0; pixel < c.h * c.w; ++pixel) {
    image.emplace_back();
    for (int64_t block = 0; block < (c.imageChannels() + 63) / 64; ++block)
      image.back().push_back(pixelBlock(pixel, block));
  }
  std::vector<std::vector<Block>> weights;
  for (int64_t column = 0; column < c.groups * 64; ++column) {
    weights.emplace_back();
    for (int64_t chunk = 0; chunk < c.chunks(); ++chunk) {
      std::vector<float> values;
      for (int64_t i = 0; i < 64 && column < c.n; ++i)
        values.push_back(w[static_cast<size_t>((chunk * 64 + i) * c.n + column)]);
      weights.back().push_back(quantized(values));
    }
  }
  std::vector<float> out;
  for (int64_t p = 0; p < c.oh() * c.ow(); ++p)
    for (int64_t column = 0; column < c.groups * 64; ++column) {
      float ob = 0;
      for (int64_t first = 0; first < c.chunks(); first += c.imc) {
        std::vector<float> partials;
        for (int64_t q = first; q < std::min(first + c.imc, c.chunks()); ++q) {
          int64_t block = q % c.blocks(), kw = q / c.blocks() % c.kw, kh = q / c.blocks() / c.kw;
          int64_t ih = p / c.ow() * c.sh - c.ph + kh * c.dh, iw = p % c.ow() * c.sw - c.pw + kw * c.dw;
          bool inside = ih >= 0 && ih < c.h && iw >= 0 && iw < c.w;
          Block zero,
              a = inside ? image[static_cast<size_t>(ih * c.w + iw)][static_cast<size_t>(c.firstBlock + block)] : zero;
          const Block &b = weights[static_cast<size_t>(column)][static_cast<size_t>(q)];
          partials.push_back(
              isa::partialToF32(isa::dotBlocks({a.exponent, a.mantissas, 8}, {b.exponent, b.mantissas, 8})));
        }
        float reduced = isa::reducePartials(partials);
        ob = first ? isa::addToSum(ob, isa::roundSum(reduced)) : isa::roundSum(reduced);
      }
      out.push_back(ob);
    }
  return out;
}

/// Weights [kh, kw, c, n] with the channels of each kernel place padded to whole blocks.
std::vector<float> paddedWeights(const Conv &c, uint32_t seed) {
  std::vector<float> dense = noise(seed, static_cast<size_t>(c.kh * c.kw * c.c * c.n)),
                     out(static_cast<size_t>(c.chunks() * 64 * c.n));
  for (int64_t place = 0; place < c.kh * c.kw; ++place)
    for (int64_t channel = 0; channel < c.c; ++channel)
      for (int64_t n = 0; n < c.n; ++n)
        out[static_cast<size_t>((place * c.blocks() * 64 + channel) * c.n + n)] =
            dense[static_cast<size_t>((place * c.c + channel) * c.n + n)];
  return out;
}

} // namespace

TEST(CorsairConv, EqualsIm2colAndMatmulBitForBit) {
  const Conv cases[] = {
      // h, w, c, n, kernel, stride, pad, dilation, bottom, right, imc, groups
      {8, 8, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 9},
      {9, 7, 70, 128, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 4, 2},
      {16, 16, 128, 100, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 2, 2},
      {12, 10, 3, 64, 7, 7, 2, 2, 3, 3, 1, 1, 2, 2, 16},
      {11, 13, 64, 64, 3, 2, 1, 3, 2, 0, 2, 2, 1, 1, 3},
      {6, 6, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8, 1, 256, 2}, // a group of a grouped convolution
  };
  for (const Conv &c : cases) {
    SCOPED_TRACE(std::to_string(c.h) + " x " + std::to_string(c.w) + " x " + std::to_string(c.c) + ", kernel " +
                 std::to_string(c.kh));
    std::vector<float> x = noise(6, static_cast<size_t>(c.h * c.w * c.imageChannels())), w = paddedWeights(c, 7);
    CorsairProgram program(convText(c, 1));
    program.set("x", x);
    program.set("w", w);
    program.expectRun();
    EXPECT_EQ(program.get<float>("y"), expectedConv(c, x, w));
  }
}

TEST(CorsairConv, SlicesShareThePixels) {
  Conv c{16, 20, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 9};
  std::vector<float> x = noise(8, static_cast<size_t>(c.h * c.w * c.c)), w = paddedWeights(c, 9);
  CorsairProgram program(convText(c, 4));
  program.set("x", x);
  program.set("w", w);
  nlohmann::json report = program.report();
  EXPECT_EQ(program.get<float>("y"), expectedConv(c, x, w));
  EXPECT_EQ(report["macs"]["int8"], 320 * 9 * 64 * 64);
}

/// Run by hand: the simulator's rate with all checks.
TEST(CorsairConv, DISABLED_Rate) {
  const Conv cases[] = {
      {56, 56, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 9},
      {28, 28, 128, 128, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 8, 2},
      {16, 16, 256, 256, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4},
  };
  for (const Conv &c : cases)
    for (const char *hazards : {"corsair.hazards=1", "corsair.hazards=0"}) {
      CorsairProgram program(convText(c, c.h == 28 ? 3 : 1), {1, {hazards}});
      program.set("x", noise(1, static_cast<size_t>(c.h * c.w * c.c)));
      program.set("w", paddedWeights(c, 7));
      program.expectRun();
      auto start = std::chrono::steady_clock::now();
      nlohmann::json report = program.report();
      double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("%s: %.2f GMAC in %.3f s: %.2f GMAC/s; %lld clocks\n", hazards,
                  report["macs"]["int8"].get<double>() * 1e-9, seconds,
                  report["macs"]["int8"].get<double>() * 1e-9 / seconds, report["clocks"].get<long long>());
    }
}
