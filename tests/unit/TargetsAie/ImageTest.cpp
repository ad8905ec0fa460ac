//===- ImageTest.cpp - images as bytes, and bytes that are none -----------===//
#include "RunProduct.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

using namespace aietest;

namespace {

const Sizes kSizes{64, 64, 64};

std::string errorOf(const hw::Image &image) {
  std::string error;
  EXPECT_FALSE(hw::readImage(hw::write(image), error));
  return error;
}

} // namespace

TEST(AieImage, BytesAndBack) {
  for (bool swapped : {false, true}) {
    hw::Image image = imageOf({100, 300, 200}, Form{.swapped = swapped});
    std::vector<std::byte> bytes = hw::write(image);
    std::string error;
    std::optional<hw::Image> read = hw::readImage(bytes, error);
    ASSERT_TRUE(read) << error;
    EXPECT_EQ(*read, image);
    EXPECT_EQ(hw::write(*read), bytes);
  }
}

TEST(AieImage, WhatIsNotThereIsNamed) {
  hw::Image good = imageOf(kSizes);
  auto with = [&](auto change) {
    hw::Image image = good;
    change(image);
    return errorOf(image);
  };
  EXPECT_EQ(with([](auto &i) { i.machine = "npu9"; }),
            "it is for the machine 'npu9'; known are npu1, npu1_1col, npu1_2col, npu1_3col, npu1_4col, npu4");
  EXPECT_EQ(with([](auto &i) { i.kernels[0].overlay = 1; }), "kernel 'product': it needs overlay 1 of 1");
  EXPECT_EQ(with([](auto &i) { i.kernels.push_back(i.kernels[0]); }), "there are two kernels 'product'");
  EXPECT_EQ(with([](auto &i) { i.kernels[0].arguments[0].pitch = 63; }),
            "kernel 'product': argument 'a' does not fit its form");
  EXPECT_EQ(with([](auto &i) { i.kernels[0].arguments[1].rows = 1 << 24; }),
            "kernel 'product': argument 'b' has a form that is mostly padding");
  EXPECT_EQ(with([](auto &i) { i.kernels[0].control[0].address = 0x30000000; }),
            "kernel 'product': op 0 (blockwrite) writes 0x30000000, where the machine has no register");
  EXPECT_EQ(with([](auto &i) { i.kernels[0].control[1].argument = 3; }),
            "kernel 'product': op 1 (patch) patches in argument 3 of 3");
  EXPECT_EQ(with([](auto &i) { i.kernels[0].control.back().channel = 2; }),
            "kernel 'product': op 14 (sync) waits for channel 2 of a shim tile");
  EXPECT_EQ(with([](auto &i) { i.overlays[0].programs[0].code.pop_back(); }),
            "overlay 'matmul_bf16_f32_1x1': the program of core (0,2) does not end");
  EXPECT_EQ(with([](auto &i) { i.overlays[0].programs[0].tile.row = 1; }),
            "overlay 'matmul_bf16_f32_1x1': the program of core (0,1) is for a tile that is no core");
  EXPECT_EQ(
      with([](auto &i) { i.overlays[0].programs[0].code.resize(2000, {hw::CoreOp::Halt, 0, 0}); }),
      "overlay 'matmul_bf16_f32_1x1': the program of core (0,2) takes 39168 bytes of program memory, there are 16384");
}

/// An image with functions of users is of a version of its own, and says what they are.
TEST(AieImage, FunctionsOfUsers) {
  hw::Image good = imageOf(kSizes);
  const std::vector<std::byte> before = hw::write(good);
  good.functions = {{"acme.argmax", "argmax", 0, 77, 1, {{"x", 2048, false}, {"y", 8, true}}}};
  good.objects = {std::vector<std::byte>(5, std::byte(7))};
  const std::vector<std::byte> bytes = hw::write(good);
  std::string error;
  std::optional<hw::Image> read = hw::readImage(bytes, error);
  ASSERT_TRUE(read) << error;
  EXPECT_EQ(*read, good);
  EXPECT_EQ(std::to_integer<int>(before[4]), 4);
  EXPECT_EQ(std::to_integer<int>(bytes[4]), 5);
  for (size_t size = before.size(); size < bytes.size(); size += 4)
    EXPECT_FALSE(hw::readImage(std::span(bytes).first(size), error)) << size;
  auto with = [&](auto change) {
    hw::Image image = good;
    change(image);
    return errorOf(image);
  };
  EXPECT_EQ(with([](auto &i) { i.objects.clear(); }), "the user's function 'argmax' is of object 0 of 0");
  EXPECT_EQ(with([](auto &i) { i.functions[0].dims = 7; }),
            "the user's function 'argmax' takes 2 buffers and 7 sizes; calls have 1 to 6 and up to 6");
  EXPECT_EQ(with([](auto &i) { i.functions[0].buffers[1].bytes = 65540; }),
            "the user's function 'argmax' takes 65540 bytes of 'y', cores have 65536");
  EXPECT_EQ(with([](auto &i) { i.overlays[0].programs[0].code[0] = {hw::CoreOp::CallUser, 0, 1}; }),
            "overlay 'matmul_bf16_f32_1x1': core (0,2) calls function 1 of 1");
}

/// The way that dmx-fuzz-bundle goes: what is read at all is run, and ends by a name.
TEST(AieImage, MutatedBytesAreRefusedOrRun) {
  const std::vector<std::byte> good = hw::write(imageOf(kSizes));
  Matrices of = randomMatrices(kSizes, 1);
  std::mt19937_64 random(11);
  int ran = 0;
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> bytes = good;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      size_t at = random() % (bytes.size() / 4) * 4;
      uint32_t word = 0;
      std::memcpy(&word, &bytes[at], 4);
      word ^= random() % 4 ? 1u << random() % 32 : static_cast<uint32_t>(random());
      std::memcpy(&bytes[at], &word, 4);
    }
    if (random() % 8 == 0)
      bytes.resize(random() % bytes.size());
    std::string error;
    std::optional<hw::Image> image = hw::readImage(bytes, error);
    EXPECT_NE(image.has_value(), !error.empty());
    bool same = image && image->kernels.size() == 1 && image->kernels[0].name == "product";
    if (!same || ran >= 150)
      continue;
    ++ran;
    Outcome outcome = run(bytes, kSizes, of);
    if (!outcome.error.empty())
      EXPECT_NE(outcome.error.find(": "), std::string::npos) << outcome.error;
  }
  EXPECT_EQ(ran, 150);
}
