//===- CorsairCpuTest.cpp - functions of the quads' CPUs ------------------===//

#include "CorsairHarness.h"

using namespace dmxtest;

TEST(CorsairControl, TheCpuComputesLikeTheTable) {
  std::string streams = R"(
.function all
  CPU_LI rd=0 imm=-7
  CPU_LI rd=1 imm=2
  CPU_DIV rd=2 ra=0 rb=1
  CPU_MOD rd=3 ra=0 rb=1
  CPU_MUL rd=4 ra=0 rb=1
  CPU_SHL rd=5 ra=1 rb=1
  CPU_SHR rd=6 ra=0 rb=1
  CPU_MIN rd=7 ra=0 rb=1
  CPU_SLT rd=8 ra=0 rb=1
  CPU_LI rd=9 imm=0
  CPU_ADD rd=9 ra=9 rb=1
  CPU_ADDI rd=1 ra=1 imm=-1
  CPU_BNZ ra=1 to=10
  CPU_LI rd=10 imm=4096
  CPU_ST rd=2 ra=10 imm=0
  CPU_ST rd=3 ra=10 imm=8
  CPU_ST rd=4 ra=10 imm=16
  CPU_ST rd=5 ra=10 imm=24
  CPU_ST rd=6 ra=10 imm=32
  CPU_ST rd=7 ra=10 imm=40
  CPU_ST rd=8 ra=10 imm=48
  CPU_ST rd=9 ra=10 imm=56
  CPU_LD rd=11 ra=10 imm=16
  CPU_ST rd=11 ra=10 imm=64
  CPU_RET
.stream s
  EXEC_CPU fn=@all
  CONFIG_GM slot=0 kind=i64 unit=9
  MOVE_GM2DDR slot=0 saddr=0x1000 daddr=0x8000
  HALT
)";
  CorsairProgram p(program(streams, "    .launch quad=0 q0=s\n", 9));
  p.expectRun();
  EXPECT_EQ(p.get<int64_t>("y"), (std::vector<int64_t>{-4, 1, -14, 8, -2, -7, 1, 3, -14}));
}

TEST(CorsairControl, CpuFaultsAreNamed) {
  auto fault = [](const std::string &body, const std::vector<std::string> &parts) {
    CorsairProgram p(program(".function f\n" + body + "  CPU_RET\n.stream s\n  EXEC_CPU fn=@f\n  HALT\n",
                             "    .launch quad=0 q0=s\n"));
    p.expectFault(parts);
  };
  fault("  CPU_DIV rd=0 ra=1 rb=2\n", {"cpu-fault", "function 'f' at 0 (CPU_DIV): division by zero"});
  fault("  CPU_BR to=0\n", {"cpu-fault", "more than 1000000 instructions"});
  fault("  CPU_LD rd=0 ra=1 imm=0x200\n", {"poison-read", "EXEC_CPU"});
  fault("  CPU_LD rd=0 ra=1 imm=-8\n", {"capacity", "address -8"});
  fault("  CPU_LD rd=0 ra=1 imm=4\n", {"misaligned"});
}

TEST(CorsairControl, RegistersRaceLikeMemory) {
  std::string streams = R"(
.function set
  CPU_LI rd=5 imm=3
  CPU_RET
.stream writer
  EXEC_CPU fn=@set
  SIGNAL id=0
  HALT
.stream reader
${wait}
  LOOP n=0+R5
    NOP
  ENDLOOP
  CONFIG_GM slot=0 kind=i64 unit=64
  MOVE_DDR2GM slot=0
  MOVE_GM2DDR slot=0 saddr=0x0 daddr=0x8000
  HALT
)";
  CorsairProgram good(program(fill(streams, {{"wait", "  WAIT id=0"}}), "    .launch quad=0 q0=writer q1=reader\n"));
  good.expectRun();
  CorsairProgram bad(program(fill(streams, {{"wait", "  NOP n=1000"}}), "    .launch quad=0 q0=writer q1=reader\n"));
  bad.expectFault({"race", "reads register R5", "quad 0 queue 0 stream 'writer' at 0 (EXEC_CPU"});
}
