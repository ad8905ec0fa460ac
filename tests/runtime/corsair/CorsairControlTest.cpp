//===- CorsairControlTest.cpp - loops, order between queues ---------------===//

#include "CorsairHarness.h"

using namespace dmxtest;

namespace {

std::vector<int64_t> counting(int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = 100 + i;
  return values;
}

nlohmann::json taskNamed(const nlohmann::json &report, const std::string &name) {
  for (const auto &task : report["tasks"])
    if (task["name"] == name)
      return task;
  return {};
}

} // namespace

// --- loops -------------------------------------------------------------------

TEST(CorsairControl, FourNestedLoopsEqualTheUnrolledProgram) {
  std::string head =
      ".stream s\n  CONFIG_GM slot=0 kind=i64 unit=64\n  MOVE_DDR2GM slot=0\n  CONFIG_GM slot=1 kind=i64 unit=1\n";
  std::string tail = "  CONFIG_GM slot=0 kind=i64 unit=64\n  MOVE_GM2DDR slot=0 saddr=0x1000 daddr=0x8000\n  HALT\n";
  std::string looped = head + R"(
  LOOP n=2
    LOOP n=4
      LOOP n=2
        LOOP n=4
          MOVE_GM2GM slot=1 saddr=0x0+L0*8+L1*16+L2*64+L3*128 daddr=0x1000+L0*256+L1*64+L2*32+L3*8
        ENDLOOP
      ENDLOOP
    ENDLOOP
  ENDLOOP
)" + tail;
  std::string unrolled = head;
  for (int a = 0; a < 2; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 2; ++c)
        for (int d = 0; d < 4; ++d)
          unrolled += "  MOVE_GM2GM slot=1 saddr=" + std::to_string(a * 8 + b * 16 + c * 64 + d * 128) +
                      " daddr=" + std::to_string(0x1000 + a * 256 + b * 64 + c * 32 + d * 8) + "\n";
  unrolled += tail;
  std::string launch = "    .launch quad=0 q0=s\n";
  CorsairProgram one(program(looped, launch)), other(program(unrolled, launch));
  one.set("x", counting(64));
  other.set("x", counting(64));
  one.expectRun();
  other.expectRun();
  EXPECT_EQ(one.get<int64_t>("y"), other.get<int64_t>("y"));
  EXPECT_NE(one.get<int64_t>("y"), counting(64));
  // Trip counts do not show in the code's size.
  std::vector<uint8_t> sizes[2];
  for (int i = 0; i < 2; ++i)
    isa::encode(isa::Instruction(isa::Opcode::Loop).set("n", i ? 1000000 : 2), sizes[i]);
  EXPECT_EQ(sizes[0].size(), sizes[1].size());
}

TEST(CorsairControl, RegistersGiveTripCountsAndAddresses) {
  std::string streams = R"(
.stream s
  CONFIG_GM slot=0 kind=i64 unit=64
  MOVE_DDR2GM slot=0
  CONFIG_GM slot=1 kind=i64 unit=1
  LOOP n=0+R1
    MOVE_GM2DDR slot=1 saddr=0x0+L0*8 daddr=0x8000+L0*8+R2*8
  ENDLOOP
  LOOP n=0+R3
    MOVE_GM2DDR slot=1 saddr=0x100 daddr=0x8000
  ENDLOOP
  LOOP n=-5+R1
    MOVE_GM2DDR slot=1 saddr=0x100 daddr=0x8000
  ENDLOOP
  HALT
)";
  CorsairProgram p(program(streams, "    .launch quad=0 q0=s R1=4 R2=0 R3=0\n", 4));
  p.set("x", counting(64));
  p.expectRun();
  EXPECT_EQ(p.get<int64_t>("y"), (std::vector<int64_t>{100, 101, 102, 103})) << "loops of 0 and -1 trips are skipped";
}

TEST(CorsairControl, NopTakesItsClocksAndLoopsTheirs) {
  auto clocks = [](const std::string &body) {
    std::string streams = ".stream s\n  CONFIG_GM slot=0 kind=i64 unit=64\n  MOVE_DDR2GM slot=0\n  MOVE_GM2DDR slot=0 "
                          "saddr=0x0 daddr=0x8000\n" +
                          body + "  HALT\n";
    CorsairProgram p(program(streams, "    .launch quad=0 q0=s\n"));
    return p.report()["clocks"].get<int64_t>();
  };
  int64_t plain = clocks("");
  EXPECT_EQ(clocks("  NOP\n"), plain + 1);
  EXPECT_EQ(clocks("  NOP n=500\n"), plain + 500);
  EXPECT_EQ(clocks("  LOOP n=10\n  NOP\n  ENDLOOP\n"), plain + 50);
  EXPECT_EQ(clocks("  CONFIG_AC slot=1\n"), plain + 1);
}

// --- order -------------------------------------------------------------------

TEST(CorsairControl, TokensOrderQueuesAndOverlapThem) {
  std::string streams = R"(
.stream load
  CONFIG_GM slot=0 kind=i64 unit=32
  MARK label="load"
  LOOP n=2
    WAIT id=1
    MOVE_DDR2GM slot=0 saddr=0x0+L0*256 daddr=0x0
    SIGNAL id=0
  ENDLOOP
  HALT
.stream store
  CONFIG_GM slot=0 kind=i64 unit=32
  SIGNAL id=1
  MARK label="store"
  LOOP n=2
    WAIT id=0
    MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000+L0*256
    SIGNAL id=1
  ENDLOOP
  HALT
.stream idle
  NOP n=100
  HALT
)";
  CorsairProgram p(program(streams, "    .launch quad=0 q0=load q2=store q3=idle\n"));
  p.set("x", counting(64));
  p.expectRun();
  EXPECT_EQ(p.get<int64_t>("y"), counting(64));
}

TEST(CorsairControl, ADeadlockNamesWhoWaitsForWhat) {
  std::string streams = R"(
.stream a
  WAIT id=3 n=2
  HALT
.stream b
  SIGNAL id=3
  BARRIER scope=quad id=9 queues=0x7
  HALT
.stream c
  WAITR quad=1 id=5
  HALT
.stream d
  RECV quad=0 reg=2
  HALT
)";
  CorsairProgram p(program(streams, "    .launch quad=0 q0=a q1=b q2=c\n    .launch quad=1 q0=d\n"));
  p.expectFault({"deadlock:", "quad 0 queue 0 stream 'a' at 0 (WAIT id=3 n=2) waits for 2 of token 3, there are 1",
                 "quad 0 queue 1 stream 'b' at 1", "waits for barrier 9",
                 "quad 0 queue 2 stream 'c' at 0 (WAITR quad=1 id=5) waits for 1 of token 5 from quad 1",
                 "quad 1 queue 0 stream 'd' at 0 (RECV reg=2) waits for a message from quad 0",
                 "barrier 9 misses quad 0 queue 0 quad 0 queue 2"});
}

TEST(CorsairControl, BarriersOrderTheirScopeAndNoMore) {
  // The writer of quad 0 and the reader of another quad or queue meet at a barrier of some scope.
  auto run = [](const std::string &scope, const std::string &readerQuad, bool expectRace) {
    std::string streams = R"(
.stream writer
  CONFIG_GM slot=0 kind=i64 unit=64
  MOVE_DDR2GM slot=0
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x4000
  BARRIER scope=${scope} queues=0x3
  HALT
.stream reader
  CONFIG_GM slot=0 kind=i64 unit=64
  NOP n=30000
  BARRIER scope=${scope} queues=0x3
  MOVE_DDR2GM slot=0 saddr=0x4000 daddr=0x1000
  MOVE_GM2DDR slot=0 saddr=0x1000 daddr=0x8000
  HALT
.stream other
  BARRIER scope=${scope} queues=0x3
  HALT
)";
    std::string launches =
        readerQuad == "0" ? "    .launch quad=0 q0=writer q1=reader\n"
                          : "    .launch quad=0 q0=writer\n    .launch quad=" + readerQuad + " q0=other q1=reader\n";
    CorsairProgram p(program(fill(streams, {{"scope", scope}}), launches));
    p.set("x", counting(64));
    if (expectRace) {
      p.expectFault(
          {"race:",
           "reads DDR of chiplet 0 bytes 0x4000..0x4200; nothing orders this and quad 0 queue 0 stream 'writer' at 2",
           "which writes it"});
    } else {
      p.expectRun();
      EXPECT_EQ(p.get<int64_t>("y"), counting(64)) << scope;
    }
  };
  run("queues", "0", false);
  run("quad", "0", false);
  run("chiplet", "0", false);
  run("card", "0", false);
  run("chiplet", "3", false);
  run("card", "3", false);
  run("quad", "3", true);
  run("queues", "3", true);
}

TEST(CorsairControl, ABarrierOfTheCardReachesEveryChiplet) {
  std::string streams = R"(
.stream s
  NOP n=5
  LOOP n=0+R0
    NOP n=100
  ENDLOOP
  BARRIER scope=card queues=0x1
  MARK label="after"
  CONFIG_GM slot=0 kind=i64 unit=1
  CONFIG_SIMD slot=0 dk=i64
  EXEC_SIMD fn=fill slot=0 slices=0x1 index=7
  HALT
.stream out
  BARRIER scope=card queues=0x1
  CONFIG_SIMD slot=0 dk=i64 n3=64 d3=8
  CONFIG_GM slot=0 kind=i64 unit=64
  EXEC_SIMD fn=fill slot=0 slices=0x1 index=7
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000
  HALT
)";
  std::string launches = "    .launch quad=0 q0=out\n";
  for (int quad = 1; quad < 32; ++quad)
    launches += "    .launch quad=" + std::to_string(quad) + " q0=s R0=" + std::to_string(quad) + "\n";
  CorsairProgram p(program(streams, launches), {2, {}});
  nlohmann::json report = p.report();
  EXPECT_GE(taskNamed(report, "after")["first_clock"].get<int64_t>(), 5 + 31 * 104 + 20)
      << "nobody goes on before the slowest";
}

TEST(CorsairControl, ParticipantsMustAgreeOnABarrier) {
  std::string streams = ".stream a\n  BARRIER scope=card queues=0x1\n  HALT\n.stream b\n  BARRIER scope=card "
                        "queues=0x3\n  HALT\n.stream c\n  BARRIER queues=0x2\n  HALT\n";
  CorsairProgram p(program(streams, "    .launch quad=0 q0=a\n    .launch quad=1 q0=b\n"));
  p.expectFault({"barrier-mismatch", "came with queues"});
  CorsairProgram q(program(streams, "    .launch quad=0 q0=c\n"));
  q.expectFault({"barrier-mismatch", "queue 0 is not among queues 2"});
}

TEST(CorsairControl, ARingOfMessagesGoesRoundTheCard) {
  std::string streams = R"(
.function bump
  CPU_QUAD rd=3
  CPU_ADD rd=2 ra=2 rb=3
  CPU_RET
.stream first
  SEND quad=1 reg=2 n=1
  RECV quad=31 reg=2 n=1
  CONFIG_SIMD slot=0 dk=i64
  CONFIG_GM slot=0 kind=i64 unit=1
  EXEC_SIMD fn=fill slot=0 slices=0x1 index=0+R2
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000
  HALT
.stream next
  RECV quad=-1+Q reg=2 n=1
  EXEC_CPU fn=@bump
  SEND quad=0+R1 reg=2 n=1
  HALT
)";
  std::string launches = "    .launch quad=0 q0=first R2=1000\n";
  for (int quad = 1; quad < 32; ++quad)
    launches += "    .launch quad=" + std::to_string(quad) + " q0=next R1=" + std::to_string((quad + 1) % 32) + "\n";
  for (uint32_t threads : {1u, 2u}) {
    CorsairProgram p(program(streams, launches, 1), {threads, {"corsair.skew_seed=3"}});
    p.expectRun();
    EXPECT_EQ(p.get<int64_t>("y")[0], 1000 + 31 * 32 / 2);
  }
}

TEST(CorsairControl, MailboxesHoldOneMessage) {
  std::string streams = R"(
.stream sender
  SEND quad=1 reg=0 n=2
  SEND quad=1 reg=1 n=2
  HALT
.stream receiver
  NOP n=5000
  RECV quad=0 reg=4 n=2
  RECV quad=0 reg=6 n=2
  CONFIG_SIMD slot=0 dk=i64
  CONFIG_GM slot=0 kind=i64 unit=4
  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x0 index=0+R4
  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x8 index=0+R5
  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x10 index=0+R6
  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x18 index=0+R7
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000
  HALT
.stream wrong
  RECV quad=0 reg=4 n=3
  HALT
)";
  CorsairProgram p(
      program(streams, "    .launch quad=0 q0=sender R0=5 R1=6 R2=7\n    .launch quad=1 q0=receiver\n", 4));
  p.expectRun();
  EXPECT_EQ(p.get<int64_t>("y"), (std::vector<int64_t>{5, 6, 6, 7}));
  CorsairProgram q(program(streams, "    .launch quad=0 q0=sender\n    .launch quad=1 q0=wrong\n", 4));
  q.expectFault({"bad-operand", "quad 0 sent 2 registers, 3 are expected"});
  CorsairProgram full(program(
      streams, "    .launch quad=0 q0=sender\n    .launch quad=1 q1=receiver\n    .launch quad=2 q0=wrong\n", 4));
  full.expectFault({"deadlock", "quad 2 queue 0 stream 'wrong'", "waits for a message from quad 0"});
}

TEST(CorsairControl, RemoteTokensCarryDataToOtherChiplets) {
  std::string streams = R"(
.stream source
  CONFIG_GM slot=0 kind=i64 unit=64
  MOVE_DDR2GM slot=0
  MOVE_GM2GM slot=0 saddr=0x0 daddr=0x2000 quads=0x80000002
  SIGNALR quads=0x80000002 id=4
  WAITR quad=31 id=4
  WAITR quad=1 id=4
  MOVE_GM2DDR slot=0 saddr=0x3000 daddr=0x8000
  HALT
.stream back
  WAITR quad=0 id=4
  CONFIG_GM slot=0 kind=i64 unit=32
  MOVE_GM2GM slot=0 saddr=0x2000+R1 daddr=0x3000+R1 quads=0x1
  SIGNALR quads=0x1 id=4
  HALT
)";
  CorsairProgram p(
      program(streams,
              "    .launch quad=0 q0=source\n    .launch quad=1 q0=back R1=0\n    .launch quad=31 q0=back R1=256\n"),
      {2, {"corsair.skew_seed=11"}});
  p.set("x", counting(64));
  nlohmann::json report = p.report();
  EXPECT_EQ(p.get<int64_t>("y"), counting(64));
  EXPECT_GT(report["link_bytes"]["d2d"], 0);
  EXPECT_GT(report["link_bytes"]["noc"], 0);
  CorsairProgram nobody(program(".stream s\n  SIGNALR quads=0x2 id=0\n  HALT\n", "    .launch quad=0 q0=s\n"));
  nobody.expectFault({"bad-operand", "quad 1 does not take part"});
}

// --- RESET -------------------------------------------------------------------

TEST(CorsairControl, ResetMakesUnitsUndefinedAndKeepsDdr) {
  auto text = [](const std::string &reset) {
    return program(R"(
.stream s
  CONFIG_GM slot=0 kind=i64 unit=64
  MOVE_DDR2GM slot=0
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000
  CONFIG_GM slot=1 kind=i64 to=i64 unit=64
  MOVE_GM2SIMD slot=1 saddr=0x0 daddr=0x0
)" + reset + R"(
  CONFIG_SIMD slot=0 ak=i64 dk=i64 am=SIMD n3=64 a3=8 d3=8
  EXEC_SIMD fn=copy slot=0 slices=0x1 a=0x0 d=0x1000
  MOVE_DDR2GM slot=0 saddr=0x8000 daddr=0x2000
  HALT
)",
                   "    .launch quad=0 q0=s\n");
  };
  CorsairProgram kept(text("  RESET units=0x17\n")), cleared(text("  RESET\n")), gone(text("  RESET slices=0x2\n")),
      slots(text("  RESET units=0x80\n"));
  kept.expectRun();
  gone.expectRun();
  cleared.expectFault(
      {"poison-read", "reads SIMD of quad 0 slice 0 bytes 0x0..0x200, of which byte 0x0 was never written"});
  slots.expectFault({"missing-config", "MOVE_DDR2GM", "slot 0 of unit GM is not set in this queue"});
  CorsairProgram gm(text("  RESET units=0x20\n  MOVE_GM2SIMD slot=1\n"));
  gm.expectFault({"poison-read", "reads GM of quad 0"});
}

TEST(CorsairControl, TimesOfBusyQuadsThatWaitForOthersDoNotDependOnHostThreads) {
  // A ring in which every quad has a queue at work while another one waits for the neighbour, and both want
  // the same DMA channels and ports: who comes first must follow from times alone.
  std::string streams = R"(
.stream busy
  CONFIG_GM slot=0 kind=i64 unit=64
  LOOP n=40+Q
    MOVE_GM2GM slot=0 saddr=0x0 daddr=0x1000
    NOP n=7
  ENDLOOP
  BARRIER scope=card id=1 queues=0x5
  HALT
.stream ring
  CONFIG_GM slot=0 kind=i64 unit=64
  LOOP n=12
    SIGNALR quads=0+R1 id=0
    WAITR quad=0+R2 id=0
    MOVE_GM2GM slot=0 saddr=0x0 daddr=0x2000
  ENDLOOP
  BARRIER scope=chiplet id=2 queues=0x2
  HALT
.stream init
  CONFIG_SIMD slot=0 dk=i64 n3=64 d3=8
  EXEC_SIMD fn=fill slot=0 slices=0x1 index=0+Q
  BARRIER scope=quad id=0 queues=0x7
  BARRIER scope=card id=1 queues=0x5
  CONFIG_GM slot=0 kind=i64 unit=64
  LOOP n=0+R3
    MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000
  ENDLOOP
  HALT
)";
  for (const char *name : {"busy", "ring"})
    streams.replace(streams.find(std::string(".stream ") + name) + 9 + std::strlen(name) - 1, 1,
                    "\n  BARRIER scope=quad id=0 queues=0x7\n");
  std::string launches;
  const int quads[] = {0, 1, 2, 5, 9, 31};
  for (int i = 0; i < 6; ++i)
    launches += "    .launch quad=" + std::to_string(quads[i]) +
                " q0=busy q1=ring q2=init R1=" + std::to_string(int64_t(1) << quads[(i + 1) % 6]) +
                " R2=" + std::to_string(quads[(i + 5) % 6]) + " R3=" + std::to_string(i == 0) + "\n";
  for (uint32_t seed : {0u, 1u, 2u, 3u, 4u}) {
    std::vector<nlohmann::json> reports;
    for (uint32_t threads : {1u, 2u, 2u, 3u, 6u})
      reports.push_back(
          CorsairProgram(program(streams, launches), {threads, {"corsair.skew_seed=" + std::to_string(seed)}})
              .report());
    for (const auto &report : reports)
      ASSERT_EQ(report, reports[0]) << seed;
  }
}
