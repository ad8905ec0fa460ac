//===- CudaPlacesTest.cpp - where tiles lie at the end of shared memory -------===//
//
// What is swizzled is checked where it lies. Places are worked out by hand: 16 bytes at byte A lie at A ^ (A >> 7 & 7)
// << 4 with a swizzle of 128 bytes, with one of 64 at A ^ (A >> 7 & 3) << 4, of 32 at A ^ (A >> 7 & 1) << 4 (PTX
// manual). Shared memory begins at byte 1024.
//
//===----------------------------------------------------------------------===//

#include "CudaTensor.h"

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

// A box of 16-byte rows that is not a whole number of spans has places behind it: with a swizzle of 128 bytes the row
// that begins 896 bytes behind a multiple of 1024 lies 112 bytes further.
TEST(CudaProduct, BoxesAtTheEndOfSharedMemory) {
  auto trial = [](uint64_t place, uint64_t shared, uint32_t rows, uint32_t swizzle) {
    BlockTrial run;
    run.shared = shared;
    run.to.resize(256);
    run.filled = true;
    run.from = {counting(4 * 64)};
    run.maps = {matrixMap(1, MapType::F32, 4, 64, 4, rows, swizzle),
                matrixMap(0, MapType::F32, 4, 64, 4, rows, swizzle)};
    const std::string back = R"(
	mov.b64 %d10, map1;
	cvta.param.u64 %d11, %d10;
	@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d11, {%r5, %r5}], [room+)" +
                             number(place) + R"(];
	@%p0 cp.async.bulk.commit_group;
	@%p0 cp.async.bulk.wait_group 0;)";
    std::string fault =
        run(blockKernel(kBegin + expect(16 * rows) + load(0, place, "0, 0") + kWait + "\tmov.b32 %r5, 0;" + back, 1, 2))
            .fault;
    for (uint32_t i = 0; i < 4 * rows && fault.empty(); ++i)
      EXPECT_EQ(run.to[i], 1000 + i) << i;
    return fault;
  };
  EXPECT_EQ(trial(896, 912, 1, 0), "");
  EXPECT_EQ(trial(896, 1024, 1, 128), "");
  for (uint64_t shared : {912, 928, 1008})
    EXPECT_EQ(trial(896, shared, 1, 128),
              "bounds: the box of a bulk load is bytes 3056 to 3072 of shared memory, and not all of them are there");
  EXPECT_EQ(trial(896, 1008, 7, 128),
            "bounds: the box of a bulk load is bytes 3056 to 3072 of shared memory, and not all of them are there");
  EXPECT_EQ(trial(0, 144, 9, 128), "bounds: the box of a bulk load is bytes 2192 to 2208 of shared memory, and not all "
                                   "of them are there"); // 2176 ^ 16
  EXPECT_EQ(trial(0, 160, 9, 128), "");
  EXPECT_EQ(trial(384, 400, 1, 64),
            "bounds: the box of a bulk load is bytes 2480 to 2496 of shared memory, and not all "
            "of them are there"); // 2432 ^ 48
  EXPECT_EQ(trial(384, 448, 1, 64), "");
  EXPECT_EQ(trial(128, 144, 1, 32),
            "bounds: the box of a bulk load is bytes 2192 to 2208 of shared memory, and not all "
            "of them are there"); // 2176 ^ 16
  // A store alone, of what nobody looked for: the places are checked before the bytes.
  for (auto [swizzle, end] : {std::pair(128u, "2048"), {0u, ""}}) {
    BlockTrial run;
    run.shared = 912;
    run.filled = true;
    run.checks = false;
    run.maps = {matrixMap(0, MapType::F32, 4, 64, 4, 1, swizzle)};
    std::string fault = run(blockKernel("\tsetp.eq.s32 %p0, %r0, 0;\n\tmov.b32 %r5, 0;\n\tmov.b64 %d10, map0;"
                                        R"(
	@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d10, {%r5, %r5}], [room+896];
	@%p0 cp.async.bulk.commit_group;
	@%p0 cp.async.bulk.wait_group 0;)",
                                        0, 1))
                            .fault;
    EXPECT_EQ(fault,
              *end ? "bounds: the box of a bulk store is bytes 2032 to 2048 of shared memory, and not all of them "
                     "are there"
                   : "");
  }
}

// Lines of 32 bytes at an odd multiple of 16: what is side by side before the swizzle is not behind it, and the last
// 16 bytes of the last line are the first ones of the next pattern.
TEST(CudaProduct, MatricesAtTheEndOfSharedMemory) {
  auto trial = [](uint32_t columns, bool isMnMajor, uint64_t stride, uint64_t leading, uint64_t shared) {
    std::string list, text;
    for (uint32_t i = 0; i < columns / 2; ++i)
      list += (i ? ", %r" : "%r") + number(60 + i);
    for (int i = 30; i < 34; ++i)
      text += "\tmov.b32 %r" + std::to_string(i) + ", 0;\n";
    text += descriptorText("%d22", uint64_t(1) << 62 | (stride >> 4) << 32 | (leading >> 4) << 16, 0) +
            "\twgmma.fence.sync.aligned;\n\tsetp.ne.b32 %p2, 0, 0;\n\twgmma.mma_async.sync.aligned.m64n" +
            number(columns) + "k16.f32.bf16.bf16 {" + list + "}, {%r30, %r31, %r32, %r33}, %d22, %p2, 1, 1, " +
            (isMnMajor ? "1" : "0") +
            ";\n\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\tst.global.b32 [%d30], %r0;";
    BlockTrial run;
    run.checks = false; // of what was written, not of what is there
    run.shared = shared;
    run.to.resize(128);
    return run(blockKernel(text)).fault;
  };
  const std::string behind = "bounds: its descriptor leads to byte 3072 of shared memory, which is not there";
  EXPECT_EQ(trial(16, false, 1024, 16, 2048), "");
  EXPECT_EQ(trial(16, false, 1136, 16, 2048), behind);
  EXPECT_EQ(trial(16, false, 1136, 16, 2064), "");
  // Lines of 8 along N: from an odd stride on they reach into the next 128 bytes, and so they do from an odd leading
  // one.
  EXPECT_EQ(trial(64, true, 1024, 16384, 2048), "");
  EXPECT_EQ(trial(64, true, 1136, 16384, 2048), behind);
  EXPECT_EQ(trial(128, true, 1024, 2048, 4096), "");
  EXPECT_EQ(trial(128, true, 1024, 2064, 4096),
            "bounds: its descriptor leads to byte 5120 of shared memory, which is not there");
}

} // namespace
