//===- GemmTileTest.cpp - how products are cut and packed ---------------------===//

#include "schemas/cuda/Rates.h"
#include "targets/cuda/product/GemmProduct.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::cuda;

namespace {

// Of a block.
constexpr int64_t kSharedOfABlock = 227 * 1024;

TEST(GemmTile, EveryDecisionFitsABlock) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  GemmSizes sizes{1, 512, 512, 512};
  std::vector<Decision> free = gemmDecisions(hw::builtinMachine(), sizes, {}, &context);
  ASSERT_EQ(free.size(), 3u);
  uint64_t columns = free[1].domain.count(), tiles = free[0].domain.count() * columns;
  EXPECT_EQ(tiles, 6u);
  for (uint64_t i = 0; i < tiles; ++i) {
    auto rows = b.getNamedAttr("rows", free[0].domain.at(i / columns));
    auto across = b.getNamedAttr("columns", free[1].domain.at(i % columns));
    Decision stages = gemmDecisions(hw::builtinMachine(), sizes, b.getDictionaryAttr({rows, across}), &context)[2];
    for (uint64_t j = 0; j < stages.domain.count(); ++j) {
      auto all = b.getDictionaryAttr({rows, across, b.getNamedAttr("stages", stages.domain.at(j))});
      GemmTile tile = decidedGemmTile(hw::builtinMachine(), sizes, all, &context);
      EXPECT_LE(tile.sharedBytes(), kSharedOfABlock) << tile.rows << "x" << tile.columns;
      EXPECT_EQ(kernels::writeTile(tile, &context), all);
      Result<GemmTile> read = readGemmTile(hw::builtinMachine(), all, "product", &context);
      ASSERT_TRUE(read);
      EXPECT_EQ(kernels::writeTile(*read, &context), all);
    }
    EXPECT_TRUE(stages.domain.contains(stages.preferred));
  }
  for (const Decision &one : free)
    EXPECT_TRUE(one.domain.contains(one.preferred)) << one.name;
}

TEST(GemmTile, WrongOnesAreNone) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  auto number = [&](const char *name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
  auto wrong = [&](mlir::Attribute written) {
    Result<GemmTile> tile = readGemmTile(hw::builtinMachine(), written, "product", &context);
    return tile ? "" : tile.error().message;
  };
  auto written = [&](int64_t rows, int64_t columns, int64_t stages) {
    return b.getDictionaryAttr({number("rows", rows), number("columns", columns), number("stages", stages)});
  };
  EXPECT_EQ(wrong(written(128, 256, 4)), "");
  EXPECT_EQ(wrong(written(128, 256, 5)), // 5 * 48 KiB
            "'product.stages' of its strategy is 5; its values are 2 to 4");
  EXPECT_EQ(wrong(written(128, 256, 1)), "'product.stages' of its strategy is 1; its values are 2 to 4");
  EXPECT_EQ(wrong(written(64, 32, 2)), "'product.columns' of its strategy is 32; its values are 64, 128, 256");
  EXPECT_EQ(wrong(b.getDictionaryAttr({number("rows", 64), number("columns", 64)})),
            "'product.stages' of its strategy is missing; its values are 2 to 8");
  EXPECT_EQ(wrong(b.getDictionaryAttr({number("rows", 64), number("columns", 64), number("stage", 2)})),
            "'product.stage' of its strategy is no field of it; it has columns, rows, stages; did you mean 'stages'?");
  EXPECT_EQ(wrong(b.getDictionaryAttr(
                {b.getNamedAttr("rows", b.getStringAttr("64")), number("columns", 64), number("stages", 2)})),
            "'product.rows' of its strategy is \"64\"; its values are 64, 128");
  EXPECT_NE(wrong(b.getStringAttr("128x128")), "");
  EXPECT_NE(wrong({}), "");
}

// Many small tiles for few multiprocessors' worth of result, and the fewest bytes for much of it.
TEST(GemmTile, GrowsWithTheResult) {
  auto cut = [](const GemmSizes &sizes) {
    GemmTile tile = chooseGemmTile(hw::builtinMachine(), sizes);
    return std::pair(tile.rows, tile.columns);
  };
  EXPECT_EQ(cut({1, 128, 256, 256}), (std::pair<int64_t, int64_t>(64, 64)));
  EXPECT_EQ(cut({1, 8192, 8192, 8192}), (std::pair<int64_t, int64_t>(128, 256)));
  EXPECT_EQ(chooseGemmTile(hw::builtinMachine(), {64, 64, 64, 64}).rows, 64);
  EXPECT_LE(chooseGemmTile(hw::builtinMachine(), {1, 128, 256, 64}).stages, 2);
}

// Counted on paper from h100.json.
TEST(GemmTile, RatesAreTheMachines) {
  const hw::Machine &machine = hw::builtinMachine();
  // 16 rows of 256 columns by 16 terms at 512 a clock; each warp reads its 512 bytes and a quarter of 8 KiB at 128.
  hw::ProductClocks wide = hw::productClocks(machine, 256, 16, false, true);
  EXPECT_EQ(wide.multiplying, 128);
  EXPECT_EQ(wide.reading, 4 * (512 + 2048) / 128.0);
  EXPECT_EQ(wide.taken(10), 128);
  EXPECT_EQ(wide.taken(70), 150);
  EXPECT_EQ(wide.taken(1000), 160); // operands come first: half of the port
  EXPECT_EQ(hw::productClocks(machine, 256, 8, true, false).reading, 4 * 2048 / 128.0);
  EXPECT_EQ(hw::productClocks(machine, 256, 8, true, false).multiplying, 128);
  // 5.5 TB/s in 1.83 GHz, of 132 multiprocessors; neighbours' requests join up to four at a time, and 64 pass at most.
  EXPECT_NEAR(hw::ratesOf(machine, 132, 1).l2, 22.77, 0.01);
  EXPECT_NEAR(hw::ratesOf(machine, 132, 2).l2, 45.54, 0.01);
  EXPECT_EQ(hw::ratesOf(machine, 132, 100).l2, 64);
  EXPECT_EQ(hw::ratesOf(machine, 1, 1).l2, 64);
  EXPECT_NEAR(hw::ratesOf(machine, 132, 1).dram, 0.92 * 3.35e12 / 1.83e9 / 132, 0.001);
}

TEST(GemmTile, ExpectsClocks) {
  const hw::Machine &machine = hw::builtinMachine();
  // Two tiles of 64 x 64, two steps of 16 KiB that pass 64 bytes a clock, as long as their products take with the
  // port; 64 x 64 sums; the launch, the first bytes and their barrier.
  EXPECT_EQ(gemmClocks(machine, {1, 100, 50, 80}, {64, 64}), 1500 + 560 + 170 + 20 + 2 * 256 + 12 * 32);
  // 8192^3: 2,048 tiles in 16 rounds of 128 steps, each 1,024 clocks of products and as many of the port.
  EXPECT_EQ(gemmClocks(machine, {1, 8192, 8192, 8192}, {128, 256}), 2250 + 16 * (128 * 1024 + 12 * 128));
  hw::Machine slow = machine;
  slow.clock.l2BytesPerSecond = 5.5e11;
  EXPECT_GT(gemmClocks(slow, {1, 8192, 8192, 8192}, {128, 256}),
            4 * gemmClocks(machine, {1, 8192, 8192, 8192}, {128, 256}));
}

TEST(GemmProduct, PacksColumnsWithTheirTermsSideBySide) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  auto number = [&](const char *name, int64_t value) { return b.getNamedAttr(name, b.getI64IntegerAttr(value)); };
  // Columns 1 and 2 of a matrix of 3 terms and 4 columns, in rows of 4.
  auto form = b.getDictionaryAttr({b.getNamedAttr("form", b.getStringAttr("columns16")), number("k", 3), number("n", 2),
                                   number("offset", 1), number("stride_k", 4), number("stride_n", 1),
                                   number("pitch", 8), number("size", 32)});
  Tensor constant(DType::F16, {3, 4});
  const uint16_t values[] = {10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33};
  std::memcpy(constant.as<std::byte>(), values, sizeof values);
  std::vector<uint16_t> packed(16, 0xffff);
  auto bytes = std::as_writable_bytes(std::span(packed));
  ASSERT_TRUE(packGemm(form, constant, bytes));
  EXPECT_EQ(packed, (std::vector<uint16_t>{11, 21, 31, 0, 0, 0, 0, 0, 12, 22, 32, 0, 0, 0, 0, 0}));

  // Forms that text may have.
  auto with = [&](const char *name, mlir::Attribute value) {
    mlir::NamedAttrList changed(form);
    changed.set(name, value);
    return changed.getDictionary(&context);
  };
  EXPECT_FALSE(packGemm(b.getDictionaryAttr({}), constant, bytes));
  EXPECT_FALSE(packGemm(with("form", b.getStringAttr("panels16")), constant, bytes));
  EXPECT_FALSE(packGemm(with("offset", b.getI64IntegerAttr(3)), constant, bytes)); // the last element would be the 13th
  EXPECT_FALSE(packGemm(with("offset", b.getI64IntegerAttr(-1)), constant, bytes));
  EXPECT_FALSE(packGemm(with("stride_k", b.getI64IntegerAttr(INT64_MAX)), constant, bytes));
  EXPECT_FALSE(packGemm(with("k", b.getI64IntegerAttr(9)), constant, bytes));
  EXPECT_FALSE(packGemm(with("n", b.getStringAttr("2")), constant, bytes));
  EXPECT_FALSE(packGemm(with("pitch", b.getI64IntegerAttr(7)), constant, bytes));
  EXPECT_FALSE(packGemm(form, constant, bytes.first(30)));
}

} // namespace
