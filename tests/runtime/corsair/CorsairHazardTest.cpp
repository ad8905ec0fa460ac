//===- CorsairHazardTest.cpp - every fault class, and no false alarm ------===//
//
// Correct programs run; each with one thing made wrong is stopped by the name of
// what was made wrong.
//
//===----------------------------------------------------------------------===//

#include "CorsairHarness.h"

using namespace dmxtest;

namespace {

/// Double-buffered copy of 8 blocks through GM, SIMD and back: three queues, tokens in both directions.
/// Lines marked with ;N can be taken out.
constexpr const char *kPipeline = R"(
.stream load
  CONFIG_GM slot=0 kind=f16 unit=64
  LOOP n=4
    LOOP n=2
      WAIT id=1 ;1
      MOVE_DDR2GM slot=0 saddr=0x0+L0*256+L1*128 daddr=0x0+L1*128
      SIGNAL id=0 ;2
    ENDLOOP
  ENDLOOP
  HALT
.stream compute
  CONFIG_SIMD slot=0 n3=64 d3=2 a3=2
  SIGNAL id=1 n=2
  SIGNAL id=3 n=2
  LOOP n=4
    LOOP n=2
      WAIT id=0 ;3
      WAIT id=3 ;4
      EXEC_SIMD fn=neg slot=0 slices=0x1 a=0x0+L1*128 d=0x200+L1*128
      SIGNAL id=1 ;5
      SIGNAL id=2 ;6
    ENDLOOP
  ENDLOOP
  HALT
.stream store
  CONFIG_GM slot=0 kind=f16 unit=64
  LOOP n=4
    LOOP n=2
      WAIT id=2 ;7
      MOVE_GM2DDR slot=0 saddr=0x200+L1*128 daddr=0x1000+L0*256+L1*128
      SIGNAL id=3 ;8
    ENDLOOP
  ENDLOOP
  HALT
.kernel k
  .footprint DDR=0x10000 GM=0x10000 ST=0x1000 OB=0x4000 IB=0x4000 WB=0x2100 SIMD=0x1000 DRE=0x1000
  .argument x input f32 shape=[512] form=f16
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[512] strides=[2]
  .argument y output f32 shape=[512] form=f16
    .piece DDR unit=0 addr=0x1000 begin=[0] extent=[512] strides=[2]
  .main
    .launch quad=0 q0=load q1=compute q2=store
)";

/// The text without the line that ends in ;number.
std::string without(std::string text, int number) {
  size_t mark = text.find(";" + std::to_string(number) + "\n");
  EXPECT_NE(mark, std::string::npos);
  size_t begin = text.rfind('\n', mark);
  return text.erase(begin, text.find('\n', mark) - begin);
}

/// A straight program of one queue on quad 0 over f16 x[64] at DDR 0 and f16 y[64] at DDR 0x1000.
std::string straight(const std::string &body) {
  return ".stream s\n" + body + R"(  HALT
.kernel k
  .footprint DDR=0x10000 GM=0x10000 ST=0x10000 OB=0x4000 IB=0x4000 WB=0x2100 SIMD=0x1000 DRE=0x1000
  .argument x input f32 shape=[64] form=f16
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[64] strides=[2]
  .argument y output f32 shape=[64] form=f16
    .piece DDR unit=0 addr=0x1000 begin=[0] extent=[64] strides=[2]
  .main
    .launch quad=0 q0=s
)";
}

const std::string kIn = "  CONFIG_GM slot=0 kind=f16 unit=64\n  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0\n";
const std::string kOut = "  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x1000\n";

void expectFault(const std::string &text, const std::vector<std::string> &parts) {
  CorsairProgram program(text);
  program.expectFault(parts);
}

} // namespace

TEST(CorsairHazards, CorrectPipelinesRaiseNoAlarm) {
  std::vector<float> x(512);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i) * 0.25f;
  CorsairProgram program(kPipeline);
  program.set("x", x);
  for (int run = 0; run < 3; ++run) {
    program.expectRun();
    std::vector<float> y = program.get<float>("y");
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[i], -x[i]);
  }
}

TEST(CorsairHazards, AMissingWaitIsARaceThatNamesBothAccesses) {
  const std::tuple<int, const char *, const char *> cases[] = {
      {1, "stream 'load' at 3", "stream 'compute' at 7 (EXEC_SIMD"},
      {3, "stream 'compute' at 6 (EXEC_SIMD", "stream 'load' at 4 (MOVE_DDR2GM"},
      {4, "stream 'compute' at 6 (EXEC_SIMD", "stream 'store' at 4 (MOVE_GM2DDR"},
      {7, "stream 'store' at 3 (MOVE_GM2DDR", "stream 'compute'"},
  };
  for (auto [line, here, there] : cases)
    expectFault(without(kPipeline, line), {"race:", "nothing orders this and", here, there});
}

TEST(CorsairHazards, AMissingSignalIsADeadlock) {
  for (int line : {2, 5, 6, 8})
    expectFault(without(kPipeline, line), {"deadlock:", "waits for 1 of token"});
}

TEST(CorsairHazards, ReadingTooEarlyIsARaceInEveryDirection) {
  auto text = [](const std::string &first, const std::string &second) {
    std::string both = straight("");
    both.replace(0, both.find(".kernel"),
                 ".stream a\n" + kIn + "  BARRIER queues=0x3\n" + first +
                     "  SIGNAL id=0\n  HALT\n.stream b\n  CONFIG_GM slot=0 kind=f16 unit=64\n  BARRIER queues=0x3\n" +
                     second + "  WAIT id=0\n" + kOut + "  HALT\n");
    both.replace(both.find("q0=s"), 4, "q0=a q1=b");
    return both;
  };
  std::string read = "  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x2000\n",
              otherRead = "  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x3000\n",
              write = "  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0\n";
  CorsairProgram harmless(text(read, otherRead));
  harmless.expectRun();
  expectFault(text(read, write), {"race:",
                                  "stream 'b' at 2 (MOVE_DDR2GM): writes GM of quad 0 bytes 0x0..0x80; nothing orders "
                                  "this and quad 0 queue 0 stream 'a' at 3",
                                  "which reads it"});
  expectFault(text(write, read), {"race:", "reads GM of quad 0", "which writes it"});
  expectFault(text(write, write), {"race:", "writes GM of quad 0", "which writes it"});
}

TEST(CorsairHazards, RacesAcrossQuadsAreFound) {
  std::string text = R"(
.stream push
  CONFIG_GM slot=0 kind=f16 unit=64
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x100
  MOVE_GM2GM slot=0 saddr=0x100 daddr=0x0 quads=0x10
  SIGNALR quads=0x10 id=0
  HALT
.stream pull
  NOP n=60000
${wait}
  CONFIG_GM slot=0 kind=f16 unit=64
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x1000
  HALT
)" + straight("");
  text.replace(text.find(".stream s"), text.find(".kernel") - text.find(".stream s"), "");
  text.replace(text.find("addr=0x1000"), 11, "addr=0x1000");
  text.replace(text.find("    .launch quad=0 q0=s"), 23, "    .launch quad=0 q0=push\n    .launch quad=4 q0=pull");
  text.replace(text.rfind("DDR unit=0"), 10, "DDR unit=1");
  for (uint32_t threads : {1u, 2u}) {
    CorsairProgram good(fill(text, {{"wait", "  WAITR quad=0 id=0"}}), {threads, {}});
    good.expectRun();
    CorsairProgram bad(fill(text, {{"wait", "  NOP"}}), {threads, {}});
    // The host's order decides which of the two comes second.
    bad.expectFault({"race:", "quad 0 queue 0 stream 'push' at 2 (MOVE_GM2GM",
                     "quad 4 queue 0 stream 'pull' at 3 (MOVE_GM2DDR", "GM of quad 4 bytes 0x0..0x80"});
  }
}

TEST(CorsairHazards, UndefinedBytesAreNotRead) {
  expectFault(straight("  CONFIG_GM slot=0 kind=f16 unit=64\n" + kOut),
              {"poison-read: quad 0 queue 0 stream 's' at 1 (MOVE_GM2DDR daddr=0x1000): reads GM of quad 0 bytes "
               "0x0..0x80, of which byte 0x0"});
  expectFault(straight(kIn + "  CONFIG_GM slot=0 kind=f16 unit=65\n" + kOut),
              {"poison-read", "bytes 0x0..0x82, of which byte 0x80"});
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=f16 unit=63\n  MOVE_GM2DDR slot=1 saddr=0x0 daddr=0x1000\n"),
              {"unwritten-output: output 'y': byte 4222 of DDR 0 was never written"});
  expectFault(straight(kIn + "  CONFIG_AC slot=0\n  MATMUL slot=0\n" + kOut),
              {"poison-read", "reads IB of quad 0 slice 0"});
}

TEST(CorsairHazards, KindsAreChecked) {
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=f32 unit=32\n  MOVE_GM2DDR slot=1 saddr=0x0 daddr=0x1000\n"),
              {"format-mismatch", "reads GM of quad 0 bytes 0x0..0x80 as f32, but byte 0x0 is f16"});
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=f16 to=f32 unit=64\n  MOVE_GM2GM slot=1 saddr=0x0 daddr=0x1000\n "
                             " CONFIG_GM slot=2 kind=f32 unit=32\n  MOVE_GM2DDR slot=2 saddr=0x1000 daddr=0x1000\n"),
              {"format-mismatch: output 'y': byte 4096 of DDR 0 is f32, not f16"});
  expectFault(
      straight(kIn + "  CONFIG_SIMD slot=0 ak=i32 dk=i32\n  EXEC_SIMD fn=copy slot=0 slices=0x1 d=0x100\n" + kOut),
      {"format-mismatch", "as i32"});
  expectFault(
      straight(kIn + "  CONFIG_SIMD slot=0 ak=f16 dk=bool\n  EXEC_SIMD fn=add slot=0 slices=0x1 d=0x100\n" + kOut),
      {"format-mismatch", "do not have kinds that go together"});
}

TEST(CorsairHazards, CapacityIsTheKernelsFootprint) {
  expectFault(straight("  CONFIG_GM slot=0 kind=f16 unit=64\n  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0xffc0\n" + kOut),
              {"capacity", "bytes 0xffc0..0x10040 of GM of quad 0, whose programs have 65536 bytes of 16777216"});
  expectFault(
      straight(kIn + "  CONFIG_GM slot=1 kind=f16 unit=64 n0=2147483647 s0=1099511627776\n  MOVE_GM2DDR slot=1\n"),
      {"capacity", "spans more than any memory"});
  expectFault(straight(kIn + "  LOOP n=3\n  MOVE_GM2DDR slot=0 saddr=-0x80+L0*128 daddr=0x1000\n  ENDLOOP\n"),
              {"capacity", "address -128"});
}

TEST(CorsairHazards, SlotsMustBeSetByTheirOwnQueue) {
  expectFault(straight("  MOVE_DDR2GM slot=5\n"), {"missing-config: quad 0 queue 0 stream 's' at 0 (MOVE_DDR2GM "
                                                   "slot=5): slot 5 of unit GM is not set in this queue"});
  expectFault(straight("  CONFIG_GM slot=5\n  MOVE_DDR2ST slot=5\n"), {"missing-config", "slot 5 of unit ST"});
  expectFault(straight("  CONV slot=1\n"), {"missing-config", "unit AC"});
  expectFault(straight("  EXEC_SIMD slot=2\n"), {"missing-config", "unit SIMD"});
}

TEST(CorsairHazards, OperandsAreCheckedAtIssue) {
  expectFault(straight("  CONFIG_AC slot=0\n  LOOP n=2\n  MATMUL slot=0 rows=0+L0*65\n  ENDLOOP\n"),
              {"bad-operand", "rows is 0"});
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=f16 unit=1\n  MOVE_GM2DDR slot=1 saddr=0x1 daddr=0x1000\n"),
              {"misaligned", "source address 1 is no multiple of 2"});
  expectFault(straight(kIn + "  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x1000 n=-2\n"), {"bad-operand", "n is -2"});
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=f16 to=bfp16r dmode=1\n  MOVE_GM2DDR slot=1\n"),
              {"illegal-move", "no conversion between GM and DDR"});
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=raw smode=1\n  MOVE_GM2GM slot=1\n"),
              {"bad-operand", "kind raw can only be copied linearly"});
  expectFault(straight(kIn + "  CONFIG_GM slot=1 kind=bfp16r to=bfp16c unit=64\n  MOVE_GM2GM slot=1\n"),
              {"bad-operand", "set retype"});
  expectFault(straight(kIn + "  CONFIG_SIMD slot=0 dm=IB\n  EXEC_SIMD fn=fill slot=0 slices=0x1\n"),
              {"illegal-move", "the SIMD device does not reach IB"});
}

TEST(CorsairHazards, ChecksCanBeTurnedOff) {
  std::string text =
      straight(kIn + "  CONFIG_GM slot=1 kind=f16 unit=63\n  MOVE_GM2DDR slot=1 saddr=0x0 daddr=0x1000\n");
  CorsairProgram program(text, {1, {"corsair.hazards=0"}});
  program.set("x", std::vector<float>(64, 2.0f));
  program.expectRun();
  EXPECT_EQ(program.get<float>("y")[62], 2.0f);
  CorsairProgram outside(straight("  CONFIG_GM slot=0 kind=f16 unit=64\n  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0xffc0\n"),
                         {1, {"corsair.hazards=0"}});
  outside.expectFault({"capacity"});
}
