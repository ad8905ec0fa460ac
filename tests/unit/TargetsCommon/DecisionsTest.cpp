//===- DecisionsTest.cpp - what is free of kernels for any processor ------===//

#include "RegionHarness.h"

#include "dmxc/Phases/Decisions.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::kernels::test;
using namespace mlir;

namespace {

/// One region of a target: `rows` rows of numbers, e to the power of each.
struct Region {
  explicit Region(int64_t rows) {
    DialectRegistry registry;
    target.backend->registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadDialect<dmir::DMIRDialect, dlir::DLIRDialect, func::FuncDialect>();
    context.loadAllAvailableDialects();
    std::string text = R"(
      func.func @main(%x: tensor<$rowsx3xf32>) -> tensor<$rowsx3xf32> {
        %y = dmir.region "$target" (%a = %x : tensor<$rowsx3xf32>) -> (tensor<$rowsx3xf32>) {
          %b = dmir.exp %a : (tensor<$rowsx3xf32>) -> tensor<$rowsx3xf32>
          dmir.yield %b : tensor<$rowsx3xf32>
        }
        return %y : tensor<$rowsx3xf32>
      })";
    module = parseSourceString<ModuleOp>(
        substitute(text, {{"rows", std::to_string(rows)}, {"target", target.backend->name().str()}}), &context);
    if (module)
      module->walk([&](dmir::RegionOp op) { region = op; });
  }

  std::vector<Decision> free() { return target.backend->decisions(region, {}); }
  /// The strategy where this is decided.
  Result<DictionaryAttr> with(StringRef name, int64_t value) {
    Builder b(&context);
    auto decided = b.getDictionaryAttr(b.getNamedAttr(name, b.getI64IntegerAttr(value)));
    region.setStrategyAttr(b.getDictionaryAttr(b.getNamedAttr(strategy::kDecided, decided)));
    return completeStrategy(*target.backend, region);
  }

  MLIRContext context;
  RegionTarget target = makeRegionTarget();
  OwningOpRef<ModuleOp> module;
  dmir::RegionOp region;
};

TEST(Decisions, TheGrainIsFree) {
  Region large(100000);
  ASSERT_TRUE(large.region);
  std::vector<Decision> free = large.free();
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0].name, "grain");
  EXPECT_EQ(free[0].scope, "");
  EXPECT_EQ(free[0].effect, Effect::Bits);
  EXPECT_TRUE(free[0].inTask);
  EXPECT_TRUE(free[0].domain.contains(free[0].preferred));
  auto plain = large.target.backend->chooseStrategy(large.region);
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->get(strategy::kGrain), free[0].preferred);
}

TEST(Decisions, ADecidedGrainIsObeyed) {
  Region large(100000);
  ASSERT_TRUE(large.region);
  auto before = large.target.backend->chooseStrategy(large.region);
  ASSERT_TRUE(before) << before.error().message;
  Decision grain = large.free().front();
  int64_t other = grain.preferred == grain.domain.at(1) ? 1 : 2;
  auto after = large.with("grain", other);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->getAs<IntegerAttr>(strategy::kGrain).getInt(), other);
  NamedAttrList rest(*after);
  rest.erase(strategy::kDecided);
  rest.set(strategy::kGrain, before->get(strategy::kGrain));
  EXPECT_EQ(rest.getDictionary(&large.context), *before);
  for (auto [name, value] : {std::pair("grain", 0), std::pair("grain", 1 << 30), std::pair("rows", 1)}) {
    auto refused = large.with(name, value);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(large.target.backend->name().str()), std::string::npos)
        << refused.error().message;
  }
}

TEST(Decisions, OneItemLeavesNothing) {
  Region small(1);
  ASSERT_TRUE(small.region);
  EXPECT_TRUE(small.free().empty());
}

} // namespace
