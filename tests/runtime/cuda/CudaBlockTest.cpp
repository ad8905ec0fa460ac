//===- CudaBlockTest.cpp - blocks whose threads talk, on the simulator --------===//
//
// What warps tell each other is worked out here from the PTX manual's definitions, in another way; each check is met by
// a kernel that breaks its rule and by none that keeps it.
//
//===----------------------------------------------------------------------===//

#include "CudaLaunch.h"
#include "runtime/devices/cuda/sim/SimDevice.h"

#include <algorithm>

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

const std::string kStore = "\n\tst.global.b32 [%d30], %r9;";

/// What `body` leaves in %r9, thread by thread; %r1 holds a number of each thread's own.
template <typename Wanted> void expectWarp(const std::string &body, Wanted wanted) {
  BlockTrial run;
  run.threads = 64;
  run.to.resize(64);
  const std::string own = "\tmul.lo.s32 %r1, %r0, 2654435761;\n\tand.b32 %r2, %r0, 31;\n";
  LaunchOutcome outcome = run(blockKernel(own + body + kStore, 0, 0, 64));
  ASSERT_EQ(outcome.fault, "") << body;
  for (uint32_t i = 0; i < 64; ++i) {
    auto ofLane = [&](uint32_t lane) { return (i / 32 * 32 + lane) * 2654435761u; };
    EXPECT_EQ(run.to[i], wanted(i % 32, ofLane)) << body << " thread " << i;
  }
}

TEST(CudaBlock, Shuffles) {
  using U = uint32_t;
  expectWarp("\tshfl.sync.idx.b32 %r9, %r1, 5, 31, -1;", [](U, auto of) { return of(5); });
  expectWarp("\tshfl.sync.bfly.b32 %r9|%p1, %r1, 3, 31, -1;", [](U lane, auto of) { return of(lane ^ 3); });
  expectWarp("\tshfl.sync.up.b32 %r9, %r1, 4, 0, -1;", [](U lane, auto of) { return of(lane < 4 ? lane : lane - 4); });
  expectWarp("\tshfl.sync.down.b32 %r9, %r1, 7, 31, -1;",
             [](U lane, auto of) { return of(lane + 7 > 31 ? lane : lane + 7); });
  // Segments of 8 lanes: c = (32 - 8) << 8 | 7 for a clamp at their ends.
  expectWarp("\tshfl.sync.down.b32 %r9|%p1, %r1, 3, 6151, -1;\n\t@!%p1 mov.b32 %r9, 0;",
             [](U lane, auto of) { return lane % 8 + 3 > 7 ? 0 : of(lane + 3); });
  expectWarp("\tshfl.sync.idx.b32 %r9, %r1, 2, 6175, -1;", [](U lane, auto of) { return of(lane / 8 * 8 + 2); });
}

TEST(CudaBlock, VotesAndMatches) {
  using U = uint32_t;
  const std::string third = "\trem.u32 %r3, %r2, 3;\n\tsetp.eq.s32 %p1, %r3, 1;\n";
  auto ballot = [] {
    U bits = 0;
    for (U lane = 1; lane < 32; lane += 3)
      bits |= 1u << lane;
    return bits;
  }();
  expectWarp(third + "\tvote.sync.ballot.b32 %r9, %p1, -1;", [&](U, auto) { return ballot; });
  expectWarp(third + "\tvote.sync.any.pred %p2, %p1, -1;\n\tvote.sync.all.pred %p3, %p1, -1;\n"
                     "\tvote.sync.uni.pred %p4, %p1, -1;\n\tselp.b32 %r9, 1, 0, %p2;\n\tselp.b32 %r4, 2, 0, %p3;\n"
                     "\tselp.b32 %r5, 4, 0, %p4;\n\tor.b32 %r9, %r9, %r4;\n\tor.b32 %r9, %r9, %r5;",
             [](U, auto) { return 1u; });
  expectWarp("\tsetp.lt.u32 %p1, %r2, 40;\n\tvote.sync.all.pred %p3, %p1, -1;\n\tselp.b32 %r9, 2, 0, %p3;",
             [](U, auto) { return 2u; });
  expectWarp(third + "\tmatch.any.sync.b32 %r9, %r3, -1;", [](U lane, auto) {
    U same = 0;
    for (U other = lane % 3; other < 32; other += 3)
      same |= 1u << other;
    return same;
  });
  expectWarp("\tmatch.all.sync.b32 %r9|%p1, %r2, -1;", [](U, auto) { return 0u; });
  expectWarp("\tredux.sync.add.s32 %r9, %r2, -1;", [](U, auto) { return 31u * 16; });
  expectWarp("\tredux.sync.max.u32 %r9, %r2, 65535;", [](U, auto) { return 15u; }); // the others ask as well
  expectWarp("\telect.sync %r3|%p1, -1;\n\tselp.b32 %r9, 100, %r3, %p1;",
             [](U lane, auto) { return lane ? 0u : 100u; });
  // Half of a warp: only those that are there.
  expectWarp("\tmov.b32 %r9, 7;\n\tsetp.ge.u32 %p1, %r2, 16;\n\t@%p1 bra $out;\n\tactivemask.b32 %r9;\n"
             "\tshfl.sync.bfly.b32 %r4, %r1, 1, 31, 65535;\n\tadd.s32 %r9, %r9, %r4;\n$out:",
             [](U lane, auto of) { return lane < 16 ? 65535 + of(lane ^ 1) : 7; });
}

/// Sums of 128 numbers, by halves in shared memory; a barrier a step.
std::string sumKernel(const std::string &barrier) {
  std::string body = R"(
	mov.b32 %r20, room;
	mad.lo.s32 %r21, %r0, 4, %r20;
	mul.lo.s32 %r1, %r0, %r0;
	st.shared.b32 [%r21], %r1;
	mov.b32 %r2, 64;
$next:
	)" + barrier +
                     R"(
	setp.ge.u32 %p1, %r0, %r2;
	@%p1 bra $skip;
	mad.lo.s32 %r22, %r2, 4, %r21;
	ld.shared.b32 %r3, [%r22];
	ld.shared.b32 %r4, [%r21];
	add.s32 %r4, %r3, %r4;
	st.shared.b32 [%r21], %r4;
$skip:
	shr.u32 %r2, %r2, 1;
	setp.ne.s32 %p2, %r2, 0;
	@%p2 bra $next;
	bar.sync 0;
	mov.b64 %d5, room;
	cvta.shared.u64 %d6, %d5;
	ld.b32 %r9, [%d6];)";
  return blockKernel(body + kStore);
}

TEST(CudaBlock, SharedMemoryAndBarriers) {
  const uint32_t wanted = 127u * 128 * 255 / 6; // of squares
  for (const char *barrier : {"bar.sync 0;", "barrier.sync 3, 128;", "barrier.cta.sync.aligned 15, 128;"})
    for (uint64_t seed : kSeeds) {
      BlockTrial run;
      run.seed = seed;
      run.to.resize(128);
      run.shared = 512;
      LaunchOutcome outcome = run(sumKernel(barrier));
      ASSERT_EQ(outcome.fault, "") << barrier;
      EXPECT_EQ(std::count(run.to.begin(), run.to.end(), wanted), 128) << barrier;
    }
}

/// Warp 0 gives each of 6 numbers through two slots to warps 1 to 3, by mbarriers full and empty.
std::string pipeKernel() {
  return blockKernel(R"(
	.shared .align 8 .b8 bars[32];
	mov.b64 %d20, bars;
	cvt.u32.u64 %r20, %d20;
	shr.u32 %r1, %r0, 5;
	and.b32 %r2, %r0, 31;
	setp.ne.s32 %p1, %r0, 0;
	@%p1 bra $made;
	mbarrier.init.shared.b64 [%r20], 1;
	mbarrier.init.shared.b64 [%r20+8], 1;
	mbarrier.init.shared::cta.b64 [bars+16], 96;
	mbarrier.init.shared::cta.b64 [bars+24], 96;
$made:
	bar.sync 0;
	mov.b32 %r3, 0;
	mov.b32 %r9, 0;
	setp.ne.s32 %p2, %r1, 0;
$loop:
	and.b32 %r4, %r3, 1;
	shr.u32 %r5, %r3, 1;
	and.b32 %r5, %r5, 1;
	mad.lo.s32 %r6, %r4, 8, %r20;
	mov.b32 %r10, room;
	mad.lo.s32 %r10, %r4, 128, %r10;
	mad.lo.s32 %r10, %r2, 4, %r10;
	@%p2 bra $takes;
	xor.b32 %r7, %r5, 1;
$empty:
	mbarrier.try_wait.parity.shared.b64 %p3, [%r6+16], %r7;
	@!%p3 bra $empty;
	mad.lo.s32 %r11, %r3, 1000, %r2;
	st.shared.b32 [%r10], %r11;
	bar.warp.sync -1;
	setp.eq.s32 %p4, %r2, 0;
	@%p4 mbarrier.arrive.shared.b64 _, [%r6];
	bra.uni $on;
$takes:
	mbarrier.try_wait.parity.shared.b64 %p3, [%r6], %r5, 1000;
	@!%p3 bra $takes;
	ld.shared.b32 %r11, [%r10];
	add.s32 %r9, %r9, %r11;
	mbarrier.arrive.release.cta.shared::cta.b64 %d7, [%r6+16];
$on:
	add.s32 %r3, %r3, 1;
	setp.lt.u32 %p5, %r3, 6;
	@%p5 bra $loop;)" +
                     kStore);
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

LaunchOutcome runPipe(const std::string &text, uint64_t seed, bool checks = true) {
  BlockTrial run;
  run.seed = seed;
  run.to.resize(128);
  run.shared = 256;
  run.checks = checks;
  LaunchOutcome outcome = run(text);
  for (uint32_t i = 32; outcome.fault.empty() && i < 128; ++i)
    EXPECT_EQ(run.to[i], 15000 + 6 * (i % 32)) << seed;
  return outcome;
}

TEST(CudaBlock, PipelinesByMbarriers) {
  for (uint64_t seed : kSeeds)
    EXPECT_EQ(runPipe(pipeKernel(), seed).fault, "");
}

/// With a fault planted, every seed has to end in one of these words, or where it `needsLuck` at least one.
void expectPlanted(const std::string &text, const std::vector<std::string> &words, bool needsLuck = false) {
  int found = 0;
  for (uint64_t seed : kSeeds) {
    LaunchOutcome outcome = runPipe(text, seed);
    bool isNamed = std::any_of(words.begin(), words.end(),
                               [&](const std::string &each) { return outcome.fault.find(each) != std::string::npos; });
    EXPECT_TRUE(isNamed || needsLuck) << "seed " << seed << " gave '" << outcome.fault << "'";
    EXPECT_TRUE(!isNamed || outcome.line > 10) << outcome.line;
    found += isNamed;
  }
  EXPECT_GT(found, 0) << words[0];
}

TEST(CudaBlock, PlantedFaults) {
  const std::string good = pipeKernel(), reads = "ld.shared.b32 %r11, [%r10];",
                    gives = "mbarrier.arrive.release.cta.shared::cta.b64 %d7, [%r6+16];";
  // The slot is given back, and then it is read.
  expectPlanted(replaced(replaced(good, gives, ""), reads, gives + "\n\t" + reads), {"smem-race"});
  // One thread says for all that they have read it.
  expectPlanted(replaced(replaced(good, "[bars+16], 96", "[bars+16], 1"), "[bars+24], 96", "[bars+24], 1"),
                {"mbar-overrun", "smem-race", "deadlock"});
  // The other parity; no second look where the first one came too early.
  expectPlanted(replaced(good, "[%r6], %r5, 1000", "[%r6], 1, 1000"), {"smem-race", "smem-uninit", "deadlock"});
  expectPlanted(replaced(good, "@!%p3 bra $takes;", ""), {"smem-race", "smem-uninit"}, /*needsLuck=*/true);
  expectPlanted(replaced(good, "bar.sync 0;", ""), {"mbar-init: warp 0 made the mbarrier", "there is no mbarrier"});
  expectPlanted(replaced(good, "@%p4 mbarrier.arrive.shared.b64 _, [%r6];", ""),
                {"deadlock: no thread of the block can go on: warp"});
  expectPlanted(replaced(good, reads, "ld.shared.b32 %r11, [%r6];"),
                {"mbar-overwrite: it reads byte 1024 of shared memory, which is an mbarrier's"});
  expectPlanted(replaced(good, "[bars+24], 96", "[bars+24], 97"), {"1 of 97 arrivals and 0 bytes are missing"});
  expectPlanted(replaced(good, "[%r20+8], 1", "[%r20+4], 1"),
                {"mbar-init: an mbarrier of 8 bytes cannot be at byte 1028"});
  expectPlanted(replaced(good, "bar.sync 0;", "bar.sync 0;\n\tld.shared.b32 %r9, [room+252];"),
                {"smem-uninit: it reads byte 2300 of shared memory, which nobody wrote"});
  expectPlanted(replaced(good, "bar.sync 0;", "bar.sync 0;\n\tld.shared.b32 %r9, [room+256];"),
                {"bounds: it accesses 4 bytes at byte 2304 of shared memory"});
}

TEST(CudaBlock, BarriersThatAreNotKept) {
  auto fault = [](const std::string &text) {
    BlockTrial run;
    run.to.resize(128);
    run.shared = 512;
    run.filled = true;
    return run(text).fault;
  };
  auto has = [&](const std::string &text, const std::string &words) {
    std::string got = fault(text);
    EXPECT_NE(got.find(words), std::string::npos) << "gave '" << got << "'";
  };
  const std::string some = "\tsetp.lt.u32 %p1, %r0, 40;\n";
  has(sumKernel("bar.warp.sync -1;"), "smem-race");
  has(blockKernel(some + "\t@%p1 bra $a;\n\tbra $b;\n$a:\n\tbar.sync 0;\n$b:\n\tbar.sync 0;"), "diverged");
  has(blockKernel(some + "\t@%p1 bar.sync 0;"), "diverged: it is for all threads of the warp, and its guard holds for");
  has(blockKernel("\tsetp.lt.u32 %p1, %r0, 64;\n\t@%p1 bar.sync 0;"),
      "deadlock: no thread of the block can go on: warp 0 and 1 more wait at line 19 at barrier 0, where 64 of 128");
  has(blockKernel("\tshr.u32 %r1, %r0, 5;\n\tmad.lo.s32 %r1, %r1, 32, 32;\n\tbar.sync 1, %r1;"), "bar-count");
  has(blockKernel("\tbar.sync 16;"), "bar-count: there is no barrier 16");
  has(blockKernel("\tbar.sync 1, 40;"), "bar-count: a barrier cannot be of 40 threads");
  has(blockKernel("\tand.b32 %r1, %r0, 1;\n\tbar.sync %r1, 128;"), "diverged: threads of a warp come to a barrier");
  has(blockKernel("\tcvta.to.shared.u64 %d9, %d0;"), "bounds: it takes an address that is none of shared memory");
  has(blockKernel("\tst.shared.b32 [%r0], %r0;"), "of shared memory, and not all of them are there");
  has(blockKernel("\tmov.b64 %d9, room;\n\tst.global.b32 [%d9], %r0;"), "bounds: it writes 4 bytes outside");
  has(blockKernel("\tshfl.sync.idx.b32 %r9, %r0, 20, 31, 255;"), "diverged: it reads of lane 20, which takes no part");
}

TEST(CudaBlock, MoreSharedMemoryThanThereIs) {
  auto load = [](uint32_t shared) -> std::string {
    const std::string text = R"(// {"launch_table": 2, "level": "sm_90a", "kernels": [{"name": "k", "nodes": [],
//   "dims": ["n"], "block": 32, "grid": 1, "item": "block", "shared": )" +
                             std::to_string(shared) + R"(, "contract": [14, 1, 1, 1, 0, 0, 1, 0, 0, 4, 0, 4, 1, 0]}]}
.version 8.0
.target sm_90a
.address_size 64
.visible .shared .align 16 .b8 own[24];
.extern .shared .align 1024 .b8 room[];
.visible .entry k(.param .u64 to, .param .u64 n, .param .u64 s, .param .u64 b, .param .u64 r, .param .u64 status)
.reqntid 32
{
	.reg .b64 %d<2>;
	mov.b64 %d0, own;
	mov.b64 %d1, room;
	ret;
})";
    auto loaded = dmxrt::cudaSimDevice().inspect({reinterpret_cast<const std::byte *>(text.data()), text.size()});
    return loaded ? "" : loaded.error().message;
  };
  EXPECT_EQ(load(231424), ""); // with what lies before the multiple of 1024
  EXPECT_EQ(load(231440), "the kernels cannot be used: smem-budget: kernel 'k' has 232464 bytes of shared memory, and "
                          "a block has 232448");
}

// A short text that asks for much: variables of the module, registers and local memory of a block's warps.
TEST(CudaBlock, MoreMemoryThanTheSimulatorHolds) {
  auto load = [](const std::string &variables, const std::string &body, int threads) -> std::string {
    const std::string text = R"(// {"launch_table": 2, "level": "sm_90a", "kernels": [{"name": "k", "nodes": [],
//   "dims": [], "block": )" +
                             std::to_string(threads) +
                             R"(, "grid": 1, "item": "block", "contract": [10, 1, 1, 0, 0, 0, 1, 0, 0, 0, 4]}]}
.version 8.0
.target sm_90a
.address_size 64
)" + variables + R"(
.visible .entry k(.param .u64 to, .param .u64 s, .param .u64 b, .param .u64 r, .param .u64 status)
.reqntid )" + std::to_string(threads) +
                             "\n{\n" + body + "\tret;\n}\n";
    auto loaded = dmxrt::cudaSimDevice().inspect({reinterpret_cast<const std::byte *>(text.data()), text.size()});
    return loaded ? "" : loaded.error().message;
  };
  const std::string half = ".global .align 8 .b64 a[4194304];\n";
  EXPECT_EQ(load(half, "", 32), "");
  EXPECT_NE(load(half + ".global .align 8 .b64 b[4194304];\n.global .b8 c[1];\n", "", 32)
                .find("there are variables of more than 67108864 bytes"),
            std::string::npos);
  EXPECT_NE(load(".global .b64 a[1073741824];\n", "", 32).find("wanted"), std::string::npos);
  // 500,000 registers of 256 bytes each, in one warp and in the 32 of a block whose threads wait for each other.
  const std::string many = "\t.reg .b32 %r<500000>;\n";
  EXPECT_EQ(load("", many, 1024), "");
  EXPECT_NE(load("", many + "\tbar.sync 0;\n", 1024).find("of registers and local memory in 32 warps"),
            std::string::npos);
  const std::string local = "\t.local .align 8 .b8 own[1048576];\n";
  EXPECT_EQ(load("", local, 1024), "");
  EXPECT_NE(load("", local + many + "\tbar.sync 0;\n", 1024).find("and this simulator holds 1073741824"),
            std::string::npos);
}

TEST(CudaBlock, RefusesWhatItDoesNotKnow) {
  for (const char *body : {"bar.red.popc.u32 %r1, 0, %p1;", "mbarrier.arrive_drop.shared.b64 _, [room];",
                           "mbarrier.arrive.noComplete.shared.b64 %d1, [room], 1;", "fence.proxy.tensormap;",
                           "setmaxnreg.inc.sync.aligned.u32 20;", "shfl.up.b32 %r1, %r0, 1, 0;", "cp.async.wait_all;",
                           "wgmma.wait_group.sync.aligned 8;", "cp.async.bulk.wait_group;", "barrier.cluster.arrive;",
                           "atom.shared.add.u32 %r1, [room], 1;", "st.volatile.shared.b32 [room], %r1;"}) {
    auto module = loadPtx(blockKernel("\t" + std::string(body)));
    ASSERT_FALSE(module) << body;
    EXPECT_NE(module.error().message.find("kernel 'k', line 18: "), std::string::npos) << module.error().message;
  }
}

} // namespace
