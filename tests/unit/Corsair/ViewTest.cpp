//===- ViewTest.cpp - maps, differences and descriptions of images --------===//

#include "schemas/corsair/verify/View.h"
#include "schemas/corsair/MemoryMap.h"
#include "schemas/corsair/text/Assembler.h"
#include "schemas/corsair/text/ImageDiff.h"
#include "schemas/corsair/verify/Access.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>

using namespace dmx::corsair;

namespace {

/// y = softmax(x + b) on quad 0; weights to ST that nobody reads; a second kernel that shares no code.
constexpr const char *kText = R"(
.mark "first"
.mark "second"
.function bump
  CPU_ADDI rd=3 ra=3 imm=64
  CPU_RET
.function idle
  CPU_RET
.stream add_init
  CONFIG_GM slot=0 unit=128
  MOVE_DDR2GM saddr=0x400 daddr=0x0
  CONFIG_ST slot=1 unit=4160
  MOVE_DDR2ST slot=1 saddr=0x1000 daddr=0x40 slices=0x3
  HALT
.stream add_main
  MARK label="second"
  CONFIG_GM slot=0 unit=128
  MOVE_DDR2GM saddr=0x0 daddr=0x100
  CONFIG_SIMD slot=0 ck=raw n3=64 d3=2 a3=2 b3=2 split=4
  EXEC_SIMD fn=add d=0x200 a=0x100 b=0x0
  LOOP n=2
    EXEC_SIMD fn=softmax d=0x100+L0*512 a=0x200
  ENDLOOP
  MOVE_GM2DDR saddr=0x100 daddr=0x800
  HALT
.stream other
  MARK label="first"
  EXEC_CPU fn=@bump
  CONFIG_GM slot=0 unit=64
  MOVE_GM2GM slot=0 saddr=0x1000 daddr=0x2000+R3
  MOVE_GM2IB slot=0 saddr=0x1000+R4 daddr=0x40+Q*64 slices=0x5
  HALT
.stream side
  CONFIG_GM slot=0 unit=256
  MOVE_GM2OB slot=0 saddr=0x1020 slices=0x1
  HALT
.kernel "add"
  .footprint DDR=0x4000 GM=0x1000 ST=0x2000
  .argument "x" input f32 shape=[64] form=f16
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[64] strides=[2]
  .argument "b" const u8 shape=[128] form=f16
    .piece DDR unit=0 addr=0x400 begin=[0] extent=[128]
  .argument "w" const u8 shape=[4160] form=bfp16c
    .piece DDR unit=0 addr=0x1000 begin=[0] extent=[4160]
  .argument "y" output f32 shape=[64] form=f16
    .piece DDR unit=0 addr=0x800 begin=[0] extent=[64] strides=[2]
  .init
    .launch quad=0 q0=add_init
  .main
    .launch quad=0 q0=add_main
.kernel "other/1"
  .footprint GM=0x4000 IB=0x4000 OB=0x1000
  .argument "cache" state f32 shape=[4,64] form=f16
    .piece GM unit=2 addr=0x100 begin=[0,0] extent=[4,64] strides=[128,2]
  .main
    .launch quad=2-3 q0=other q2=side R4=64
)";

Image sample(std::string text = kText) {
  std::string error;
  auto image = assemble(text, builtinMachine(), error);
  EXPECT_TRUE(image) << error;
  return image ? *image : Image();
}

/// "GM 0 100..200 temporary name first-last"
std::vector<std::string> lines(const KernelMap &map) {
  std::vector<std::string> out;
  for (const MapRange &range : map.ranges) {
    std::string units;
    for (uint32_t unit : range.units)
      units += (units.empty() ? "" : ",") + std::to_string(unit);
    char bytes[64];
    std::snprintf(bytes, sizeof bytes, "%llx..%llx", static_cast<unsigned long long>(range.bytes.begin),
                  static_cast<unsigned long long>(range.bytes.end));
    out.push_back(std::string(nameOf(range.memory)) + " " + units + " " + bytes + " " +
                  std::string(nameOf(range.kind)) + (range.name.empty() ? "" : " " + range.name) + " " +
                  std::to_string(range.first) + "-" + std::to_string(range.last));
  }
  return out;
}

std::string changed(const std::string &from, const std::string &to) {
  std::string text = kText;
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

std::span<const std::byte> asBytes(const std::vector<uint8_t> &bytes) { return std::as_bytes(std::span(bytes)); }

} // namespace

TEST(CorsairMap, PermanentAndTemporaryRanges) {
  Image image = sample();
  KernelMap map = memoryMap(image, image.kernels[0]);
  EXPECT_TRUE(map.ordered);
  EXPECT_EQ(map.initSteps, 2u);
  EXPECT_EQ(map.mainSteps, 4u) << "two moves and two sums";
  EXPECT_EQ(lines(map), (std::vector<std::string>{
                            "DDR 0 0..80 input x 0-5", "DDR 0 400..480 const b 0-5", "DDR 0 800..880 output y 0-5",
                            "DDR 0 1000..2040 const w 0-5", "GM 0 0..80 resident b 0-5",
                            "GM 0 100..180 temporary second 2-3", // x until the sum
                            "GM 0 100..380 temporary second 4-5", // both trips' results
                            "GM 0 200..280 temporary second 3-4", // the sum
                            "ST 0,1 40..1080 resident w 1-5"      // into two slices
                        }));
}

TEST(CorsairMap, WhatIsNotKnownIsCounted) {
  Image image = sample();
  KernelMap map = memoryMap(image, image.kernels[1]);
  EXPECT_EQ(lines(map), (std::vector<std::string>{
                            "GM 2 100..300 state cache 0-2",
                            "GM 2,3 1000..1120 temporary 0-2", // overlapping reads of what an earlier dispatch left
                            "OB 8 0..100 temporary 0-0", "IB 8,10 c0..100 temporary first 2-2"}));
  // What a register holds that a CPU function writes is not known; R4 is.
  EXPECT_EQ(map.unknown[static_cast<int>(Memory::GM)], 1u);
}

// Sixteen times 2^62 * 2^62 is 0 modulo 2^128, in which hulls are worked out.
TEST(CorsairMap, PlacesOutOfAllNumbersAreNotKnown) {
  std::string text = ".stream s\n  CONFIG_GM slot=0 unit=64\n  MOVE_GM2DDR slot=0 daddr=0x0 saddr=0x40", registers;
  for (int i = 0; i < kRegisters; ++i) {
    text += "+R" + std::to_string(i) + "*4611686018427387904";
    registers += " R" + std::to_string(i) + "=4611686018427387904";
  }
  text += "\n  HALT\n.kernel k\n  .footprint DDR=0x100 GM=0x100\n  .main\n    .launch quad=0 q0=s" + registers + "\n";
  std::string error;
  std::optional<Image> image = assemble(text, builtinMachine(), error);
  ASSERT_TRUE(image) << error;
  std::vector<Access> accesses = accessesOf(*image, image->kernels[0], image->kernels[0].main.launches[0]);
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_FALSE(accesses[0].range) << accesses[0].range->begin;
  EXPECT_EQ(accesses[1].range, (ByteRange{0, 64}));
}

/// A double-sided copy in a loop, handed over by tokens; then two quads that meet.
constexpr const char *kQueues = R"(
.mark "load"
.mark "copy"
.stream load
  MARK label="load"
  CONFIG_GM slot=0 unit=64
  LOOP n=3
    WAIT id=0
    MOVE_DDR2GM saddr=0x0+L0*64 daddr=0x0
    SIGNAL id=1
  ENDLOOP
  BARRIER scope=card id=1
  MOVE_GM2GM saddr=0x100 daddr=0x400 quads=0x2
  BARRIER scope=card id=2
  HALT
.stream copy
  SIGNAL id=0
  MARK label="copy"
  CONFIG_GM slot=0 unit=64
  LOOP n=3
    WAIT id=1
    MOVE_GM2GM saddr=0x0 daddr=0x100+L0*64
    SIGNAL id=0
  ENDLOOP
  BARRIER scope=card id=1
  BARRIER scope=card id=2
  HALT
.stream other
  CONFIG_GM slot=0 unit=64
  BARRIER scope=card id=1
  BARRIER scope=card id=2
  LOOP n=0+R1
    MOVE_GM2DDR saddr=0x400 daddr=0x0
  ENDLOOP
  HALT
.kernel k
  .footprint DDR=0x100 GM=0x1000
  .argument x state u8 shape=[256] form=u8
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[256] strides=[1]
  .main
    .launch quad=0 q0=load q2=copy
    .launch quad=1 q0=other R1=1
)";

TEST(CorsairMap, TokensAndBarriersGiveTheOrder) {
  Image image = sample(kQueues);
  KernelMap map = memoryMap(image, image.kernels[0]);
  // Load and copy take turns for six steps; then the other quad gets it, and reads it when both have met again.
  EXPECT_TRUE(map.ordered);
  EXPECT_EQ(map.mainSteps, 8u);
  EXPECT_EQ(lines(map),
            (std::vector<std::string>{"DDR 0 0..100 state x 0-7", "GM 0 0..40 temporary load 0-5",
                                      "GM 0 100..1c0 temporary copy 1-6", "GM 1 400..440 temporary load 6-7"}));
  // Without the other quad's second barrier nobody gets on.
  std::string text = kQueues;
  text.erase(text.rfind("  BARRIER scope=card id=2\n"), 26);
  image = sample(text);
  map = memoryMap(image, image.kernels[0]);
  EXPECT_FALSE(map.ordered);
  EXPECT_EQ(lines(map), (std::vector<std::string>{"DDR 0 0..100 state x 0-0", "GM 0 0..40 temporary 0-0",
                                                  "GM 0 100..1c0 temporary 0-0", "GM 1 400..440 temporary 0-0"}));
}

TEST(CorsairMap, ValuesEndWhereTheNextBegin) {
  Image image = sample(R"(
.stream s
  CONFIG_GM slot=0 unit=64
  MOVE_DDR2GM daddr=0x0
  MOVE_DDR2GM daddr=0x40
  MOVE_GM2DDR saddr=0x0
  MOVE_GM2DDR saddr=0x40
  MOVE_DDR2GM daddr=0x20
  MOVE_GM2DDR saddr=0x20
  MOVE_GM2DDR saddr=0x0
  MOVE_DDR2GM daddr=0x20
  CONFIG_GM slot=1 unit=32
  MOVE_GM2DDR slot=1 saddr=0x80
  HALT
.kernel k
  .footprint DDR=0x100 GM=0x100
  .argument x state u8 shape=[256] form=u8
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[256] strides=[1]
  .main
    .launch quad=0 q0=s
)");
  EXPECT_EQ(lines(memoryMap(image, image.kernels[0])),
            (std::vector<std::string>{"DDR 0 0..100 state x 0-8", //
                                      "GM 0 0..20 temporary 4-6", // what 0x20 left of the first, read again
                                      "GM 0 0..40 temporary 0-2", "GM 0 20..60 temporary 4-6",
                                      "GM 0 20..60 temporary 7-7", // never read
                                      "GM 0 40..80 temporary 1-3",
                                      "GM 0 80..a0 temporary 0-8"})); // never written: of an earlier run
}

/// Fields, keys, registers and trip counts of any size: the reader accepts such images, so a map must end as well.
TEST(CorsairMap, AnyVerifiedImageHasAMap) {
  std::mt19937_64 random(7);
  auto pick = [&](int64_t min, int64_t max) { return std::uniform_int_distribution<int64_t>(min, max)(random); };
  const int64_t odd[] = {0, 1, -1, 2, 63, 64, 4160, 0x7fffffff, -0x80000000ll, int64_t(1) << 40, INT64_MAX, INT64_MIN};
  int maps = 0, ordered = 0;
  for (const char *text : {kText, kQueues}) {
    const Image whole = sample(text);
    for (int i = 0; i < 3000; ++i) {
      Image image = whole;
      for (int changes = static_cast<int>(pick(1, 4)); changes; --changes) {
        Code &code = image.streams[static_cast<size_t>(pick(0, static_cast<int64_t>(image.streams.size()) - 1))];
        Instruction &in =
            code.instructions[static_cast<size_t>(pick(0, static_cast<int64_t>(code.instructions.size()) - 1))];
        int64_t value = odd[pick(0, 11)];
        if (std::optional<Unit> unit = configUnit(in.opcode)) {
          for (const ConfigKeyInfo &key : configKeys())
            if (key.units >> static_cast<int>(*unit) & 1 && pick(0, 8) == 0)
              in.key(key.key, std::clamp(odd[pick(0, 11)], key.min, key.max));
        } else if (!in.operands.empty()) {
          Operand &operand = in.operands[static_cast<size_t>(pick(0, static_cast<int64_t>(in.operands.size()) - 1))];
          operand.base = value;
          if (pick(0, 3) == 0)
            operand.terms = {registerTerm(static_cast<int>(pick(0, 15)), value | 1)};
        }
        Program &main =
            image.kernels[static_cast<size_t>(pick(0, static_cast<int64_t>(image.kernels.size()) - 1))].main;
        main.launches[0].registers[static_cast<size_t>(pick(0, 15))] = value;
      }
      if (verify(image))
        continue;
      for (const Kernel &kernel : image.kernels) {
        KernelMap map = memoryMap(image, kernel);
        ++maps;
        ordered += map.ordered;
        for (const MapRange &range : map.ranges) {
          ASSERT_LE(range.bytes.begin, range.bytes.end);
          ASSERT_LE(range.first, range.last);
          ASSERT_FALSE(range.units.empty());
        }
      }
      std::vector<uint8_t> bytes = write(image);
      std::string error;
      ASSERT_TRUE(describeCode(asBytes(bytes), "", true, error)) << error;
      ASSERT_EQ(diff(whole, image).empty(), bytes == write(whole));
    }
  }
  std::printf("%d maps, %d with an order\n", maps, ordered);
  EXPECT_GT(maps, 3000);
}

TEST(CorsairDiff, NamesTheFirstDifferingInstruction) {
  Image a = sample();
  EXPECT_TRUE(diff(a, a).empty());
  auto differences = [&](const std::string &text) {
    std::vector<std::string> out;
    for (const ImageDifference &one : diff(a, sample(text)))
      out.push_back(one.what + " " + one.name + ": " + one.a + " | " + one.b);
    return out;
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(differences(changed("fn=softmax d=0x100", "fn=log_softmax d=0x100")),
            List{"stream add_main at 6: EXEC_SIMD fn=softmax d=0x100+L0*512 a=0x200 | EXEC_SIMD fn=log_softmax "
                 "d=0x100+L0*512 a=0x200"});
  EXPECT_EQ(differences(changed("  EXEC_CPU fn=@bump\n", "")),
            (List{"stream other at 1: EXEC_CPU fn=@bump | CONFIG_GM unit=64",
                  "stream other: 6 instructions | 5 instructions"}));
  EXPECT_EQ(differences(changed("imm=64", "imm=65")),
            List{"function bump at 0: CPU_ADDI rd=3 ra=3 imm=64 | CPU_ADDI rd=3 ra=3 imm=65"});
  EXPECT_EQ(differences(changed("GM=0x1000 ST", "GM=0x1040 ST")), List{"kernel add footprint GM: 0x1000 | 0x1040"});
  EXPECT_EQ(differences(changed("quad=2-3", "quad=2")),
            List{"kernel other/1 main on quad 3: .launch quad=3 q0=other q2=side R4=64 | "});
  EXPECT_EQ(differences(changed("addr=0x1000 begin", "addr=0x1040 begin")),
            List{"kernel add argument 2: .argument \"w\" const u8 shape=[4160] form=bfp16c\n    .piece DDR unit=0 "
                 "addr=0x1000 begin=[0] extent=[4160] | .argument \"w\" const u8 shape=[4160] form=bfp16c\n    .piece "
                 "DDR unit=0 addr=0x1040 begin=[0] extent=[4160]"});
  EXPECT_EQ(differences(changed(".kernel \"add\"", ".kernel \"sum\"")),
            (List{"kernel add: 4 arguments, 1 quads | ", "kernel sum:  | 4 arguments, 1 quads"}));
  // Equal as it reads, other numbers.
  EXPECT_EQ(differences(changed(".mark \"first\"\n", "")),
            List{"image order of its parts: reads the same | in another order"});
}

TEST(CorsairDiff, OtherMachines) {
  Image a = sample(), b = sample();
  std::string json = b.machine.source, error;
  json.replace(json.find("\"corsair-like\""), 14, "\"other-card\"");
  b.machine = *parseMachine(json, error);
  std::vector<ImageDifference> found = diff(a, b);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "machine");
  EXPECT_NE(found[0].b.find("other-card"), std::string::npos);
  json += "\n";
  a.machine = *parseMachine(json, error);
  found = diff(a, b);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "description");
}

TEST(CorsairView, OneKernelAssemblesByItself) {
  std::vector<uint8_t> bytes = write(sample());
  std::string error;
  auto whole = printCode(asBytes(bytes), "", error);
  ASSERT_TRUE(whole) << error;
  auto again = assemble(*whole, builtinMachine(), error);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(write(*again), bytes);
  auto part = printCode(asBytes(bytes), "other/1", error);
  ASSERT_TRUE(part);
  for (const char *absent : {"add_", "\"add\"", "idle", "second"})
    EXPECT_EQ(part->find(absent), std::string::npos) << absent << " in\n" << *part;
  auto alone = assemble(*part, builtinMachine(), error);
  ASSERT_TRUE(alone) << error << *part;
  EXPECT_EQ(disassemble(*alone), *part);
  EXPECT_EQ(alone->kernels[0].arguments, sample().kernels[1].arguments);
  EXPECT_EQ(printCode(asBytes(bytes), "none", error), "; machine corsair-like\n");
}

TEST(CorsairView, DescribesWithCounts) {
  std::vector<uint8_t> bytes = write(sample());
  std::string error;
  auto text = describeCode(asBytes(bytes), "", true, error);
  ASSERT_TRUE(text) << error;
  nlohmann::json root = nlohmann::json::parse(*text);
  EXPECT_EQ(root["machine"]["name"], "corsair-like");
  EXPECT_EQ(root["machine"]["description"], builtinMachine().source);
  EXPECT_EQ(root["memories"][1]["footprint"], 0x4000) << "the largest of the kernels";
  const nlohmann::json &add = root["kernels"][0], &other = root["kernels"][1];
  EXPECT_EQ(add["instructions"]["control"], 5) << "2 HALT, MARK, LOOP, ENDLOOP";
  EXPECT_EQ(add["instructions"]["move"], 4);
  EXPECT_EQ(add["instructions"]["SIMD"], 2);
  EXPECT_EQ(other["instructions"]["CPU bytecode"], 2) << "of the function it calls";
  EXPECT_EQ(other["runs_on"], "quads 2-3");
  EXPECT_EQ(other["main"][1]["registers"]["R4"], 64);
  EXPECT_EQ(add["arguments"][2]["pieces"][0]["bytes"], 4160);
  EXPECT_EQ(root["streams"][1]["code"][4]["op"], "EXEC_SIMD");
  EXPECT_EQ(root["streams"][1]["code"][4]["fields"]["b"], nullptr) << "0x0 is the default";
  EXPECT_EQ(root["streams"][1]["code"][6]["fields"]["d"], "0x100+L0*512");
  auto brief = describeCode(asBytes(bytes), "add", false, error);
  root = nlohmann::json::parse(*brief);
  EXPECT_EQ(root["kernels"].size(), 1u);
  EXPECT_FALSE(root.contains("streams"));
  bytes[300] ^= 1;
  EXPECT_FALSE(describeCode(asBytes(bytes), "", false, error));
  EXPECT_EQ(error, "section MACH fails its checksum");
  EXPECT_FALSE(compareCode(asBytes(bytes), asBytes(bytes), error));
}
