//===- ContractionTest.cpp - what follows a product, and of what it is ----===//
#include "targets/common/roots/Contraction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

class ContractionTest : public testing::Test {
protected:
  ContractionTest() { context.loadDialect<dmir::DMIRDialect, func::FuncDialect>(); }

  /// The value that a function of such arguments and ops returns.
  Value read(const std::string &arguments, const std::string &ops, const std::string &result) {
    module = parseSourceString<ModuleOp>("func.func @main(" + arguments + ") -> " + result + " {\n" + ops +
                                             "  return %y : " + result + "\n}\n",
                                         &context);
    EXPECT_TRUE(module);
    return module ? (*module->getOps<func::FuncOp>().begin()).front().getTerminator()->getOperand(0) : Value();
  }
  Value argument(unsigned number) { return (*module->getOps<func::FuncOp>().begin()).getArgument(number); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr const char *kSums = "  %p = dmir.matmul %a, %b : (tensor<3x4x8xf32>, tensor<8x5xf32>) -> tensor<3x4x5xf32>\n"
                              "  %s = dmir.sub %r, %p : (tensor<5xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>\n"
                              "  %y = dmir.relu %s : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>\n";
constexpr const char *kArguments = "%a: tensor<3x4x8xf32>, %b: tensor<8x5xf32>, %r: tensor<5xf32>";

} // namespace

TEST_F(ContractionTest, WhatFollowsIsInOrder) {
  Value last = read(kArguments, kSums, "tensor<3x4x5xf32>");
  std::optional<Chain> chain = chainTo(last, [](const Chain &) { return true; });
  ASSERT_TRUE(chain);
  EXPECT_TRUE(isa<dmir::MatMulOp>(chain->product));
  ASSERT_EQ(chain->followers.size(), 2u);
  EXPECT_TRUE(isa<dmir::SubOp>(chain->followers[0].op));
  EXPECT_EQ(chain->followers[0].value, chain->product->getResult(0));
  EXPECT_EQ(chain->followers[0].other, argument(2)) << "the operand that is not the product's, here the first";
  EXPECT_EQ(chain->followers[1].value, chain->followers[0].op->getResult(0));
  EXPECT_FALSE(chain->followers[1].other);
}

TEST_F(ContractionTest, WhatIsNotComputedEndsTheChain) {
  Value last = read(kArguments, kSums, "tensor<3x4x5xf32>");
  auto withoutSub = [](const Chain &chain) { return !isa<dmir::SubOp>(chain.followers.back().op); };
  EXPECT_FALSE(chainTo(last, withoutSub));
  // A value with two readers is needed elsewhere as well.
  Value twice = read("%a: tensor<2x3xf32>, %b: tensor<3x4xf32>",
                     "  %p = dmir.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>\n"
                     "  %q = dmir.relu %p : (tensor<2x4xf32>) -> tensor<2x4xf32>\n"
                     "  %y = dmir.add %q, %p : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>\n",
                     "tensor<2x4xf32>");
  EXPECT_FALSE(chainTo(twice, [](const Chain &) { return true; }));
}

TEST_F(ContractionTest, OperandsMeetTheResult) {
  Value product = read("%a: tensor<3x4x8xf32>, %b: tensor<8x5xf32>, %0: tensor<1xf32>, %1: tensor<5xf32>, "
                       "%2: tensor<4x1xf32>, %3: tensor<3x4x5xf32>, %4: tensor<1x1x5xf32>, %5: tensor<1x4x5xf32>",
                       "  %y = dmir.matmul %a, %b : (tensor<3x4x8xf32>, tensor<8x5xf32>) -> tensor<3x4x5xf32>\n",
                       "tensor<3x4x5xf32>");
  const Spread expected[] = {Spread::One,       Spread::Outputs, Spread::Otherwise,
                             Spread::Otherwise, Spread::Outputs, Spread::Otherwise};
  for (auto [i, spread] : llvm::enumerate(expected))
    EXPECT_EQ(spreadOver(product.getDefiningOp(), argument(static_cast<unsigned>(i) + 2)), spread) << i;
  Value image =
      read("%x: tensor<1x2x6x6xf32>, %w: tensor<7x2x3x3xf32>, %0: tensor<7x1x1xf32>, %1: tensor<1x1x1x4xf32>",
           "  %y = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: "
           "0, 0>, high = array<i64: 0, 0>} : (tensor<1x2x6x6xf32>, tensor<7x2x3x3xf32>) -> "
           "tensor<1x7x4x4xf32>\n",
           "tensor<1x7x4x4xf32>");
  EXPECT_EQ(spreadOver(image.getDefiningOp(), argument(2)), Spread::Outputs);
  EXPECT_EQ(spreadOver(image.getDefiningOp(), argument(3)), Spread::Otherwise);
}

/// What computes an operand is not looked at, or as far as it is a view.
TEST_F(ContractionTest, OperandsAreTakenAsTheyAre) {
  Value last = read("%a: tensor<8x4xf32>, %b: tensor<8x5xf32>",
                    "  %t = dmir.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>\n"
                    "  %e = dmir.exp %b : (tensor<8x5xf32>) -> tensor<8x5xf32>\n"
                    "  %y = dmir.matmul %t, %e : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>\n",
                    "tensor<4x5xf32>");
  Contraction view = Contraction::of(last.getDefiningOp()), whole = Contraction::ofWhole(last.getDefiningOp());
  ASSERT_TRUE(view.lhs && whole.lhs && whole.rhs);
  EXPECT_FALSE(view.rhs);
  EXPECT_TRUE(view.lhsRow.is(1) && whole.lhsRow.is(8));
  for (const Contraction &one : {view, whole})
    EXPECT_TRUE(one.m.is(4) && one.k.is(8) && one.n.is(5));
}
