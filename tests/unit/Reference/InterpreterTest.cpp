//===- InterpreterTest.cpp - functions, regions, errors, coverage ---------===//
#include "Cases.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <unistd.h>

namespace dmxc::reference::test {

namespace {

/// A module with one region, built through the printer's own syntax so that this test does not fix that syntax.
mlir::OwningOpRef<mlir::ModuleOp> moduleWithRegion() {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(R"(
    func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %c = dmir.constant dense<[1.0, 2.0]> : tensor<2xf32> loc("weight")
      return %c, %x : tensor<2xf32>, tensor<2xf32>
    })");
  auto function = module->lookupSymbol<mlir::func::FuncOp>("main");
  mlir::Operation *constant = &function.getBody().front().front(), *end = function.getBody().front().getTerminator();
  mlir::OpBuilder builder(end);
  auto named = [&](const char *name) { return mlir::NameLoc::get(builder.getStringAttr(name)); };
  mlir::Value x = function.getArgument(0), c = constant->getResult(0);
  mlir::OperationState state(named("fused"), dmir::RegionOp::getOperationName());
  state.addOperands({x, c});
  state.addTypes({x.getType(), x.getType()});
  state.addAttribute("device", builder.getStringAttr("cpu"));
  mlir::Region *body = state.addRegion();
  auto *block = new mlir::Block;
  body->push_back(block);
  block->addArguments({x.getType(), x.getType()}, {named("a"), named("b")});
  auto region = llvm::cast<dmir::RegionOp>(builder.create(state));
  builder.setInsertionPointToEnd(block);
  mlir::Value sum = dmir::AddOp::create(builder, named("inner"), block->getArgument(0), block->getArgument(1));
  dmir::YieldOp::create(builder, named("fused"), mlir::ValueRange{sum, block->getArgument(0)});
  builder.setInsertionPoint(end);
  mlir::Value product = dmir::MulOp::create(builder, named("outer"), region.getResult(0), region.getResult(1));
  end->setOperand(0, product);
  EXPECT_TRUE(mlir::succeeded(module->verify()));
  return module;
}

} // namespace

TEST(ReferenceFunction, WalksConstantsAndRegions) {
  mlir::OwningOpRef<mlir::ModuleOp> module = moduleWithRegion();
  std::vector<std::string> seen;
  Result<std::vector<Tensor>> results =
      evaluateFunction(module->lookupSymbol<mlir::func::FuncOp>("main"), {tensorOf("2xf32: 10 20")},
                       [&](mlir::Operation *op, llvm::ArrayRef<Tensor> results) {
                         seen.push_back(dmir::nodeName(op));
                         EXPECT_EQ(results.size(), op->getNumResults());
                       });
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 2u);
  expectTensor((*results)[0], tensorOf("2xf32: 110 440"), 0);
  expectTensor((*results)[1], tensorOf("2xf32: 10 20"), 0);
  EXPECT_EQ(seen, (std::vector<std::string>{"weight", "inner", "fused", "outer"}));
}

TEST(ReferenceFunction, FreesDeadValues) {
  // A long chain: each value must be gone when the next but one is computed.
  std::string text = "func.func @main(%x0: tensor<4xf32>) -> tensor<4xf32> {\n";
  for (int i = 0; i < 20; ++i)
    text +=
        "  %x" + std::to_string(i + 1) + " = dmir.neg %x" + std::to_string(i) + " : (tensor<4xf32>) -> tensor<4xf32>\n";
  text += "  %unused = dmir.abs %x0 : (tensor<4xf32>) -> tensor<4xf32>\n  return %x20 : tensor<4xf32>\n}";
  std::vector<std::weak_ptr<const void>> made;
  size_t mostAlive = 0;
  Result<std::vector<Tensor>> results =
      runText(text, {"4xf32: 1 2 3 4"}, [&](mlir::Operation *, llvm::ArrayRef<Tensor> results) {
        made.push_back(results[0].owner());
        mostAlive = std::max<size_t>(mostAlive, llvm::count_if(made, [](const auto &p) { return !p.expired(); }));
      });
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(made.size(), 21u);
  EXPECT_LE(mostAlive, 2u);
}

TEST(ReferenceFunction, ReshapeSharesBytes) {
  Tensor input = tensorOf("2x3xf32: 1 2 3 4 5 6");
  mlir::OwningOpRef<mlir::ModuleOp> module =
      parse("func.func @main(%x: tensor<2x3xf32>) -> tensor<6xf32> {\n"
            "  %y = dmir.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>\n  return %y : tensor<6xf32>\n}");
  ASSERT_TRUE(module);
  Result<std::vector<Tensor>> results = evaluateFunction(module->lookupSymbol<mlir::func::FuncOp>("main"), {input});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ((*results)[0].data(), input.data());
}

TEST(ReferenceFunction, LayoutsAreIgnored) {
  Result<std::vector<Tensor>> results =
      runText("func.func @main(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {\n"
              "  %y = dmir.relayout %x : (tensor<1x2xf32>) -> tensor<1x2xf32, #dmir.blocked<1, 16>>\n"
              "  %z = dmir.relayout %y : (tensor<1x2xf32, #dmir.blocked<1, 16>>) -> tensor<1x2xf32>\n"
              "  return %z : tensor<1x2xf32>\n}",
              {"1x2xf32: 5 6"});
  ASSERT_TRUE(results) << results.error().message;
  expectTensor((*results)[0], tensorOf("1x2xf32: 5 6"), 0);
}

TEST(ReferenceFunction, ConstantsOfEveryType) {
  for (const char *constant :
       {"dense<[true, false]> : tensor<2xi1>", "dense<[7, -8]> : tensor<2xi4>", "dense<[15, 0]> : tensor<2xui4>",
        "dense<[255, 1]> : tensor<2xui8>", "dense<-3> : tensor<2xi64>", "dense<[1.5, -2.0]> : tensor<2xf16>",
        "dense<[1.5, -2.0]> : tensor<2xbf16>", "dense<[0.5, 6.0]> : tensor<2xf4E2M1FN>",
        "dense<[1.5, -2.0]> : tensor<2xf8E4M3FN>", "dense<[1.5, -2.0]> : tensor<2xf64>"}) {
    SCOPED_TRACE(constant);
    std::string type = std::string(constant).substr(std::string(constant).find("tensor"));
    Result<std::vector<Tensor>> results = runText("func.func @main() -> " + type + " {\n  %c = dmir.constant " +
                                                      constant + "\n  return %c : " + type + "\n}",
                                                  {});
    ASSERT_TRUE(results) << results.error().message;
    mlir::OwningOpRef<mlir::ModuleOp> module = parse("func.func @main() -> " + type + " {\n  %c = dmir.constant " +
                                                     constant + "\n  return %c : " + type + "\n}");
    auto op = llvm::cast<dmir::ConstantOp>(module->lookupSymbol<mlir::func::FuncOp>("main").getBody().front().front());
    auto dense = llvm::cast<mlir::DenseElementsAttr>(op.getValue());
    for (int64_t i = 0; i < 2; ++i)
      if (llvm::isa<mlir::FloatType>(dense.getElementType())) {
        llvm::APFloat value = *(dense.value_begin<llvm::APFloat>() + i);
        EXPECT_EQ((*results)[0].asDouble(i), value.convertToDouble());
      } else {
        llvm::APInt value = *(dense.value_begin<llvm::APInt>() + i);
        bool isSigned = dense.getElementType().isSignlessInteger() && value.getBitWidth() > 1;
        EXPECT_EQ((*results)[0].asInt(i), isSigned ? value.getSExtValue() : static_cast<int64_t>(value.getZExtValue()));
      }
  }
}

TEST(ReferenceErrors, AreExplained) {
  auto messageOf = [](const std::string &body, const std::vector<std::string> &inputs) {
    Result<std::vector<Tensor>> results = runText(body, inputs);
    EXPECT_FALSE(results);
    return results ? std::string() : results.error().message;
  };
  std::string negate = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = dmir.neg %x : (tensor<2xf32>) -> "
                       "tensor<2xf32>\n  return %y : tensor<2xf32>\n}";
  EXPECT_EQ(messageOf(negate, {}), "function 'main' has 1 inputs but 0 were given");
  EXPECT_NE(messageOf(negate, {"3xf32: 1 2 3"}).find("is 2 f32 in the module but 3 f32 was given"), std::string::npos);
  EXPECT_NE(messageOf(negate, {"2xf16: 1 2"}).find("2 f32 in the module but 2 f16"), std::string::npos);
  EXPECT_NE(
      messageOf("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n  return %x : tensor<?xf32>\n}", {"2xf32: 1 2"})
          .find("fix the dims with --dim"),
      std::string::npos);
  EXPECT_NE(messageOf("func.func private @other(tensor<2xf32>) -> tensor<2xf32>\nfunc.func @main(%x: tensor<2xf32>) -> "
                      "tensor<2xf32> {\n"
                      "  %y = func.call @other(%x) : (tensor<2xf32>) -> tensor<2xf32> loc(\"the_call\")\n  return %y : "
                      "tensor<2xf32>\n}",
                      {"2xf32: 1 2"})
                .find("node 'the_call' (func.call): the interpreter does not know this op"),
            std::string::npos);
  for (const char *type : {"tensor<68719476737xi8>", "tensor<9223372036854775807x3xi8>"}) {
    std::string iota = std::string("func.func @main() -> ") + type + " {\n  %c = dmir.iota {axis = 0} : () -> " + type +
                       " loc(\"huge\")\n  return %c : " + type + "\n}";
    EXPECT_NE(messageOf(iota, {}).find("node 'huge' (dmir.iota): its result 0 of shape"), std::string::npos) << type;
  }
  EXPECT_NE(
      messageOf("func.func @main() -> tensor<2xf32> {\n  %c = dmir.constant #dmir.file<\"/nowhere/at/all\", 0, 8> : "
                "tensor<2xf32> loc(\"w\")\n  return %c : tensor<2xf32>\n}",
                {})
          .find("node 'w' (dmir.constant): "),
      std::string::npos);
}

/// Whoever parses a text with the library says which files it may name; without that, none.
TEST(ReferenceErrors, FilesThatNobodyAdmitted) {
  std::filesystem::path folder = std::filesystem::canonical(std::filesystem::temp_directory_path()) /
                                 ("dmxc-interpreter-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  float numbers[] = {4, 2};
  std::ofstream(folder / "w.bin", std::ios::binary).write(reinterpret_cast<const char *>(numbers), sizeof numbers);
  auto value = [&](llvm::ArrayRef<std::string> admitted) {
    mlir::MLIRContext context;
    auto &files = dmir::DataFiles::of(&context);
    files.admitBelow(admitted);
    auto type = mlir::RankedTensorType::get({2}, mlir::Float32Type::get(&context));
    return dmir::constantTensor(dmir::FileDataAttr::get(&context, (folder / "w.bin").string(), 0, 8, type));
  };
  Result<Tensor> refused = value({}), elsewhere = value({(folder / "..").string() + "/nothing"}),
                 read = value({folder});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("lies in '" + folder.string() + "'"), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(elsewhere);
  ASSERT_TRUE(read) << read.error().message;
  expectTensor(*read, tensorOf("2xf32: 4 2"), 0);
  std::filesystem::remove_all(folder);
}

TEST(ReferenceErrors, MissingBodyAndWrongOperandCount) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse("func.func private @main(tensor<2xf32>) -> tensor<2xf32>");
  auto function = module->lookupSymbol<mlir::func::FuncOp>("main");
  Result<std::vector<Tensor>> results = evaluateFunction(function, {tensorOf("2xf32: 1 2")});
  ASSERT_FALSE(results);
  EXPECT_NE(results.error().message.find("body of one block"), std::string::npos);

  module = moduleWithRegion();
  mlir::Operation *last =
      module->lookupSymbol<mlir::func::FuncOp>("main").getBody().front().getTerminator()->getPrevNode();
  results = evaluateOp(last, {tensorOf("2xf32: 1 2")});
  ASSERT_FALSE(results);
  EXPECT_NE(results.error().message.find("2 operands are needed but 1 were given"), std::string::npos);
  results = evaluateOp(last, {tensorOf("2xf32: 1 2"), Tensor()});
  ASSERT_FALSE(results);
  results = evaluateOp(last->getPrevNode(), {tensorOf("2xf32: 1 2"), tensorOf("2xf32: 3 4")});
  ASSERT_TRUE(results) << results.error().message; // a region by itself
  expectTensor((*results)[0], tensorOf("2xf32: 4 6"), 0);
}

TEST(Interpreter, SizesThatAreNumbersAreATensor) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @main() -> tensor<3xi64> {\n  %0 = dmir.dim_tensor {values = array<i64: 7, 0, 12>} : tensor<3xi64>\n"
      "  return %0 : tensor<3xi64>\n}",
      &context());
  ASSERT_TRUE(module);
  Result<std::vector<Tensor>> results = evaluateFunction(module->lookupSymbol<mlir::func::FuncOp>("main"), {});
  ASSERT_TRUE(results) << results.error().message;
  expectTensor((*results)[0], tensorOf("3xi64: 7 0 12"), 0);
}

TEST(Interpreter, RefusesAnUnknownTripCountWhateverItIs) {
  auto module = parse(R"(
func.func @main(%trips: tensor<i64>, %x: tensor<2xf32>) -> tensor<?x2xf32, #dmir.dims<"n">> {
  %y = dmir.loop @body trips %trips carries () (%x) : (tensor<i64>, tensor<2xf32>) -> tensor<?x2xf32, #dmir.dims<"n">>
  return %y : tensor<?x2xf32, #dmir.dims<"n">>
}
func.func private @body(%i: tensor<i64>, %go: tensor<i1>, %x: tensor<2xf32>) -> (tensor<i1>, tensor<2xf32>) {
  %y = dmir.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  return %go, %y : tensor<i1>, tensor<2xf32>
})");
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<mlir::func::FuncOp>("main");
  for (const char *trips : {"i64: 0", "i64: 2"}) {
    Result<std::vector<Tensor>> results = evaluateFunction(function, {tensorOf(trips), tensorOf("2xf32: 1 2")});
    ASSERT_FALSE(results);
    EXPECT_NE(results.error().message.find("its result 0 has a shape that is not known"), std::string::npos)
        << results.error().message;
  }
}

TEST(ReferenceCoverage, EveryOpIsEvaluatedAndTested) {
  std::set<std::string> tested = {"dmir.constant", "dmir.region", "dmir.dim_tensor"}; // above
  tested.insert({"dmir.pad_blocks", "dmir.undef"});                                   // BlockFloatTest.cpp
  for (const Family &family : Family::all())
    for (const Case &testCase : family.cases)
      tested.insert("dmir." + testCase.op.substr(0, testCase.op.find(' ')));
  for (const std::string &op : mathFunctions())
    tested.insert("dmir." + op);
  unsigned count = 0;
  for (mlir::RegisteredOperationName name : context().getRegisteredOperations()) {
    std::string text = name.getStringRef().str();
    // define_dims gives no tensor, and where it stands shapes are not known; graphs are what a run decides;
    // what users' code computes their references say, if anything.
    if (name.getDialectNamespace() != "dmir" || text == "dmir.yield" || text == "dmir.define_dims" ||
        text == "dmir.if" || text == "dmir.loop" || text == "dmir.extern")
      continue;
    ++count;
    EXPECT_TRUE(canEvaluate(name)) << text;
    EXPECT_TRUE(tested.count(text)) << text << " has no case";
  }
  EXPECT_GE(count, 70u);
  EXPECT_FALSE(canEvaluate(mlir::OperationName("dmir.yield", &context())));
  EXPECT_FALSE(canEvaluate(mlir::OperationName("func.call", &context())));
}

} // namespace dmxc::reference::test
