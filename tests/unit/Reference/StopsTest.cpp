//===- StopsTest.cpp - programs, and devices that evaluate their kernels --===//
#include "Cases.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Reference/Stops.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::reference::test {

namespace {

/// y = card(x + x): the sum lies in an arena, and the card's kernel reads its halves in the other order through an
/// alias.
mlir::OwningOpRef<mlir::ModuleOp> program() {
  context().loadDialect<dlir::DLIRDialect>();
  return parse(R"(
    dlir.program @main attributes {arenas = [{lower_bound = 64 : i64, size = 64 : i64}],
        inputs = [{name = "x", type = tensor<4xf32>}], outputs = [{name = "y", type = tensor<2xf32>}]} {
      %x = dlir.buffer input "x" : tensor<4xf32> {size = 16 : i64}
      %t = dlir.buffer arena "t" : tensor<4xf32> {size = 16 : i64}
      %h = dlir.buffer alias "h" of %t : tensor<2xf32> {offset = 8 : i64, size = 8 : i64}
      %y = dlir.buffer output "y" : tensor<2xf32> {size = 8 : i64}
      %0 = dlir.dispatch @twice(%x) -> (%t) {nodes = ["a"], queue = "cpu", work = 1 : i64}
      %1 = dlir.dispatch @card(%h) -> (%y) after %0 {nodes = ["b"], queue = "card", work = 1 : i64}
    }
    dlir.kernel @twice on "cpu" attributes {strategy = {}} {
    ^bb0(%a: tensor<4xf32>):
      %0 = dmir.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      dmir.yield %0 : tensor<4xf32>
    }
    dlir.kernel @card on "card" attributes {strategy = {}} {
    ^bb0(%a: tensor<2xf32>):
      %0 = dmir.neg %a : (tensor<2xf32>) -> tensor<2xf32>
      dmir.yield %0 : tensor<2xf32>
    })");
}

} // namespace

TEST(ReferenceStops, ProgramsRunOnBytes) {
  mlir::OwningOpRef<mlir::ModuleOp> module = program();
  ASSERT_TRUE(module);
  Result<std::vector<Tensor>> results = evaluateEntry(*module, "main", {tensorOf("4xf32: 1 2 3 4")}, {});
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 1u);
  EXPECT_EQ(results->front().asDouble(0), -6);
  EXPECT_EQ(results->front().asDouble(1), -8);
}

TEST(ReferenceStops, DevicesEvaluateTheirKernels) {
  mlir::OwningOpRef<mlir::ModuleOp> module = program();
  ASSERT_TRUE(module);
  KernelEvaluators devices;
  devices["card"] = [](mlir::Operation *kernel, llvm::ArrayRef<Tensor> operands) -> Result<std::vector<Tensor>> {
    EXPECT_EQ(mlir::SymbolTable::getSymbolName(kernel), "card");
    Tensor result(DType::F32, operands[0].shape());
    for (int64_t i = 0; i < 2; ++i)
      result.setDouble(i, 100 + operands[0].asDouble(i));
    return std::vector<Tensor>{result};
  };
  Result<std::vector<Tensor>> results = evaluateEntry(*module, "main", {tensorOf("4xf32: 1 2 3 4")}, devices);
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().asDouble(0), 106);
  devices["card"] = [](mlir::Operation *, llvm::ArrayRef<Tensor>) -> Result<std::vector<Tensor>> {
    return Error{ErrorKind::Constraint, "not in this form"};
  };
  results = evaluateEntry(*module, "main", {tensorOf("4xf32: 1 2 3 4")}, devices);
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().kind, ErrorKind::Constraint);
  EXPECT_EQ(results.error().message, "not in this form");
  EXPECT_FALSE(evaluateEntry(*module, "other", {}, devices));
}

} // namespace dmxc::reference::test
