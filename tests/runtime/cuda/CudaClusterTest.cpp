//===- CudaClusterTest.cpp - blocks of a cluster, on the simulator ------------===//
//
// Sums that blocks of a cluster tell each other, counted by hand; each rule of clusters is met by a kernel that breaks
// it and by none that keeps it.
//
//===----------------------------------------------------------------------===//

#include "CudaLaunch.h"

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

std::string without(std::string text, const std::string &what, const std::string &instead = "") {
  size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

/// Each block of a cluster of four tells all of them its number in the grid plus one; every thread stores their sum.
std::string tellKernel() {
  const std::string meet = "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n";
  std::string text = blockKernel("\t// begin\n" + meet + R"(
	mov.u32 %r1, %cluster_ctarank;
	mov.u32 %r2, %ctaid.x;
	add.s32 %r3, %r2, 1;
	mov.b64 %d5, room;
	shl.b32 %r4, %r1, 2;
	cvt.u64.u32 %d6, %r4;
	add.s64 %d5, %d5, %d6;
	setp.ge.u32 %p1, %r0, 4;
	@%p1 bra $told;
	mapa.shared::cluster.u64 %d7, %d5, %r0;
	st.shared::cluster.b32 [%d7], %r3;
$told:
)" + "\t// told\n" + meet +
                                     R"(
	mov.b64 %d8, room;
	ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%d8];
	add.s32 %r9, %r10, %r11;
	add.s32 %r9, %r9, %r12;
	add.s32 %r9, %r9, %r13;
	mov.u32 %r5, %ntid.x;
	mul.wide.u32 %d9, %r2, %r5;
	shl.b64 %d9, %d9, 2;
	add.s64 %d30, %d30, %d9;
	st.global.b32 [%d30], %r9;)",
                                 0, 0, 64);
  return without(text, ".minnctapersm 1", ".explicitcluster\n.reqnctapercluster 4, 1, 1");
}

BlockTrial trialOf(uint64_t seed) {
  BlockTrial run;
  run.threads = 64;
  run.blocks = 12;
  run.seed = seed;
  run.shared = 64;
  run.to.resize(12 * 64);
  return run;
}

TEST(CudaCluster, BlocksTellEachOther) {
  for (uint64_t seed : kSeeds) {
    BlockTrial run = trialOf(seed);
    ASSERT_EQ(run(tellKernel()).fault, "");
    for (uint32_t i = 0; i < run.to.size(); ++i) {
      uint32_t first = i / 64 / 4 * 4; // 1 + 2 + 3 + 4, then 5 + .., then 9 + ..
      EXPECT_EQ(run.to[i], 4 * first + 10) << i;
    }
  }
}

/// The clock of a cluster is that of any seed, with a kernel that waits twice for the others.
TEST(CudaCluster, TheClockWaitsForOthers) {
  double clocks = 0;
  for (uint64_t seed : kSeeds) {
    BlockTrial run = trialOf(seed);
    run.timed = true;
    ASSERT_EQ(run(tellKernel()).fault, "");
    EXPECT_TRUE(clocks == 0 || clocks == run.figures.clocks) << seed;
    clocks = run.figures.clocks;
    EXPECT_EQ(run.figures.counts.blocks, 12u);
    EXPECT_EQ(run.figures.counts.sectorsWritten, 12u * 64 * 4 / 32);
  }
  BlockTrial run = trialOf(0);
  run.timed = true;
  run.gpu.clock.clusterLatency += 1000;
  ASSERT_EQ(run(tellKernel()).fault, "");
  EXPECT_NEAR(run.figures.clocks - clocks, 2000, 1);
  // Of three clusters one is run, and the figures are those of all.
  BlockTrial some = trialOf(0);
  some.timed = true;
  some.mostBlocks = 3;
  some.filled = true;
  ASSERT_EQ(some(tellKernel()).fault, "");
  EXPECT_EQ(some.figures.counts.sectorsWritten, 12u * 64 * 4 / 32);
}

TEST(CudaCluster, BrokenRulesAreNamed) {
  const std::string good = tellKernel(), meet = "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n";
  struct Case {
    std::string text, words;
  };
  const Case cases[] = {
      {without(good, "\t// begin\n" + meet), "cluster-start: it accesses shared memory of block"},
      {without(good, "\t// told\n" + meet), "smem-"},
      {without(good, "\t// told\n" + meet,
               "\tbarrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.aligned;\n"),
       "smem-race"},
      {without(good, "\t// told\n" + meet, "\tbarrier.cluster.arrive.aligned;\n"), "smem-"},
      {without(good, "\t// told\n" + meet, "\tbarrier.cluster.wait.aligned;\n"),
       "bar-count: it waits at the cluster's"},
      {without(good, "\t// told\n" + meet, "\tbarrier.cluster.arrive.aligned;\n" + meet),
       "bar-count: it arrives at the cluster's barrier again"},
      {without(good, "\t// told\n", "\tsetp.eq.s32 %p2, %r1, 2;\n\t@%p2 bra $told;\n"), "endless: "},
      {without(good, "mapa.shared::cluster.u64 %d7, %d5, %r0;",
               "add.s32 %r6, %r0, 3;\n\tmapa.shared::cluster.u64 %d7, %d5, %r6;"),
       "bounds: it accesses 4 bytes at address"},
      {without(good, "[%d7], %r3", "[%d7+64], %r3"), "bounds: it accesses 4 bytes at address"},
      {good, ""},
      {without(good, ".reqnctapercluster 4, 1, 1", ""), "the kernel has no .reqnctapercluster of several blocks"},
      {without(good, ".reqnctapercluster 4, 1, 1", ".reqnctapercluster 16, 1, 1"), "a cluster has at most 8 blocks"},
  };
  for (const Case &each : cases) {
    std::string said;
    for (uint64_t seed : kSeeds) {
      BlockTrial run = trialOf(seed);
      run.mostSteps = 20000;
      LaunchOutcome outcome = run(each.text);
      said = said.empty() ? outcome.fault : said;
    }
    EXPECT_EQ(said.empty(), each.words.empty()) << each.words;
    EXPECT_NE(said.find(each.words), std::string::npos) << each.words << " but " << said;
  }
}

/// A block that reads another one's memory and does not let it wait: the other may be gone.
TEST(CudaCluster, BlocksStayWhileOthersReadThem) {
  const std::string good = tellKernel();
  const std::string reads = without(good, "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%d8];", R"(
	add.s32 %r7, %r1, 1;
	and.b32 %r7, %r7, 3;
	mapa.shared::cluster.u64 %d8, %d8, %r7;
	ld.shared::cluster.v4.b32 {%r10, %r11, %r12, %r13}, [%d8];)");
  const std::string meet = "\tbarrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;\n";
  const std::string stays = without(reads, "st.global.b32 [%d30], %r9;", "st.global.b32 [%d30], %r9;\n" + meet);
  for (uint64_t seed : kSeeds) {
    BlockTrial run = trialOf(seed);
    EXPECT_EQ(run(reads).fault.substr(0, 13), "exit-pending:") << seed;
    BlockTrial other = trialOf(seed);
    ASSERT_EQ(other(stays).fault, "");
    EXPECT_EQ(other.to[0], 10u);
    EXPECT_EQ(other.to[767], 42u);
  }
}

} // namespace
