//===- MutantTest.cpp - each wrong line of a good text is found -----------===//
//
// Mutants of a sound text of 4x4 cores; what each must end in was written down before it ran. Where only data are wrong
// no check can know it, and the numbers differ.
//
//===----------------------------------------------------------------------===//
#include "RunProduct.h"

#include <gtest/gtest.h>

#include <functional>

using namespace aietest;

namespace {

const Sizes kSizes{600, 128, 300}; // 6 blocks: BDs and queues are used again
const Form kForm{.herd = {4, 4, 1, 2}};

/// The first (of `all`: each) `from` becomes `to`.
void replace(std::string &text, const std::string &from, const std::string &to, size_t all = 1) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << "the text has no '" << from << "'";
  for (; all > 0 && at != text.npos; --all, at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}
/// The line of the first, or last, `part` is gone.
void dropLine(std::string &text, const std::string &part, bool last = false) {
  size_t at = last ? text.rfind(part) : text.find(part);
  ASSERT_NE(at, text.npos) << "the text has no '" << part << "'";
  size_t begin = text.rfind('\n', at) + 1;
  text.erase(begin, text.find('\n', at) + 1 - begin);
}
/// Tasks of one channel more than wait there.
void overfill(std::string &text) {
  size_t at = text.find("aiex.npu.dma_memcpy_nd"), end = text.find('\n', at) + 1;
  std::string line = text.substr(at, end - at), all;
  for (int id = 11; id < 16; ++id) {
    std::string one = line;
    replace(one, "id = 0 : i64", "id = " + std::to_string(id) + " : i64");
    all += one;
  }
  text.insert(end, all);
}

struct Mutant {
  const char *name;
  bool lowered; ///< the text behind aie-control
  std::function<void(std::string &)> change;
  const char *fault; ///< its name; "" where the numbers alone are wrong
  const char *names; ///< what the sentence names
};

const Mutant kMutants[] = {
    {"a release dropped", false, [](auto &t) { dropLine(t, "aie.use_lock(%a_part0_full_1_1, Release, 1)"); },
     "deadlock", "tile (1,1)"},
    {"a core's release dropped", false, [](auto &t) { dropLine(t, "aie.use_lock(%c_full_2_3, Release, 1)"); },
     "deadlock", "the controller waits"},
    {"a count off by one", false,
     [](auto &t) {
       replace(t, "aie.use_lock(%b_full_0_2, AcquireGreaterEqual, 1)",
               "aie.use_lock(%b_full_0_2, AcquireGreaterEqual, 3)");
     },
     "deadlock", "lock 3 >= 3"},
    {"a BD too short", false,
     [](auto &t) {
       replace(t, "aie.dma_bd(%a0_0_2 : memref<64x32xbf16>, 0, 2048)",
               "aie.dma_bd(%a0_0_2 : memref<64x32xbf16>, 0, 2040)");
     },
     "undefined-read", "core (0,2)"},
    {"a BD of the wrong stride", false,
     [](auto &t) { replace(t, "[<size = 4, stride = 512>", "[<size = 4, stride = 256>"); }, "", ""},
    {"a BD from behind its buffer's begin", false,
     [](auto &t) {
       replace(t, "aie.dma_bd(%c0_0_2 : memref<64x64xf32>, 0, 4096)",
               "aie.dma_bd(%c0_0_2 : memref<64x64xf32>, 64, 4032)");
     },
     "deadlock", "tile (0,"},
    {"a ring of one BD", false, [](auto &t) { replace(t, "aie.next_bd ^bb2", "aie.next_bd ^bb1"); }, "race",
     "tile (0,1)"},
    {"another BD's lock", false,
     [](auto &t) {
       replace(t, "aie.use_lock(%a_part0_full_0_1, AcquireGreaterEqual, 1)",
               "aie.use_lock(%b_panel_full_0_1, AcquireGreaterEqual, 1)");
     },
     "race", "MM2S 0 of tile (0,1)"},
    {"a flow taken out", false, [](auto &t) { dropLine(t, "aie.flow(%tile_1_1, DMA : 0, %tile_2_3, DMA : 0)"); },
     "unrouted-stream", "S2MM 0 of tile (2,3)"},
    {"two flows swapped", false,
     [](auto &t) {
       replace(t, "aie.flow(%tile_0_1, DMA : 0, %tile_0_2, DMA : 0)",
               "aie.flow(%tile_0_1, DMA : 0, %tile_0_9, DMA : 0)");
       replace(t, "aie.flow(%tile_1_1, DMA : 0, %tile_0_3, DMA : 0)",
               "aie.flow(%tile_1_1, DMA : 0, %tile_0_2, DMA : 0)");
       replace(t, "%tile_0_9", "%tile_0_3");
     },
     "", ""},
    {"a queue overfilled", false, overfill, "queue-overflow", "MM2S 0 of tile (0,0)"},
    {"waits left out", false,
     [](auto &t) {
       for (const char *channel : {"c_out", "c_out_b"})
         for (int column = 0; column < 4; ++column)
           dropLine(t, "{symbol = @" + std::string(channel) + std::to_string(column) + "}");
     },
     "bd-rewritten-while-running", "of tile (0,0)"},
    {"the last wait left out", false, [](auto &t) { dropLine(t, "{symbol = @c_out3}", true); }, "race",
     "S2MM 0 of tile (3,0)"},
    {"a patch behind the matrix", true, [](auto &t) { replace(t, "arg_plus = 0 : i64", "arg_plus = 99999744 : i64"); },
     "kernel 'product'", "(patch) patches in byte 99999744 of argument 0, which has 196608"},
    {"another block's columns", false,
     [](auto &t) { replace(t, "[0, 0, 0, 8192][1, 4, 32, 64]", "[0, 0, 0, 16384][1, 4, 32, 64]"); }, "", ""},
    {"a parameter never written", false, [](auto &t) { dropLine(t, "rtp_write(@parameters_3_5, 0, 2)"); },
     "undefined-read", "core (3,5)"},
    {"a core that does not wait", false,
     [](auto &t) { dropLine(t, "aie.use_lock(%a_full_0_2, AcquireGreaterEqual, 1)"); }, "race",
     "core (0,2), instruction"},
    {"a core that is never started", false, [](auto &t) { dropLine(t, "aiex.set_lock(%start_1_4, 1)"); }, "deadlock",
     "core (1,4)"},
};

} // namespace

TEST(AieMutant, EachIsFound) {
  Matrices of = randomMatrices(kSizes, 1, kForm);
  const std::vector<uint32_t> expected = byTheRule(kSizes, of, kForm);
  const std::string good[] = {textOf(kSizes, kForm, Stage::Placed), textOf(kSizes, kForm, Stage::Control)};
  for (const std::string &text : good) {
    std::string error;
    hw::Image image = imageOf(text, error);
    ASSERT_EQ(error, "");
    EXPECT_EQ(run(hw::write(image), kSizes, of, kForm).c, expected);
  }
  for (const Mutant &mutant : kMutants) {
    SCOPED_TRACE(mutant.name);
    std::string text = good[mutant.lowered], error;
    mutant.change(text);
    hw::Image image = imageOf(text, error);
    Outcome outcome;
    outcome.error = error;
    if (error.empty())
      outcome = run(hw::write(image), kSizes, of, kForm);
    if (*mutant.fault) {
      EXPECT_TRUE(outcome.error.starts_with(std::string(mutant.fault) + ": ")) << outcome.error;
      EXPECT_NE(outcome.error.find(mutant.names), std::string::npos) << outcome.error;
    } else {
      EXPECT_EQ(outcome.error, "");
      EXPECT_NE(outcome.c, expected);
    }
  }
}
