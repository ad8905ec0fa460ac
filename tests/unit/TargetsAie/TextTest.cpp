//===- TextTest.cpp - texts of an array that are not sound ----------------===//
//
// Texts are read back and go on to the same words; each change below is refused with its reason.
//
//===----------------------------------------------------------------------===//
#include "RunProduct.h"

#include <gtest/gtest.h>

#include <span>

using namespace aietest;

namespace {

const Sizes kSizes{64, 64, 64};

struct Change {
  const char *name;
  const char *from, *to; ///< in the text
  const char *why;       ///< part of the error
};

const Change kChanges[] = {
    {"a BD twice", "bd_id = 1 : i32", "bd_id = 0 : i32", "has the number 0 of another BD of its tile"},
    {"a BD that is none", "bd_id = 26 : i32", "bd_id = 99 : i32", "is number 99, a memory tile has 48 BDs"},
    {"a BD of the other channels", "bd_id = 26 : i32", "bd_id = 9 : i32",
     "even channels of a memory tile have 0 to 23"},
    {"a next BD to nothing", "aie.next_bd ^bb1\n", "aie.next_bd ^bb77\n", "reference to an undefined block"},
    {"another tile's lock", "aie.use_lock(%a_part0_empty_0_1, AcquireGreaterEqual",
     "aie.use_lock(%a_empty_0_2, AcquireGreaterEqual", "is of a lock that tile (0,1) does not have"},
    {"a stride of half a word", "<size = 4, stride = 32>, <size = 8, stride = 1>",
     "<size = 4, stride = 31>, <size = 8, stride = 1>", "is not one of whole words"},
    {"a length that its dims do not have", "0, 2048, [<size = 16", "0, 2046, [<size = 16",
     "moves 2046 elements, its dims have 2048"},
    {"a walk out of its buffer", "[<size = 16, stride = 128>", "[<size = 16, stride = 256>", "goes from element 0 to"},
    {"an unknown op", "aie.next_bd ^bb1\n", "aie.last_bd ^bb1\n", "last_bd"},
    {"a lock twice", "aie.lock(%tile_0_1, 1)", "aie.lock(%tile_0_1, 0)", "a second time"},
    {"a lock too many", "aie.lock(%tile_0_2, 6)", "aie.lock(%tile_0_2, 16)", "which has 16 locks"},
    {"a buffer on another", "{address = 16384 : i32", "{address = 4096 : i32", "overlaps another buffer"},
    {"memory that is not there", "{address = 49152 : i32", "{address = 57344 : i32", "has 65536 bytes"},
    {"a tile that is not there", "aie.tile(0, 1)", "aie.tile(4, 1)", "has 4 columns of 6 tiles"},
    {"a channel twice", "aie.dma_start(S2MM, 1,", "aie.dma_start(S2MM, 0,", "starts its channel a second time"},
    {"a channel too many", "aie.dma_start(MM2S, 2,", "aie.dma_start(MM2S, 6,", "starts channel 6, a memory tile has 6"},
    {"a kernel that is none", "@matmul_bf16_f32", "@matmul_bf16_f64", "which the cores' library does not have"},
    {"a core at a lock that it does not reach", "aie.use_lock(%start_0_2", "aie.use_lock(%b_panel_full_0_1",
     "does not reach"},
    {"a task of a channel without a name", "metadata = @a_in0", "metadata = @z0",
     "which is no aie.shim_dma_allocation"},
    {"a task out of its matrix", "[0, 0, 0, 0][1, 2, 64, 32]", "[0, 0, 0, 9][1, 2, 64, 32]",
     "goes from element 9 over 4095"},
    {"a task with a BD too many", "{id = 0 : i64", "{id = 16 : i64", "has BD 16 of 16"},
    {"a parameter behind its buffer", "@parameters_0_2, 2,", "@parameters_0_2, 22,", "writes word 22 of 22"},
};

/// Of the program of 4x4 cores, before it has tiles; one of three blocks of results.
const Change kProgramChanges[] = {
    {"an unknown machine", "aie.machine = \"npu1\"", "aie.machine = \"npu9\"",
     "says by aie.machine which machine it is for: npu1, "},
    {"a grid of more columns than there are", "aie.machine = \"npu1\"", "aie.machine = \"npu1_1col\"",
     "is of 4 columns by 4, the machine npu1_1col has 1 by 4"},
    {"a queue that ends", "times[4294967295]", "times[6]", "is no ring of BDs"}, // as many as a run has
    {"a queue that ends early", "times[4294967295]", "times[4]",
     "C7: ring 'a_part0' is filled 3 times where it is drained 2"},
    {"an unknown kernel", "aie.call \"zero_f32\"", "aie.call \"one_f32\"", "C1: the cores' library has no 'one_f32'"},
    {"a matrix too few", "aie.call \"zero_f32\"", "aie.call \"matmul_bf16_f32\"",
     "C1: matmul_bf16_f32 takes 3 matrices, not 1"},
    {"the inside of a buffer", "aie.call \"zero_f32\" %c_ring[0]", "aie.call \"zero_f32\" %c_ring[32]",
     "C2: takes whole buffers of L1"},
    {"a matrix of another type", "%a_ring[0] and %b_ring[0]", "%b_ring[0] and %a_ring[0]",
     "takes matrices of other sizes than an earlier call does"},
    {"a slot that is not held", "aie.call \"relu_f32\" %c_ring[0]", "aie.call \"relu_f32\" %a_ring[0]",
     "takes a slot of ring 'a' outside of a dlir.fill or dlir.drain of it"},
    {"an element that does not exist", "dlir.descriptor \"bf16\"", "dlir.descriptor \"i16\"",
     "moves i16, the array moves bf16, f16, f32, i64, i32 and i8"},
    {"a get in a queue that puts", "\"core\" \"S2MM\" 1", "\"core\" \"MM2S\" 1",
     "is of ring 'b', which queue \"core\" \"MM2S\" 1 does not fill"},
    {"a put for a get", "dlir.get @a[", "dlir.get @b[", "C6: nothing gets what is put into @a"},
    {"two streams of a queue", "dlir.get @c[%unit_8, 1]", "dlir.get @c[%unit_8, 2]",
     "C6: nothing gets what is put into @c[0, 1]"},
    {"fewer tasks of one shim", "times[3]", "times[2]", "C7: ring '"},
    {"a channel that cores do not have", "\"core\" \"S2MM\" 1", "\"core\" \"S2MM\" 2",
     "is of ring 'b', which queue \"core\" \"S2MM\" 2 does not fill"},
    {"a unit that does not move that way", "dlir.put @c[", "dlir.put @a_in[", "C4: names an element by 2 indices"},
    {"an argument in no buffer", "dlir.piece \"a\" unit 0", "dlir.piece \"b\" unit 0", "one piece at the begin"},
};

std::string changed(std::string text, const Change &change) {
  for (size_t at = text.find(change.from), all = 0; at != text.npos; at = text.find(change.from, at + all)) {
    text.replace(at, std::string(change.from).size(), change.to);
    all = std::string(change.to).size();
    if (std::string(change.from).find("@matmul") == std::string::npos)
      break; // the first one alone, but of names all
  }
  return text;
}

void expectRefused(const std::string &good, std::span<const Change> changes) {
  std::string error;
  imageOf(good, error);
  ASSERT_EQ(error, "");
  for (const Change &change : changes) {
    SCOPED_TRACE(change.name);
    std::string text = changed(good, change), said;
    EXPECT_NE(text, good) << "the text has no '" << change.from << "'";
    imageOf(text, said);
    EXPECT_NE(said.find(change.why), said.npos) << said;
  }
}

} // namespace

TEST(AieText, EachStageIsReadBack) {
  for (bool integers : {false, true})
    for (Herd herd : {Herd{1, 1}, Herd{4, 1}, Herd{4, 4}}) {
      Form form{.herd = herd, .integers = integers, .bias = true, .relu = true};
      hw::Image direct = imageOf(kSizes, form);
      for (Stage stage : {Stage::Program, Stage::Placed, Stage::Control}) {
        std::string error;
        hw::Image image = imageOf(textOf(kSizes, form, stage), error);
        ASSERT_EQ(error, "");
        EXPECT_EQ(hw::write(image), hw::write(direct));
      }
    }
}

TEST(AieText, WhatIsNotSoundIsRefused) { expectRefused(textOf(kSizes, {}, Stage::Placed), kChanges); }

TEST(AieText, ProgramsThatHaveNoTilesAreRefused) {
  expectRefused(textOf({600, 64, 64}, {.herd = {4, 4}, .relu = true}, Stage::Program), kProgramChanges);
}
