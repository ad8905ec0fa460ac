//===- ImageTest.cpp - the container of compiled programs -----------------===//

#include "schemas/corsair/text/Assembler.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmx::corsair;

namespace {

constexpr const char *kText = R"(
; a kernel with everything that text can say
.mark "conv 1 \"quoted\""
.function bump
  CPU_ADDI rd=0 ra=0 imm=-1
  CPU_BNZ ra=0 to=0
  CPU_RET
.stream load
  MARK label="conv 1 \"quoted\""
  CONFIG_GM slot=3 kind=bfp16r unit=4160 n0=8 s0=4160 t0=4160
  LOOP n=8+R2
    WAIT id=1
    MOVE_DDR2GM slot=3 saddr=0x100+L0*33280+Q*-64 daddr=0x40
    SIGNAL id=2 n=3
  ENDLOOP
  EXEC_CPU fn=@bump
  HALT
.stream compute
  CONFIG_SIMD slot=0 ak=f32 dm=SIMD n3=64 d3=2
  EXEC_SIMD fn=affine slot=0 d=0x20 a=0x40 imm0=0.1 imm1=-3
  CONFIG_AC slot=1
  MATMUL slot=1 imc=8 ppr=3 rows=64 acc=0+L0
  HALT
.kernel "block/1:0"
  .footprint DDR=0x100000 GM=0x10000
  .repeated_macs 4096
  .argument "x:0" input f32 shape=[512,512] form=bfp16r
    .piece DDR unit=1 addr=0x0 begin=[0,0] extent=[512,512] strides=[33280,4160]
  .argument "w" const u8 shape=[266240] form=bfp16c
    .piece DDR unit=0 addr=0x41000 begin=[0] extent=[266240]
  .argument "cache" state f32 shape=[4,8,64] form=f16 perm=[1,0,2]
    .piece GM unit=3 addr=0x0 begin=[0,0,0] extent=[8,4,64] strides=[512,128,2]
  .argument "position" scalar i64 shape=[1] form=i64 reg=4
  .argument "y" output f32 shape=[2,64] form=f16
    .piece DDR unit=0 addr=0x90000 begin=[0,0] extent=[1,64] strides=[128,2]
    .piece DDR unit=1 addr=0x90000 begin=[1,0] extent=[1,64] strides=[128,2]
  .dims [3,-1]
  .init
    .launch quad=0 q0=load
  .main
    .launch quad=0-2 q0=load q1=compute R0=17
    .launch quad=31 q3=compute R15=-1
)";

Image sample() {
  std::string text = kText, error;
  text.replace(text.find("0+L0\n"), 4, "0");
  auto image = assemble(text, builtinMachine(), error);
  EXPECT_TRUE(image) << error;
  return image ? *image : Image();
}

} // namespace

TEST(CorsairImage, TermsNeedTheirLoops) {
  std::string error;
  EXPECT_FALSE(assemble(kText, builtinMachine(), error));
  EXPECT_EQ(error, "stream 'compute' at 3 (MATMUL): field acc names loop L0, but 0 loops enclose it");
}

TEST(CorsairImage, TextAndBytesAreFixedPoints) {
  Image image = sample();
  std::string text = disassemble(image), error;
  auto again = assemble(text, builtinMachine(), error);
  ASSERT_TRUE(again) << error << "\n" << text;
  EXPECT_EQ(disassemble(*again), text);
  std::vector<uint8_t> bytes = write(image);
  EXPECT_EQ(write(*again), bytes);
  auto back = read(bytes, error);
  ASSERT_TRUE(back) << error;
  EXPECT_EQ(back->streams, image.streams);
  EXPECT_EQ(back->functions, image.functions);
  EXPECT_EQ(back->marks, image.marks);
  EXPECT_EQ(back->kernels, image.kernels);
  EXPECT_EQ(write(*back), bytes);
  EXPECT_EQ(image.kernels[0].main.launches.size(), 4u);
  EXPECT_EQ(image.kernels[0].main.launches[3].registers[15], -1);
}

TEST(CorsairImage, EveryFlippedBitIsFound) {
  std::vector<uint8_t> bytes = write(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> bad = bytes;
    bad[i] ^= static_cast<uint8_t>(1u << (i % 8));
    std::string error;
    ASSERT_FALSE(read(bad, error)) << "byte " << i;
    ASSERT_FALSE(error.empty());
  }
  for (size_t size = 0; size < bytes.size(); size += 7) {
    std::string error;
    ASSERT_FALSE(read(std::span(bytes).first(size), error)) << size;
  }
}

TEST(CorsairImage, OtherVersionsAreRefusedByNumber) {
  std::vector<uint8_t> bytes = write(sample());
  std::string error;
  bytes[8] = 2; // major
  EXPECT_FALSE(read(bytes, error));
  EXPECT_NE(error.find("the image has format 2.1, this reader knows 1.1"), std::string::npos) << error;
  bytes[8] = 1;
  bytes[10] = 2; // minor
  EXPECT_FALSE(read(bytes, error));
  EXPECT_NE(error.find("format 1.2"), std::string::npos) << error;
  bytes[10] = kImageMinor;
  bytes[12] ^= 1; // fingerprint
  EXPECT_FALSE(read(bytes, error));
  EXPECT_NE(error.find("another machine"), std::string::npos) << error;
}

TEST(CorsairImage, Format10DoesNotSayWhatIsRepeated) {
  Image image = sample();
  ASSERT_EQ(image.kernels.size(), 1u);
  EXPECT_EQ(image.kernels[0].repeatedMacs, 4096u);
  std::vector<uint8_t> bytes = write(image);
  bytes[10] = 0;                         // minor
  bytes.resize(bytes.size() - 8);        // of the last section the last number
  bytes[24 + 4 * 24 + 16] -= uint8_t(8); // whose size is in the table
  std::string error;
  std::optional<Image> old = read(bytes, error, Checksums::Ignore);
  ASSERT_TRUE(old) << error;
  EXPECT_EQ(old->kernels[0].repeatedMacs, 0u);
  image.kernels[0].repeatedMacs = 0;
  EXPECT_EQ(old->kernels, image.kernels);
}

TEST(CorsairImage, KernelsAreVerified) {
  using Change = void (*)(Kernel &);
  const std::pair<const char *, Change> cases[] = {
      {"capacity: its footprint in GM", [](Kernel &k) { k.footprint.bytes[1] = uint64_t(1) << 30; }},
      {"capacity: ends beyond the kernel's footprint in DDR", [](Kernel &k) { k.footprint.bytes[0] = 0x1000; }},
      {"leaves the tensor in dimension 1", [](Kernel &k) { k.arguments[0].pieces[0].extent[1] = 513; }},
      {"misaligned", [](Kernel &k) { k.arguments[0].pieces[0].address = 32; }},
      {"has stride 100", [](Kernel &k) { k.arguments[0].pieces[0].strides[1] = 100; }},
      {"unit 8 does not exist", [](Kernel &k) { k.arguments[0].pieces[0].unit = 8; }},
      {"lies in GM, allowed is DDR", [](Kernel &k) { k.arguments[0].pieces[0].memory = Memory::GM; }},
      {"host type i64 does not go into form bfp16r", [](Kernel &k) { k.arguments[0].type = HostType::I64; }},
      {"perm is no permutation", [](Kernel &k) { k.arguments[2].perm = {0, 0, 2}; }},
      {"its pieces cover 64 of 128 elements", [](Kernel &k) { k.arguments[4].pieces.pop_back(); }},
      {"pieces 0 and 1 of an output overlap", [](Kernel &k) { k.arguments[4].pieces[1].begin[0] = 0; }},
      {"a scalar is one integer", [](Kernel &k) { k.arguments[3].shape = {2}; }},
      {"its size does not fit", [](Kernel &k) { k.arguments[0].shape = {INT64_MAX, 2}; }},
      {"its size does not fit", [](Kernel &k) { k.arguments[0].shape = {int64_t(1) << 31, (int64_t(1) << 31) + 1}; }},
      {"its size does not fit", [](Kernel &k) { k.arguments[0].shape = {0, INT64_MAX, 4}; }},
      {"its size does not fit", [](Kernel &k) { k.arguments[0].shape = {-1, -1}; }},
      // 8 * 2^61 bytes from the first row to the last one
      {"capacity: ends beyond", [](Kernel &k) { k.arguments[0].pieces[0].strides[0] = int64_t(1) << 61; }},
      {"capacity: ends beyond", [](Kernel &k) { k.arguments[4].pieces[0].strides[1] = INT64_MAX - 1; }},
      {"capacity: ends beyond", [](Kernel &k) { k.arguments[0].pieces[0].address = 0 - uint64_t(4160); }},
      {"a dim goes to register 16", [](Kernel &k) { k.dimRegisters = {16}; }},
      {"main launches quad 0", [](Kernel &k) { k.main.launches[1].quad = 0; }},
      {"main launches stream 7", [](Kernel &k) { k.main.launches[0].streams[0] = 7; }},
  };
  for (auto [part, change] : cases) {
    Image image = sample();
    change(image.kernels[0]);
    MaybeError wrong = verify(image);
    ASSERT_TRUE(wrong) << part;
    EXPECT_NE(wrong->find(part), std::string::npos) << *wrong;
    std::string error;
    EXPECT_FALSE(read(write(image), error)) << "a reader verifies too";
  }
}

/// Damage behind valid checksums: only bounds checks protect the reader.
TEST(CorsairImage, DamagedSectionsNeverCrashTheReader) {
  std::vector<uint8_t> good = write(sample());
  auto number = [](const std::vector<uint8_t> &bytes, size_t at, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; ++i)
      value |= uint64_t(bytes[at + i]) << (8 * i);
    return value;
  };
  std::mt19937 random(3);
  size_t accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<uint8_t> bytes = good;
    size_t begin = 24 + 5 * 24 + number(good, 24 + 16, 8); // after MACH: its JSON is fuzzed by MachineTest
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
      bytes[begin + random() % (bytes.size() - begin)] = random() % 2 ? static_cast<uint8_t>(random()) : 0xff;
    std::string error;
    accepted += read(bytes, error, Checksums::Ignore).has_value();
  }
  EXPECT_LT(accepted, 4000u);
}
