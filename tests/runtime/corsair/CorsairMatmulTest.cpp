//===- CorsairMatmulTest.cpp - golden products on the simulated card ------===//

#include "CorsairHarness.h"

#include "schemas/blockfp/DotProduct.h"

#include <fstream>
#include <nlohmann/json.hpp>

using namespace dmxtest;

namespace {

/// One quad, one queue: 64 x 512 by 512 x 64 as the slides have it.
constexpr const char *kGolden = R"(
.stream all
  CONFIG_GM slot=0 kind=bfp16r unit=33280
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0
  MOVE_GM2IB slot=0 saddr=0x0 daddr=0x0
  CONFIG_ST slot=0 kind=bfp16c unit=33280
  MOVE_DDR2ST slot=0 saddr=0x10000 daddr=0x0
  CONFIG_ST slot=1 kind=bfp16c unit=4160 score=4160
  MOVE_ST2WB slot=1 saddr=0x0 daddr=0x0 cores=0xff
  CONFIG_AC slot=0
  MATMUL slot=0 imc=8 ppr=3 rows=64
  CONFIG_GM slot=1 kind=bfp32 to=${kind} unit=4096
  MOVE_OB2GM slot=1 saddr=0x0 daddr=0x20000
  CONFIG_GM slot=2 kind=${kind} unit=4096
  MOVE_GM2DDR slot=2 saddr=0x20000 daddr=0x20000
  HALT
.kernel mm
  .footprint DDR=0x40000 GM=0x40000 ST=0x10000 OB=0x10000 IB=0x12000 WB=0x2100
  .argument a input f32 shape=[64,512] form=bfp16r
    .piece DDR unit=0 addr=0x0 begin=[0,0] extent=[64,512] strides=[33280,4160]
  .argument b input f32 shape=[512,64] form=bfp16c
    .piece DDR unit=0 addr=0x10000 begin=[0,0] extent=[512,64] strides=[33280,4160]
  .argument c output ${host} shape=[64,64] form=${kind}
    .piece DDR unit=0 addr=0x20000 begin=[0,0] extent=[64,64] strides=[${pitch},${size}]
  .main
    .launch quad=0 q0=all
)";

/// 512 x 512 x 512 over 8 quads of 2 chiplets: a quad has 64 columns and all rows, its slices share the
/// bands of rows. A goes from DDR to the quads of a chiplet at once; loading, computing and storing overlap.
constexpr const char *kBig = R"(
.stream lead
  MARK label="load activations"
  CONFIG_GM slot=0 kind=bfp16r unit=266240
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0 quads=0+R1
  SIGNALR quads=0+R1 id=0
  SIGNAL id=5
  LOOP n=0
  ENDLOOP
  HALT
.stream load
  MARK label="load weights"
  CONFIG_ST slot=0 kind=bfp16c unit=33280
  MOVE_DDR2ST slot=0 saddr=0x41000+R2 daddr=0x0 slices=0xf
  CONFIG_ST slot=1 kind=bfp16c unit=4160 score=4160
  MOVE_ST2WB slot=1 saddr=0x0 daddr=0x0 slices=0xf cores=0xff
  SIGNAL id=0
  WAITR quad=0+R0 id=0
  CONFIG_GM slot=1 kind=bfp16r unit=33280 sslice=33280
  LOOP n=2
    MOVE_GM2IB slot=1 saddr=0x0+L0*133120 daddr=0x0+L0*33280 slices=0xf
    SIGNAL id=1
  ENDLOOP
  HALT
.stream compute
  MARK label="matmul"
  CONFIG_AC slot=0
  WAIT id=0
  LOOP n=2
    WAIT id=1
    MATMUL slot=0 slices=0xf imc=8 ppr=3 ib=0x0+L0*33280 ob=0x0+L0*16384
    SIGNAL id=2
  ENDLOOP
  HALT
.stream store
  MARK label="store"
  CONFIG_GM slot=0 kind=bfp32 to=f16 unit=4096 dslice=8192
  CONFIG_GM slot=1 kind=f16 unit=64 n0=256 s0=128 t0=1024
  LOOP n=2
    WAIT id=2
    MOVE_OB2GM slot=0 saddr=0x0+L0*16384 daddr=0x50000+L0*32768 slices=0xf
    MOVE_GM2DDR slot=1 saddr=0x50000+L0*32768 daddr=0x100000+L0*262144+R3
  ENDLOOP
  HALT
.kernel mm
  .footprint DDR=0x200000 GM=0x100000 ST=0x10000 OB=0x10000 IB=0x12000 WB=0x2100
  .argument b const u8 shape=[266240] form=bfp16c
    .piece DDR unit=0 addr=0x41000 begin=[0] extent=[133120]
    .piece DDR unit=1 addr=0x41000 begin=[133120] extent=[133120]
  .argument a input f32 shape=[512,512] form=bfp16r
    .piece DDR unit=0 addr=0x0 begin=[0,0] extent=[512,512] strides=[33280,4160]
    .piece DDR unit=1 addr=0x0 begin=[0,0] extent=[512,512] strides=[33280,4160]
  .argument c output f32 shape=[512,512] form=f16
    .piece DDR unit=0 addr=0x100000 begin=[0,0] extent=[512,256] strides=[1024,2]
    .piece DDR unit=1 addr=0x100000 begin=[0,256] extent=[512,256] strides=[1024,2]
  .main
    .launch quad=0 q0=load q1=compute q2=store q3=lead R0=0 R1=15 R2=0 R3=0
    .launch quad=1 q0=load q1=compute q2=store R0=0 R2=33280 R3=128
    .launch quad=2 q0=load q1=compute q2=store R0=0 R2=66560 R3=256
    .launch quad=3 q0=load q1=compute q2=store R0=0 R2=99840 R3=384
    .launch quad=4 q0=load q1=compute q2=store q3=lead R0=4 R1=240 R2=0 R3=0
    .launch quad=5 q0=load q1=compute q2=store R0=4 R2=33280 R3=128
    .launch quad=6 q0=load q1=compute q2=store R0=4 R2=66560 R3=256
    .launch quad=7 q0=load q1=compute q2=store R0=4 R2=99840 R3=384
)";

/// The product by the numerics library alone: blocks, dots and tree in the recorded plan.
std::vector<float> plannedProduct(const std::vector<float> &a, const std::vector<std::byte> &packedB, int64_t m,
                                  int64_t k, int64_t n) {
  std::string error;
  isa::BlockFormat bfp16;
  auto left = isa::makeLayout(bfp16, isa::Orientation::Row, m, k, error);
  auto right = isa::makeLayout(bfp16, isa::Orientation::Column, k, n, error);
  std::vector<std::byte> packedA(static_cast<size_t>(left->bytes()));
  EXPECT_FALSE(isa::quantizeTensor(*left, {a.data(), k}, {}, packedA.data()));
  auto block = [&](const std::vector<std::byte> &tiles, const isa::TensorLayout &layout, int64_t run, int64_t chunk,
                   std::vector<int16_t> &mantissas) {
    const std::byte *tile = tiles.data() + layout.tileOffset(run / 64, chunk);
    mantissas.resize(64);
    isa::unpackMantissas(tile + 64 + run % 64 * 64, 64, 8, mantissas.data());
    return static_cast<uint8_t>(tile[run % 64]);
  };
  std::vector<float> out(static_cast<size_t>(m * n));
  std::vector<int16_t> x, y;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float partials[8];
      for (int64_t chunk = 0; chunk < k / 64; ++chunk) {
        uint8_t ea = block(packedA, *left, i, chunk, x), eb = block(packedB, *right, j, chunk, y);
        partials[chunk] = isa::partialToF32(isa::dotBlocks({ea, x, 8}, {eb, y, 8}));
      }
      float ob = isa::roundSum(isa::reducePartials({partials, static_cast<size_t>(k / 64)}));
      out[static_cast<size_t>(i * n + j)] = isa::f16Widen(isa::f16Round(ob));
    }
  return out;
}

std::vector<std::byte> packColumns(const std::vector<float> &b, int64_t k, int64_t n) {
  std::string error;
  auto layout = isa::makeLayout(isa::BlockFormat(), isa::Orientation::Column, k, n, error);
  std::vector<std::byte> packed(static_cast<size_t>(layout->bytes()));
  EXPECT_FALSE(isa::quantizeTensor(*layout, {b.data(), n}, {}, packed.data()));
  return packed;
}

} // namespace

TEST(CorsairMatmul, GoldenProductHasItsChecksums) {
  std::vector<float> a = goldenInput(1, 64 * 512, 512), b = goldenInput(2, 512 * 64, 64);
  ASSERT_EQ(crcOf(a), 0x058deee4u);
  ASSERT_EQ(crcOf(b), 0xb62e584au);
  CorsairProgram wide(fill(kGolden, {{"kind", "bfp32"}, {"host", "f32"}, {"pitch", "256"}, {"size", "4"}}));
  wide.set("a", a);
  wide.set("b", b);
  wide.expectRun();
  EXPECT_EQ(crcOf(wide.get<float>("c")), 0xd75a42bau);
  CorsairProgram half(fill(kGolden, {{"kind", "f16"}, {"host", "f16"}, {"pitch", "128"}, {"size", "2"}}));
  half.set("a", a);
  half.set("b", b);
  half.expectRun();
  EXPECT_EQ(crcOf(half.get<uint16_t>("c")), 0x60b8a470u);
}

TEST(CorsairMatmul, EightQuadsGiveThePlansBitsUnderEverySkew) {
  std::vector<float> a = noise(1, 512 * 512);
  std::vector<std::byte> b = packColumns(noise(2, 512 * 512), 512, 512);
  std::vector<float> expected = plannedProduct(a, b, 512, 512, 512);
  for (uint32_t threads : {1u, 2u})
    for (uint32_t seed = 0; seed <= 50; ++seed) {
      CorsairProgram program(kBig, {threads, {"corsair.skew_seed=" + std::to_string(seed)}});
      program.set("a", a);
      program.set("b", b);
      program.expectRun();
      ASSERT_EQ(program.get<float>("c"), expected) << "seed " << seed << ", threads " << threads;
    }
}

TEST(CorsairMatmul, TimesDoNotDependOnHostThreads) {
  std::vector<nlohmann::json> reports;
  for (uint32_t threads : {1u, 2u, 5u})
    for (int repetition = 0; repetition < 3; ++repetition) {
      CorsairProgram program(kBig, {threads, {"corsair.skew_seed=7"}});
      program.set("b", packColumns(noise(2, 512 * 512), 512, 512));
      reports.push_back(program.report());
    }
  for (const auto &report : reports)
    EXPECT_EQ(report, reports[0]);
}
