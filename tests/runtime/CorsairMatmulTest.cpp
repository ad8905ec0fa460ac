//===- CorsairMatmulTest.cpp - golden products on the simulated card ------===//

#include "CorsairHarness.h"

#include "schemas/corsair/DotProduct.h"

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
