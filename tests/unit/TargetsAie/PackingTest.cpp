//===- PackingTest.cpp - bytes lie as mlir-aie's kernel takes them --------===//
//
// What the core of an array calls for a product of bytes is matmul_i8_i32 of mlir-aie's aie_kernels/aie2/mm.cc: a in
// tiles of 4 x 8, b of 8 x 8, c of 4 x 8, row by row inside of a tile and tile by tile. Checked are the words of the
// memory tile's BDs, which put matrices into that order, and the device's kernel, against that library's pointers.
//
//===----------------------------------------------------------------------===//
#include "RunProduct.h"

#include "runtime/devices/aie/Array.h"

#include <gtest/gtest.h>

#include <random>

using namespace aietest;
using dmxc::aie::Part;

namespace {

constexpr int64_t kM = 64, kK = 64, kN = 64; ///< of a core's tiles
constexpr int64_t kR = 4, kS = 8, kT = 8;    ///< of the library's aie::mmul: size_A is r s, size_B s t, size_C r t

/// As the library steps through its operands: pA + (z * colA + i) * size_A and so on, with z, i and j in tiles.
int64_t inA(int64_t row, int64_t k) { return (row / kR * (kK / kS) + k / kS) * kR * kS + row % kR * kS + k % kS; }
int64_t inB(int64_t k, int64_t column) {
  return (k / kS * (kN / kT) + column / kT) * kS * kT + k % kS * kT + column % kT;
}
int64_t inC(int64_t row, int64_t column) {
  return (row / kR * (kN / kT) + column / kT) * kR * kT + row % kR * kT + column % kT;
}

dmxc::aie::Mapping bytes() {
  dmxc::aie::Mapping mapping = mappingOf({kM, 2 * kK, kN}, {.integers = true});
  mlir::Builder b(&context());
  mapping.numbers = dmxc::aie::kI8;
  for (dmxc::aie::Operand &operand : mapping.operands)
    if (operand.part != Part::C)
      operand.tensor = operand.tensor.clone(b.getI8Type());
  return mapping;
}

/// The words that the first BD of a memory tile's channel moves, in their order, from the buffer's begin.
std::vector<int64_t> wordsOf(const hw::Image &image, hw::Direction direction, uint32_t channel) {
  using K = hw::RegisterKind;
  std::map<uint32_t, uint32_t> registers;
  for (const hw::CdoCommand &command : image.overlays[0].initial)
    for (size_t i = 0; i < std::max<size_t>(command.data.size(), 1); ++i)
      registers[static_cast<uint32_t>(command.address + 4 * i)] =
          command.data.empty() ? command.value : command.data[i];
  auto at = [&](const hw::Register &what) {
    return registers[hw::addressOf({0, 1}, *hw::offsetOf(hw::TileKind::Memory, what))];
  };
  hw::QueueWord start;
  EXPECT_TRUE(hw::decode(at({K::Queue, channel, 0, direction}), start));
  std::vector<uint32_t> words;
  for (uint32_t word = 0; word < hw::kBdWords[static_cast<size_t>(hw::TileKind::Memory)]; ++word)
    words.push_back(at({K::Bd, start.bd, word}));
  std::string error;
  std::optional<hw::Bd> bd = hw::decodeBd(hw::TileKind::Memory, words, error);
  EXPECT_TRUE(bd) << error;
  std::vector<int64_t> out;
  dmxrt::aie::Walk walk(*bd);
  for (int64_t i = 0; i < (*bd)[hw::BdField::Length]; ++i, walk.next())
    out.push_back(walk.address() - (*bd)[hw::BdField::Base]);
  return out;
}

/// Expects that walked words of a matrix, row by row in its buffer, lie where `place` says, in the other end.
template <typename Place>
void expectPlaces(const std::vector<int64_t> &words, int64_t rows, int64_t columns, int64_t bytes, Place place) {
  ASSERT_EQ(static_cast<int64_t>(words.size()), rows * columns * bytes / 4);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      int64_t byte = place(row, column) * bytes;
      ASSERT_EQ(4 * words[static_cast<size_t>(byte / 4)] + byte % 4, (row * columns + column) * bytes)
          << row << ", " << column;
    }
}

} // namespace

TEST(AiePacking, MemoryTilesPutBytesIntoTheLibrarysOrder) {
  hw::Image image = imageOf(bytes());
  expectPlaces(wordsOf(image, hw::Direction::MM2S, 0), kM, kK, 1, inA);
  expectPlaces(wordsOf(image, hw::Direction::MM2S, 1), kK, kN, 1, inB);
  expectPlaces(wordsOf(image, hw::Direction::S2MM, 2), kM, kN, 4, inC); // c, on its way out of a core
}

TEST(AiePacking, TheKernelTakesTheLibrarysOrder) {
  std::mt19937_64 random(5);
  for (hw::KernelId kernel : {hw::KernelId::MatmulI8I32, hw::KernelId::MatmulUi8I32}) {
    std::vector<uint8_t> a(kM * kK), b(kK * kN);
    std::vector<int32_t> c(kM * kN), expected(kM * kN);
    for (std::vector<uint8_t> *operand : {&a, &b})
      for (uint8_t &byte : *operand)
        byte = static_cast<uint8_t>(random());
    for (size_t i = 0; i < c.size(); ++i)
      expected[i] = c[i] = static_cast<int32_t>(random() % 2000) - 1000;
    auto signedA = [&](size_t at) { return kernel == hw::KernelId::MatmulI8I32 ? int32_t(int8_t(a[at])) : a[at]; };
    for (int64_t row = 0; row < kM; ++row)
      for (int64_t column = 0; column < kN; ++column)
        for (int64_t k = 0; k < kK; ++k)
          expected[static_cast<size_t>(inC(row, column))] +=
              signedA(static_cast<size_t>(inA(row, k))) * int8_t(b[static_cast<size_t>(inB(k, column))]);
    hw::Call call{kernel, {}, {kM, kK, kN}};
    std::byte *touched[] = {reinterpret_cast<std::byte *>(a.data()), reinterpret_cast<std::byte *>(b.data()),
                            reinterpret_cast<std::byte *>(c.data())};
    dmxrt::aie::compute(call, touched);
    EXPECT_EQ(c, expected);
  }
}

/// A step of bytes is one of the core's 256 multiplications of a clock. So many steps more along k cost as many clocks,
/// and none of them is had for less where an operand is.
TEST(AiePacking, AStepOfBytesTakesAClock) {
  hw::Machine machine = *hw::machineOf("npu1");
  EXPECT_EQ(hw::kStepI8.m * hw::kStepI8.k * hw::kStepI8.n, 256);
  auto clocks = [&](int64_t m, int64_t k, int64_t n) {
    return hw::clocksOf(machine, {hw::KernelId::MatmulI8I32, {}, {m, k, n}});
  };
  for (int64_t n : {16, 64})
    EXPECT_EQ(clocks(64, 72, n) - clocks(64, 64, n), 64 / kR * (n / kT));
  // A block of 16 x 16 sums: 1,024 bytes in by 64 a clock, out by 32; 8 steps a step of k; 4 for its loop. 40 the call.
  EXPECT_EQ(clocks(64, 64, 64), 40 + 16 * (16 + 8 * 8 + 32 + 4));
  EXPECT_EQ(hw::clocksOf(machine, {hw::KernelId::MatmulBf16F32, {}, {64, 32, 64}}), 40 + 32 * (8 + 8 * 4 + 16 + 4));
}
