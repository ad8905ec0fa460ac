//===- SparsityTest.cpp - facts of ops, and boxes of their rules ----------===//
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Dialect/DMIR/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace dmxc;

namespace {

struct Sparsity : testing::Test {
  Sparsity() { context.loadDialect<dmir::DMIRDialect, func::FuncDialect>(); }
  /// The value of the only op with a fact.
  Value parse(const std::string &fact) {
    std::string op =
        "  %0 = dmir.relu %a {dmir.sparsity = {" + fact + "}} : (tensor<64x48xf32>) -> tensor<64x48xf32>\n";
    module = dmir::parseText("func.func @main(%a: tensor<64x48xf32>) -> tensor<64x48xf32> {\n" + op +
                                 "  return %0 : tensor<64x48xf32>\n}\n",
                             "text", context);
    Value found;
    if (module)
      module->walk([&](dmir::ReluOp op) { found = op.getResult(); });
    return found;
  }
  std::string errorOf(const std::string &fact) {
    std::string text;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { text += d.str(); });
    return parse(fact) ? "none" : text;
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(Sparsity, BoxesAgreeWithElements) {
  const char *rules[] = {"[affine_set<(i, j) : (i - j >= 0)>]",
                         "[affine_set<(i, j) : (i floordiv 16 - j floordiv 12 == 0)>]",
                         "[affine_set<(i, j) : (i - 32 >= 0)>, affine_set<(i, j) : (j - 40 >= 0, 7 - i >= 0)>]",
                         "[affine_set<(i, j) : ((i - j) mod 4 == 0, j - 5 >= 0)>]", "[]"};
  for (const char *rule : rules) {
    Value value = parse(std::string("known = {keep = ") + rule + ", value = 0.0 : f32}");
    ASSERT_TRUE(value) << rule;
    std::optional<dmir::Known> known = dmir::knownOf(value);
    ASSERT_TRUE(known) << rule;
    EXPECT_FALSE(dmir::demandOf(value));
    auto keeps = [&](int64_t i, int64_t j) { return dmir::keeps(known->keep, {i, j}, {}); };
    for (int64_t first = 0; first < 64; first += 8) {
      dmir::Interval rows{first, first + 7};
      auto [from, to] = dmir::keptColumns(known->keep, {rows}, 48, {});
      auto runs = dmir::keptColumnRuns(known->keep, {rows}, 48, 4, {});
      for (int64_t j = 0; j < 48; ++j) {
        bool kept = false;
        for (int64_t i = rows.min; i <= rows.max; ++i)
          kept |= keeps(i, j);
        EXPECT_TRUE(!kept || (from <= j && j < to)) << rule << " " << first << " " << j;
        EXPECT_TRUE(!kept || llvm::any_of(runs, [&](dmir::Run r) { return r.first <= j && j < r.second; }));
      }
    }
    for (int64_t first = 0; first < 48; first += 8) {
      auto [from, to] = dmir::keptRows(known->keep, {}, {first, first + 7}, 64, {});
      for (int64_t i = 0; i < 64; ++i)
        for (int64_t j = first; j < first + 8; ++j)
          EXPECT_TRUE(!keeps(i, j) || (from <= i && i < to)) << rule << " " << i << " " << j;
    }
  }
}

TEST_F(Sparsity, RangesAreTight) {
  auto tril = *dmir::knownOf(parse("known = {keep = [affine_set<(i, j) : (i - j >= 0)>], value = 0.0 : f32}"));
  EXPECT_EQ(dmir::keptColumns(tril.keep, {{8, 15}}, 48, {}), dmir::Run(0, 16));
  EXPECT_EQ(dmir::keptRows(tril.keep, {}, {8, 15}, 64, {}), dmir::Run(8, 64));
  EXPECT_TRUE(dmir::keepsNothing(tril.keep, {{0, 7}, {8, 15}}, {}));
  EXPECT_FALSE(dmir::keepsNothing(tril.keep, {{0, 8}, {8, 15}}, {}));
  auto two = *dmir::knownOf(parse("known = {keep = [affine_set<(i, j) : (3 - j >= 0)>, "
                                  "affine_set<(i, j) : (j - 40 >= 0)>], value = 0.0 : f32}"));
  auto runs = dmir::keptColumnRuns(two.keep, {{0, 63}}, 48, 4, {});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0], dmir::Run(0, 4));
  EXPECT_EQ(runs[1], dmir::Run(40, 48));
}

TEST_F(Sparsity, FactsThatAreNoneAreNamed) {
  auto known = [](const std::string &rest) { return "known = {" + rest + "}"; };
  struct {
    std::string fact, message;
  } cases[] = {
      {known("keep = [affine_set<(i) : (i >= 0)>], value = 0.0 : f32"), "a set over 1 dims and 0 symbols"},
      {known("keep = [affine_set<(i, j) : (i >= 0)>], value = 0 : i32"), "C4"},
      {known("keep = [affine_set<(i, j) : (i >= 0)>], value = \"x\""), "C4"},
      {known("keep = [affine_set<(i, j) : (i >= 0)>]"), "C1: is none"},
      {known("keep = [1], value = 0.0 : f32"), "C1: keeps something else than integer sets"},
      {known("keep = [affine_set<(i, j)[n] : (i - n >= 0)>], value = 0.0 : f32"), "1 symbols"},
      {known("keep = [affine_set<(i, j) : (i ceildiv 2 >= 0)>], value = 0.0 : f32"), "C2"},
      {known("keep = [], value = 0.0 : f32, dims = 3"), "C1: is none"},
      {"other = {keep = []}", "has 'other' in 'dmir.sparsity'"},
      {"known = 3", "C1: is none"},
      {"operands = [unit]", "has no fact or 'unit' for each of 0 operands"},
  };
  for (const auto &[fact, message] : cases)
    EXPECT_NE(errorOf(fact).find(message), std::string::npos) << fact << "\n" << errorOf(fact);
}

} // namespace
