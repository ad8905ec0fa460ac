//===- GemmTileTest.cpp - how products are cut and packed ---------------------===//

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
  std::vector<Decision> free = gemmDecisions(sizes, {}, &context);
  ASSERT_EQ(free.size(), 2u);
  for (uint64_t i = 0; i < free[0].domain.count(); ++i) {
    auto decided = b.getDictionaryAttr(b.getNamedAttr("tile", free[0].domain.at(i)));
    Decision stages = gemmDecisions(sizes, decided, &context)[1];
    for (uint64_t j = 0; j < stages.domain.count(); ++j) {
      auto both = b.getDictionaryAttr({decided.getValue()[0], b.getNamedAttr("stages", stages.domain.at(j))});
      GemmTile tile = decidedGemmTile(sizes, both, &context);
      EXPECT_LE(tile.sharedBytes(), kSharedOfABlock) << tile.name();
      EXPECT_EQ(tile.stages, mlir::cast<mlir::IntegerAttr>(stages.domain.at(j)).getInt());
      std::optional<GemmTile> read = readGemmTile(writeGemmTile(tile, &context));
      ASSERT_TRUE(read);
      EXPECT_EQ(read->name(), tile.name());
    }
    EXPECT_TRUE(stages.domain.contains(stages.preferred));
  }
  EXPECT_TRUE(free[0].domain.contains(free[0].preferred));
}

TEST(GemmTile, WrongOnesAreNone) {
  mlir::MLIRContext context;
  mlir::Builder b(&context);
  auto written = [&](const char *tile, int64_t stages) {
    return b.getDictionaryAttr(
        {b.getNamedAttr("tile", b.getStringAttr(tile)), b.getNamedAttr("stages", b.getI64IntegerAttr(stages))});
  };
  EXPECT_TRUE(readGemmTile(written("128x256", 4)));
  EXPECT_FALSE(readGemmTile(written("128x256", 5))); // 5 * 48 KiB
  EXPECT_FALSE(readGemmTile(written("128x256", 1)));
  EXPECT_FALSE(readGemmTile(written("64x32", 2)));
  EXPECT_FALSE(readGemmTile(b.getStringAttr("128x128")));
  EXPECT_FALSE(readGemmTile({}));
}

// Many small tiles for few multiprocessors' worth of result, and the fewest bytes for much of it.
TEST(GemmTile, GrowsWithTheResult) {
  EXPECT_EQ(chooseGemmTile({1, 128, 256, 256}).name(), "64x64");
  EXPECT_EQ(chooseGemmTile({1, 8192, 8192, 8192}).name(), "128x256");
  EXPECT_EQ(chooseGemmTile({64, 64, 64, 64}).rows, 64);
  EXPECT_LE(chooseGemmTile({1, 128, 256, 64}).stages, 2);
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
