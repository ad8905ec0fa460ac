//===- CudaClockTest.cpp - the clock of the simulator of GPUs -----------------===//
//
// Sectors, lines, banks and bytes of kernels written by hand are counted on paper. Of clocks it is asked what does not
// depend on their model: that they are the same in any order of turns, and that what is worse on purpose is worse in
// the figure that is meant.
//
//===----------------------------------------------------------------------===//

#include "CudaBody.h"
#include "CudaLadder.h"
#include "CudaLaunch.h"

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

constexpr uint32_t kBlocks = 8, kThreads = 256, kCount = kBlocks * kThreads;

/// A kernel of 8 blocks of 256 threads, with %r5 the thread's number in the launch; the figures of its run.
LaunchFigures timed(const std::string &body, int operands, size_t words = kCount, uint64_t seed = 0,
                    uint64_t shared = 0, size_t results = kCount) {
  BlockTrial run;
  run.to.resize(results);
  run.from.assign(static_cast<size_t>(operands), std::vector<uint32_t>(words, 1));
  run.threads = kThreads;
  run.blocks = kBlocks;
  run.seed = seed;
  run.shared = shared;
  run.timed = true;
  run.filled = true;
  const std::string own = "\tmov.u32 %r3, %ctaid.x;\n\tmad.lo.s32 %r5, %r3, 256, %r0;\n\tand.b32 %r6, %r0, 31;\n"
                          "\tmul.wide.u32 %d31, %r5, 4;\n\tadd.s64 %d32, %d0, %d31;\n";
  LaunchOutcome outcome = run(blockKernel(own + body, operands, 0, static_cast<int>(kThreads)));
  EXPECT_EQ(outcome.fault, "") << body;
  return run.figures;
}

const std::string kStore = "\tst.global.b32 [%d32], %r9;\n";

/// Loads the word of number `%r7` of an operand into %r9.
std::string loadWord(int operand = 1) {
  return "\tmul.wide.u32 %d10, %r7, 4;\n\tadd.s64 %d10, %d" + std::to_string(operand) +
         ", %d10;\n\tld.global.b32 %r9, [%d10];\n";
}

TEST(CudaClock, CountsSectorsOfSaxpy) {
  LaunchFigures figures =
      timed("\tadd.s64 %d10, %d1, %d31;\n\tadd.s64 %d11, %d2, %d31;\n\tld.global.b32 %r10, [%d10];\n"
            "\tld.global.b32 %r11, [%d11];\n\tfma.rn.f32 %r9, %r10, 0f40000000, %r11;\n" +
                kStore,
            2);
  // 64 warps read two rows of 128 bytes, 4 sectors of 32 each, and write one.
  EXPECT_EQ(figures.counts.requests, 64u * 3);
  EXPECT_EQ(figures.counts.sectorsRead, 64u * 8);
  EXPECT_EQ(figures.counts.sectorsWritten, 64u * 4);
  EXPECT_EQ(figures.dramRead, 2u * 4 * kCount);
  EXPECT_EQ(figures.dramWritten, 4u * kCount);
  EXPECT_EQ(figures.counts.macsF32, kCount);
  EXPECT_EQ(figures.counts.wavefronts, 0u);
}

TEST(CudaClock, CountsSectorsOfStrides) {
  // Words 32 bytes apart: each lane's is a sector of its own; every byte of the operand's sectors is fetched.
  LaunchFigures apart = timed("\tmul.lo.s32 %r7, %r5, 8;\n" + loadWord() + kStore, 1, 8 * kCount);
  EXPECT_EQ(apart.counts.sectorsRead, 64u * 32);
  EXPECT_EQ(apart.dramRead, 32u * kCount);
  // Every other word: 8 sectors a warp.
  LaunchFigures second = timed("\tmul.lo.s32 %r7, %r5, 2;\n" + loadWord() + kStore, 1, 2 * kCount);
  EXPECT_EQ(second.counts.sectorsRead, 64u * 8);
  // One word for all: one.
  LaunchFigures same = timed("\tmov.b32 %r7, 3;\n" + loadWord() + kStore, 1);
  EXPECT_EQ(same.counts.sectorsRead, 64u);
  EXPECT_EQ(same.dramRead, 32u);
  // Four words a lane at once: 16 sectors, and 4 lines.
  LaunchFigures wide = timed("\tmul.wide.u32 %d10, %r5, 16;\n\tadd.s64 %d10, %d1, %d10;\n"
                             "\tld.global.v4.b32 {%r9, %r10, %r11, %r12}, [%d10];\n" +
                                 kStore,
                             1, 4 * kCount);
  EXPECT_EQ(wide.counts.sectorsRead, 64u * 16);
  // 4 bytes behind a sector's begin: one sector more.
  LaunchFigures off = timed("\tadd.s32 %r7, %r5, 1;\n" + loadWord() + kStore, 1, kCount + 1);
  EXPECT_EQ(off.counts.sectorsRead, 64u * 5);
}

TEST(CudaClock, CountsSectorsOfTransposes) {
  // A matrix of 32 columns and 64 rows, written as its transpose: lanes of a warp are 64 words apart there.
  LaunchFigures figures =
      timed("\tadd.s64 %d10, %d1, %d31;\n\tld.global.b32 %r9, [%d10];\n\tshr.u32 %r7, %r5, 5;\n"
            "\tmad.lo.s32 %r7, %r6, 64, %r7;\n\tmul.wide.u32 %d11, %r7, 4;\n\tadd.s64 %d11, %d0, %d11;\n"
            "\tst.global.b32 [%d11], %r9;\n",
            1);
  EXPECT_EQ(figures.counts.sectorsRead, 64u * 4);
  EXPECT_EQ(figures.counts.sectorsWritten, 64u * 32);
  EXPECT_EQ(figures.dramWritten, 4u * kCount); // all bytes of what is written, each once
}

/// A word into shared memory at byte %r7, and out of there again at byte %r8.
LaunchFigures throughShared(const std::string &addresses, uint64_t seed = 0) {
  return timed(addresses + "\tst.shared.b32 [%r7], %r5;\n\tbar.sync 0;\n\tld.shared.b32 %r9, [%r8];\n" + kStore, 0, 0,
               seed, 65536);
}
/// %r10: where `room` begins.
const std::string kRoom = "\tmov.b32 %r10, room;\n\tshr.u32 %r11, %r0, 5;\n";

TEST(CudaClock, CountsWavefrontsOfBanks) {
  // Words side by side, there and back: one wavefront each.
  LaunchFigures straight = throughShared(kRoom + "\tmad.lo.s32 %r7, %r0, 4, %r10;\n\tmov.b32 %r8, %r7;\n");
  EXPECT_EQ(straight.counts.sharedRequests, 128u);
  EXPECT_EQ(straight.counts.wavefronts, 128u);
  EXPECT_EQ(straight.counts.leastWavefronts, 128u);
  // Each warp's 32 words down a column of rows of 32 words: one bank, 32 wavefronts. 8 columns of one tile.
  const std::string column = "\tmad.lo.s32 %r8, %r6, 128, %r10;\n\tmad.lo.s32 %r8, %r11, 4, %r8;\n";
  LaunchFigures down = throughShared(kRoom + column + "\tmov.b32 %r7, %r8;\n");
  EXPECT_EQ(down.counts.wavefronts, 64u * (32 + 32));
  // Rows of 33 words: 32 banks.
  const std::string padded = "\tmad.lo.s32 %r8, %r6, 132, %r10;\n\tmad.lo.s32 %r8, %r11, 4, %r8;\n";
  LaunchFigures apart = throughShared(kRoom + padded + "\tmov.b32 %r7, %r8;\n");
  EXPECT_EQ(apart.counts.wavefronts, 64u * 2);
  EXPECT_GT(down.clocks, apart.clocks);
}

TEST(CudaClock, CountsWavefrontsOfSwizzledTiles) {
  // Rows of 128 bytes; each lane takes 16 bytes of its own row, the same chunk of all: 8 lanes at a time, one bank
  // group.
  auto tile = [&](bool swizzled) {
    std::string chunk = swizzled ? "\tand.b32 %r12, %r6, 7;\n\txor.b32 %r12, %r12, %r11;\n" : "\tmov.b32 %r12, %r11;\n";
    return timed(kRoom + chunk +
                     "\tmad.lo.s32 %r7, %r6, 128, %r10;\n\tmad.lo.s32 %r7, %r12, 16, %r7;\n"
                     "\tst.shared.v4.b32 [%r7], {%r5, %r5, %r5, %r5};\n\tbar.sync 0;\n"
                     "\tld.shared.v4.b32 {%r9, %r13, %r14, %r15}, [%r7];\n" +
                     kStore,
                 0, 0, 0, 65536);
  };
  LaunchFigures plain = tile(false), swizzled = tile(true);
  EXPECT_EQ(plain.counts.wavefronts, 64u * 2 * 4 * 8);
  EXPECT_EQ(swizzled.counts.wavefronts, 64u * 2 * 4);
  EXPECT_EQ(plain.counts.leastWavefronts, swizzled.counts.wavefronts);
  EXPECT_GT(plain.clocks, swizzled.clocks);
}

/// An instruction of every family, with copies by TMA, an mbarrier and wgmma.
LaunchFigures everyFamily(uint64_t seed, uint64_t mostEvents = Recorder::kMostEvents) {
  BlockTrial run;
  run.mostEvents = mostEvents;
  run.to.resize(1024);
  run.from = {std::vector<uint32_t>(512, 0x3f803f80)};
  run.maps = {matrixMap(1, MapType::Bf16, 64, 16, 64, 16, 128), matrixMap(0, MapType::U32, 32, 16, 32, 16, 128)};
  run.seed = seed;
  run.shared = 16384;
  run.filled = run.timed = true;
  const std::string own = "\tmov.b32 %r30, 0;\n\tmov.b32 %r31, 0;\n\tmov.b32 %r32, 0;\n\tmov.b32 %r33, 0;\n";
  LaunchOutcome outcome = run(blockKernel(own + kEveryFamily, 1, 2));
  EXPECT_EQ(outcome.fault, "");
  return run.figures;
}

TEST(CudaClock, IsTheSameInAnyOrderOfTurns) {
  LaunchFigures first = everyFamily(0);
  EXPECT_EQ(first.counts.bulkRead, 4096u); // two boxes of 16 rows of 128 bytes
  EXPECT_EQ(first.counts.bulkWritten, 2048u);
  EXPECT_EQ(first.counts.wgmma, 4u);
  EXPECT_EQ(first.counts.macs16, 64u * 8 * 16);
  EXPECT_GT(first.clocks, 0);
  for (uint64_t seed : kSeeds) {
    LaunchFigures again = everyFamily(seed);
    EXPECT_EQ(again.clocks, first.clocks) << seed;
    EXPECT_EQ(again.counts.instructions, first.counts.instructions) << seed;
    EXPECT_EQ(again.counts.issues, first.counts.issues) << seed;
    EXPECT_EQ(again.busy.shared, first.busy.shared) << seed;
  }
}

/// A word a thread, `apart` words from one thread's to the next one's, of so many blocks; `more` is done with it.
LaunchFigures moved(uint32_t apart, const std::string &more = "", uint32_t blocks = 1056, uint32_t mostBlocks = 0) {
  BlockTrial run;
  run.to.resize(size_t(blocks) * kThreads);
  run.from.assign(1, std::vector<uint32_t>(run.to.size() * apart, 0));
  run.threads = kThreads;
  run.blocks = blocks;
  run.timed = run.filled = true;
  run.checks = false;
  run.mostBlocks = mostBlocks;
  LaunchOutcome outcome =
      run(blockKernel("\tmov.u32 %r3, %ctaid.x;\n\tmad.lo.s32 %r5, %r3, 256, %r0;\n\tmul.wide.u32 %d31, %r5, 4;\n"
                      "\tadd.s64 %d32, %d0, %d31;\n\tmul.lo.s32 %r7, %r5, " +
                          std::to_string(apart) + ";\n" + loadWord() + more + kStore,
                      1, 0, static_cast<int>(kThreads)));
  EXPECT_EQ(outcome.fault, "");
  return run.figures;
}

TEST(CudaClock, ShowsWhatIsWorse) {
  LaunchFigures good = moved(1), apart = moved(8);
  EXPECT_EQ(apart.dramRead, 8 * good.dramRead);
  EXPECT_EQ(apart.counts.bytesRead, good.counts.bytesRead);
  EXPECT_GT(apart.busy.l2, 4 * good.busy.l2); // 32 + 4 sectors a warp, and 4 + 4
  EXPECT_GT(apart.busy.dram, 4 * good.busy.dram);
  EXPECT_GT(apart.playClocks, 3 * good.playClocks);
  EXPECT_EQ(apart.bound, "DRAM");
  // Roots: each is several instructions, one behind the other.
  std::string roots;
  for (int i = 0; i < 32; ++i)
    roots += "\tsqrt.rn.f32 %r9, %r9;\n";
  LaunchFigures slow = moved(1, roots);
  EXPECT_EQ(slow.counts.sectorsRead, good.counts.sectorsRead);
  EXPECT_GT(slow.busy.issue, 4 * good.busy.issue);
  EXPECT_GT(slow.playClocks, good.playClocks + 32 * 40);
}

TEST(CudaClock, GoesOnFromBlocksThatWereRun) {
  // Of 4,224 blocks 24 are run: counts are theirs as often as there are blocks, and clocks near those of all.
  LaunchFigures all = moved(1, "", 4224), some = moved(1, "", 4224, 24);
  EXPECT_EQ(all.counts.sectorsRead, some.counts.sectorsRead);
  EXPECT_EQ(all.counts.instructions, some.counts.instructions);
  EXPECT_EQ(all.dramRead, some.dramRead);
  EXPECT_NEAR(all.clocks, some.clocks, 0.02 * all.clocks);
  // 32 blocks a multiprocessor, 8 of 256 threads at a time.
  EXPECT_EQ(all.multiprocessors, 132u);
  EXPECT_EQ(all.occupancy.blocks, 8u);
  EXPECT_EQ(all.waves, 4u);
}

/// TFLOP/s of a product of 8192^3, from one block or two of it.
double teraflops(const std::string &text, uint32_t threads, uint32_t blocks, uint64_t shared, uint32_t columns,
                 uint32_t rows) {
  constexpr uint64_t size = 8192;
  static BlockTrial run; // of 384 MiB
  if (run.from.empty()) {
    run.from.assign(2, std::vector<uint32_t>(size * size / 2));
    run.to.resize(size * size / 2);
  }
  run.maps.clear();
  if (rows)
    run.maps = {matrixMap(1, MapType::Bf16, size, size, 64, rows, 128),
                matrixMap(2, MapType::Bf16, size, size, 64, columns, 128)};
  run.threads = threads;
  run.blocks = blocks;
  run.shared = shared;
  run.mostSteps = uint64_t(1) << 30;
  run.timed = run.filled = true;
  run.checks = false;
  run.mostBlocks = 1;
  LaunchOutcome outcome = run(text);
  EXPECT_EQ(outcome.fault, "") << text.substr(0, 200);
  const LaunchFigures &f = run.figures;
  double result = 2.0 * size * size * size / (f.clocks / run.gpu.clockHz) * 1e-12;
  std::printf("%u threads, %u blocks, %u at a time: %.0f TFLOP/s, bound by %s\n", threads, blocks, f.occupancy.blocks,
              result, std::string(f.bound).c_str());
  return result;
}
double teraflops(const LadderForm &form) {
  constexpr uint32_t size = 8192;
  uint32_t tiles = size / form.rows * (size / form.columns);
  return teraflops(LadderText(form, size)(), form.threads(), form.persistent ? 132 : tiles,
                   form.slots * form.slotBytes(), form.columns, form.rows);
}

// github.com/pranjalssh/fast.cu on an H100, bf16, 8192^3, in TFLOP/s: kernel 1 32, 2 488, 4 635, 5 658, 6 777.
TEST(CudaClock, OrdersKernelsAsAGpuDoes) {
  if (!timesCount)
    GTEST_SKIP() << "as slow as sanitizers are";
  double first = teraflops(plainProduct(8192), 256, 4096, 0, 0, 0), second = teraflops({64, 64, 1, 0, false}),
         fourth = teraflops({128, 128, 5, 2, false}), fifth = teraflops({128, 256, 4, 2, false}),
         sixth = teraflops({128, 256, 4, 2, true});
  EXPECT_LT(first, second);
  EXPECT_LT(second, fourth);
  EXPECT_LT(fourth, sixth);
  EXPECT_LT(fifth, sixth);
  EXPECT_NEAR(first / sixth, 32.0 / 777, 0.25 * 32 / 777);
  EXPECT_NEAR(second / sixth, 488.0 / 777, 0.25 * 488 / 777);
  EXPECT_NEAR(fourth / sixth, 635.0 / 777, 0.25 * 635 / 777);
  EXPECT_NEAR(fifth / sixth, 658.0 / 777, 0.25 * 658 / 777);
}

TEST(CudaClock, EstimatesBlocksThatAreTooLongToPlay) {
  LaunchFigures whole = everyFamily(0);
  for (uint64_t most : {0, 1, 50}) {
    LaunchFigures cut = everyFamily(0, most);
    EXPECT_EQ(cut.counts.issues, whole.counts.issues) << most;
    EXPECT_EQ(cut.dramRead, whole.dramRead) << most;
    EXPECT_GE(cut.playClocks, static_cast<double>(cut.counts.issues) / kSchedulers) << most;
    EXPECT_LT(cut.clocks, whole.clocks) << most;
    EXPECT_FALSE(cut.bound.empty()) << most;
  }
}

TEST(CudaClock, CountsWhatAMultiprocessorHolds) {
  auto blocks = [](uint64_t shared, uint32_t registers) {
    Program program;
    program.liveRegisters = registers;
    return occupancyOf(program, 256, shared, dmx::cuda::builtinMachine());
  };
  EXPECT_EQ(blocks(0, 32).blocks, 8u); // 2,048 threads
  EXPECT_EQ(blocks(0, 32).bound, "threads");
  EXPECT_EQ(blocks(0, 128).blocks, 2u); // 65,536 registers
  EXPECT_EQ(blocks(0, 128).bound, "registers");
  EXPECT_EQ(blocks(100000, 32).blocks, 2u); // 228 KiB, 1 KiB of each block taken by the system
  EXPECT_EQ(blocks(100000, 32).bound, "shared memory");
  EXPECT_EQ(blocks(232448, 32).blocks, 1u);
}

} // namespace
