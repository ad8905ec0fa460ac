//===- CudaControlTest.cpp - where threads go, and what ends them ------------===//
//
// brx.idx, the pool of registers that setmaxnreg moves, launches that do not end.
//
//===----------------------------------------------------------------------===//

#include "CudaLaunch.h"

#include <ctime>

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

/// As LLVM writes a switch: thread t goes to the target of t modulo 5, and some of those lead on to others.
const std::string kSwitch = R"(
	rem.u32 %r1, %r0, 5;
	$L_brx_0: .branchtargets
		$a,
		$b,
		$c,
		$a,
		$e;
	brx.idx %r1, $L_brx_0;
$a:
	mov.b32 %r9, 10;
	bra.uni $done;
$b:
	mov.b32 %r9, 20;
	bra.uni $more;
$c:
	mov.b32 %r9, 30;
$more:
	add.s32 %r9, %r9, 1;
	bra.uni $done;
$e:
	st.global.b32 [%d30], %r1;
	ret;
$done:
	st.global.b32 [%d30], %r9;)";

TEST(CudaControl, LanesGoWhereTheirNumbersSay) {
  const uint32_t wanted[] = {10, 21, 31, 10, 4};
  for (uint64_t seed : kSeeds) {
    BlockTrial run;
    run.seed = seed;
    run.threads = 70;
    run.to.resize(70);
    ASSERT_EQ(run(blockKernel(kSwitch, 0, 0, 70)).fault, "");
    for (uint32_t i = 0; i < 70; ++i)
      EXPECT_EQ(run.to[i], wanted[i % 5]) << i;
  }
}

// Those that parted meet again behind the switch: what is for all threads of a warp finds all.
TEST(CudaControl, LanesMeetBehindAList) {
  BlockTrial run;
  run.threads = 32;
  run.to.resize(32);
  std::string body = R"(
	rem.u32 %r1, %r0, 3;
	setp.lt.u32 %p1, %r0, 30;
	{
	.reg .b32 %own;
	mov.b32 %own, %r1;
$list: .branchtargets $x, $y, $behind;
	@%p1 brx.idx.uni %own, $list;
	bra $behind;
$x:
	mov.b32 %r9, 7;
	bra $behind;
$y:
	mov.b32 %r9, 8;
	}
	mov.b32 %r9, 9;
$behind:
	mov.b32 %r2, 1;
	redux.sync.add.s32 %r3, %r2, -1;
	st.global.b32 [%d30], %r3;)";
  ASSERT_EQ(run(blockKernel(body, 0, 0, 32)).fault, "");
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.to[i], 32u) << i;
}

TEST(CudaControl, NumbersBehindAList) {
  BlockTrial run;
  LaunchOutcome outcome =
      run(blockKernel("$l: .branchtargets $x, $x;\n\tand.b32 %r1, %r0, 3;\n\tbrx.idx %r1, $l;\n$x:"));
  EXPECT_EQ(outcome.fault, "branch-index: target 2 of a list of 2");
  EXPECT_EQ(outcome.thread, 2u);
  outcome = run(blockKernel("$l: .branchtargets $x;\n\tbrx.idx %r1, $l;\n$x:"));
  EXPECT_EQ(outcome.fault, "uninit: it reads a register that nothing was put into");
}

TEST(CudaControl, ListsThatAreWrong) {
  const std::pair<const char *, const char *> cases[] = {
      {"brx.idx %r1, $nowhere;", "there is no list of branch targets '$nowhere'"},
      {"$l: .branchtargets $x;\n\tbrx.idx %r1, $l;", "there is no label '$x'"},
      {"$l: .branchtargets $l;\n\tbrx.idx %r1, $l;", "there is no label '$l'"},
      {"$l: .branchtargets ;", "stands where a name is wanted"},
      {"$l: .branchtargets $x\n\tbrx.idx %r1, $l;", "stands where ; is wanted"},
      {"$l: .branchtargets $x;\n$l:\n$x:", "label '$l' stands at two places"},
      {"$l: .branchtargets $x;\n$x:\n\tbrx.idx %d1, $l;", "'brx.idx' reads %d1, a register of 64 bits"},
      {"$l: .branchtargets $x;\n$x:\n\tbrx.idx.sync %r1, $l;", "'brx.idx.sync' is no instruction that is known here"},
      {"$l: .branchtargets $x;\n$x:\n\tbrx.idx %r1;", "'brx.idx' has 1 operands, not 2"},
      {"$l: .branchtargets $x;\n$x:\n\tbra $l;", "there is no label '$l'"},
      {"{\n$l: .branchtargets $x;\n$x:\n\t}\n\tbrx.idx %r1, $l;", "there is no list of branch targets '$l'"}};
  for (const auto &[body, words] : cases) {
    auto module = loadPtx(blockKernel("\t" + std::string(body)));
    ASSERT_FALSE(module) << body;
    EXPECT_NE(module.error().message.find(words), std::string::npos) << module.error().message;
    EXPECT_NE(module.error().message.find("kernel 'k', line "), std::string::npos) << module.error().message;
  }
}

/// Warpgroup 0 of two gives registers, the other takes them.
std::string registersOf(int given, int taken) {
  return "\tsetp.lt.u32 %p1, %r0, 128;\n\t@!%p1 bra $takes;\n\tsetmaxnreg.dec.sync.aligned.u32 " +
         std::to_string(given) + ";\n\tbra $done;\n$takes:\n\tsetmaxnreg.inc.sync.aligned.u32 " +
         std::to_string(taken) + ";\n$done:\n\tst.global.b32 [%d30], %r0;";
}

TEST(CudaControl, RegistersComeFromThePool) {
  // .minnctapersm 1 and 256 threads: 65536 / 256 = 256, at most 255, by eights 248.
  const std::pair<std::pair<int, int>, const char *> cases[] = {
      {{240, 256}, ""},
      {{248, 248}, ""},
      {{248, 256}, "regs: no thread of the block can go on: "},
      {{256, 256}, "regs: it lowers the registers of a thread to 256, and they are 248"},
      {{24, 240}, "regs: it raises the registers of a thread to 240, and they are 248"}};
  for (const auto &[counts, words] : cases)
    for (uint64_t seed : kSeeds) {
      BlockTrial run;
      run.seed = seed;
      run.threads = 256;
      std::string fault = run(blockKernel(registersOf(counts.first, counts.second), 0, 0, 256)).fault;
      EXPECT_EQ(fault.substr(0, std::string(words).size()), words) << fault;
      EXPECT_EQ(fault.empty(), std::string(words).empty()) << fault;
    }
  std::string text = blockKernel(registersOf(240, 256), 0, 0, 256);
  text.replace(text.find(".minnctapersm 1"), 15, "               ");
  auto module = loadPtx(text);
  ASSERT_FALSE(module);
  EXPECT_NE(module.error().message.find("setmaxnreg does nothing in a kernel that has neither .maxnreg nor"),
            std::string::npos)
      << module.error().message;
}

// By the bound that launches have where nobody says another, whatever the threads do meanwhile.
TEST(CudaControl, EndlessLaunchesEndInSeconds) {
  const std::string barrier = "\t.shared .align 8 .b8 bar[8];\n\tsetp.ne.s32 %p1, %r0, 0;\n\t@%p1 bra $ready;\n"
                              "\tmbarrier.init.shared.b64 [bar], 1;\n\tfence.proxy.async;\n$ready:\n\tbar.sync 0;\n";
  const std::string copy =
      barrier +
      "\tmov.b32 %r2, 0;\n\t@%p1 bra $wait;\n$again:\n\tmov.b64 %d5, map0;\n"
      "\tmbarrier.arrive.expect_tx.shared.b64 _, [bar], 8192;\n"
      "\tcp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room], [%d5, "
      "{0, 0}], [bar];\n$wait0:\n\tmbarrier.try_wait.parity.shared.b64 %p2, [bar], %r2;\n\t@!%p2 bra $wait0;\n"
      "\txor.b32 %r2, %r2, 1;\n\tbra $again;\n$wait:\n\tbra $wait;";
  struct Case {
    const char *what;
    std::string body;
    uint32_t threads;
  };
  const Case cases[] = {
      {"a warp alone", "$again:\n\tbra $again;", 32},
      {"a block's", "$again:\n\tadd.s32 %r1, %r0, 1;\n\tst.global.b32 [%d30], %r1;\n\tbra $again;", 256},
      {"of one thread each", "\tsetp.ne.s32 %p1, %r0, 0;\n$again:\n\t@!%p1 bra $again;", 128},
      {"at a barrier", "$again:\n\tbar.sync 0;\n\tbra $again;", 256},
      {"with an mbarrier", barrier + "$again:\n\tmbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n\tbra $again;",
       256},
      {"with copies", copy, 128},
  };
  for (const Case &each : cases) {
    BlockTrial run;
    run.threads = each.threads;
    run.to.resize(256);
    run.shared = 16384;
    run.from = {std::vector<uint32_t>(2048, 1)};
    run.maps = {matrixMap(1, MapType::U32, 32, 64, 32, 64, 128)};
    run.mostSteps = timesCount ? kMostSteps : kMostSteps / 64;
    std::clock_t start = std::clock();
    std::string fault = run(blockKernel(each.body, 1, 1, static_cast<int>(each.threads))).fault;
    double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_NE(fault.find("endless: "), std::string::npos) << each.what << ": " << fault;
    EXPECT_LT(seconds, 10) << each.what;
    std::printf("%s: %.1f s\n", each.what, seconds);
  }
}

// What counts is the time between the ends of two warps: a launch of many may do more in all.
TEST(CudaControl, LaunchesWhoseWarpsEndMayBeLong) {
  BlockTrial run;
  run.blocks = 100;
  run.threads = 32;
  run.to.resize(32);
  run.filled = true;
  run.checks = false;
  run.mostSteps = 1000;
  LaunchOutcome outcome =
      run(blockKernel("\tmov.b32 %r1, 0;\n$again:\n\tadd.s32 %r1, %r1, 1;\n\tsetp.lt.u32 %p1, %r1, 200;\n"
                      "\t@%p1 bra $again;\n\tst.global.b32 [%d30], %r1;",
                      0, 0, 32));
  EXPECT_EQ(outcome.fault, "");
  EXPECT_GT(outcome.steps, 50000u);
}

} // namespace
