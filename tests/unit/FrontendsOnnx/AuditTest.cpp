//===- AuditTest.cpp - what the importer reports, dims, functions ---------===//
#include "ModelBuilder.h"
#include "onnx/OpTable.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::test;

namespace {

ImportOptions inFile(const TempDir &dir, const ModelBuilder &b) { return optionsFor(dir.write("m.onnx", b.bytes())); }

TEST(Audit, ReportsAllProblemsOfARunAndNothingBehindThem) {
  TempDir dir;
  ModelBuilder b;
  b.input("x", "2,3").output("y");
  b.node("Frobnicate", {"x"}, {"a"}, "first");
  b.node("Relu", {"a"}, {"b"}, "behind");
  ModelBuilder::setInt(b.node("Relu", {"x"}, {"c"}, "second"), "alpha", 1);
  b.node("RandomNormalLike", {"x"}, {"d"}, "third");
  b.node("MatMul", {"x", "x"}, {"e"}, "fourth");
  b.node("Reshap", {"e"}, {"f"},
         "fifth"); // unknown although its operand failed
  b.node("Relu", {"x"}, {"y"});
  ImportRun run(inFile(dir, b));
  EXPECT_FALSE(run.imported);
  EXPECT_EQ(run.diagnostics.errorCount(), 5u) << run.text();
  EXPECT_EQ(run.count("op-unknown"), 2u);
  EXPECT_EQ(run.count("op-attribute"), 1u);
  EXPECT_EQ(run.count("op-unsupported"), 1u);
  EXPECT_EQ(run.count("op-shape"), 1u);
  EXPECT_EQ(run.text().find("behind"), std::string::npos);
  EXPECT_NE(run.text().find("node 'fourth': error: MatMul (ai.onnx opset 17):"), std::string::npos) << run.text();
  EXPECT_NE(run.text().find("note: operands: 'x' f32[2x3], 'x' f32[2x3]"), std::string::npos) << run.text();
  EXPECT_NE(run.text().find("did you mean 'Reshape'?"), std::string::npos) << run.text();
  EXPECT_EQ(run.diagnostics.exitCode(), 1);
}

TEST(Audit, NamesTypesOperandsAndConstants) {
  TempDir dir;
  ModelBuilder b;
  b.input("x", "2,3").input("i", "2", 7).input("training", "1", 9).output("y");
  b.node("Exp", {"i"}, {"a"}, "dtype");
  b.node("Dropout", {"x", "", "training"}, {"b"}, "constant");
  b.node("Add", {"x"}, {"c"}, "missing");
  b.node("Relu", {"nowhere"}, {"y"}, "undefined");
  ImportRun run(inFile(dir, b));
  EXPECT_EQ(run.count("op-dtype"), 1u) << run.text();
  EXPECT_EQ(run.count("op-operand-not-constant"), 1u);
  EXPECT_EQ(run.count("op-operand"), 1u);
  EXPECT_EQ(run.count("onnx-graph"), 1u);
}

TEST(Audit, NewNumbersLoad) {
  TempDir dir;
  ModelBuilder b(99);
  b.model.set_ir_version(77);
  auto &other = *b.model.add_opset_import();
  other.set_domain("com.example");
  other.set_version(5);
  b.input("x", "2").output("y").node("Relu", {"x"}, {"y"});
  ImportRun run(inFile(dir, b));
  EXPECT_TRUE(run.imported) << run.text();
}

TEST(Audit, OperatorNewerThanTheModelIsRefused) {
  TempDir dir;
  ModelBuilder b(10);
  b.input("x", "2").output("y").node("Gelu", {"x"}, {"y"});
  ImportRun run(inFile(dir, b));
  EXPECT_NE(run.text().find("exists since opset 20"), std::string::npos) << run.text();
}

TEST(Dims, UnknownOnesBecomeSymbols) {
  TempDir dir;
  ModelBuilder b;
  b.input("x", "batch,?,3").input("z", "batch,4").output("y").node("Relu", {"x"}, {"y"});
  ImportOptions options = inFile(dir, b);
  options.dims["batch"] = {2, 64};
  ImportRun run(options);
  ASSERT_TRUE(run.imported) << run.text();
  EXPECT_NE(run.ir().find("tensor<?x?x3xf32, #dmir.dims<\"batch\", \"x_d1\">>"), std::string::npos) << run.ir();
  EXPECT_NE(run.ir().find("batch = array<i64: 2, 64>"), std::string::npos) << run.ir();
}

TEST(Dims, OnesThatMustBeNumbersAreNamedWithTheirFix) {
  TempDir dir;
  ModelBuilder b;
  b.domain("ai.onnx.ml", 1).input("x", "batch,n").output("y");
  b.node("LinearRegressor", {"x"}, {"y"}).set_domain("ai.onnx.ml");
  ImportRun run(inFile(dir, b));
  EXPECT_FALSE(run.imported);
  EXPECT_EQ(run.count("op-dynamic-dim"), 1u) << run.text();
  EXPECT_NE(run.text().find("--dim n=1"), std::string::npos) << run.text();
}

TEST(Dims, OnesThatANodeGivesAreNoMattersOfOptions) {
  TempDir dir;
  ModelBuilder b;
  b.domain("ai.onnx.ml", 1).input("x", "4,2").output("y");
  b.node("NonZero", {"x"}, {"places"}, "nz");
  ModelBuilder::setInt(b.node("Cast", {"places"}, {"f"}), "to", 1);
  b.node("LinearRegressor", {"f"}, {"y"}).set_domain("ai.onnx.ml");
  ImportRun run(inFile(dir, b));
  EXPECT_EQ(run.count("op-dynamic-dim"), 1u) << run.text();
  EXPECT_NE(run.text().find("'nz#0' is a size that node 'nz' gives in a run, which no option fixes"), std::string::npos)
      << run.text();
  EXPECT_EQ(run.text().find("--dim"), std::string::npos) << run.text();
}

TEST(Dims, NamesOfExpressionsAreFixedByWhatTheyAreMadeOf) {
  TempDir dir;
  ModelBuilder b;
  std::string first(40, 'a'), second(40, 'b');
  b.domain("ai.onnx.ml", 1).input("x", "3," + first).input("z", "3," + second).output("y");
  ModelBuilder::setInt(b.node("Concat", {"x", "z"}, {"all"}, "cat"), "axis", 1);
  b.node("LinearRegressor", {"all"}, {"y"}).set_domain("ai.onnx.ml");
  ImportRun run(inFile(dir, b));
  EXPECT_EQ(run.count("op-dynamic-dim"), 1u) << run.text();
  EXPECT_NE(run.text().find("--dim " + second + "=1 --dim " + first + "=1 (or other sizes) fixes them"),
            std::string::npos)
      << run.text();
  EXPECT_EQ(run.text().find("#0=1"), std::string::npos) << run.text();
}

TEST(Dims, AreFixedByNameOrShape) {
  TempDir dir;
  ModelBuilder b;
  b.input("x", "batch,?,3").input("z", "batch").output("y").node("Relu", {"x"}, {"y"});
  ImportOptions options = inFile(dir, b);
  options.dims["batch"] = {5, 5};
  options.shapes["x"] = {5, 7, 3};
  ImportRun run(options);
  ASSERT_TRUE(run.imported) << run.text();
  EXPECT_NE(run.ir().find("tensor<5x7x3xf32>"), std::string::npos);
  EXPECT_NE(run.ir().find("tensor<5xf32>"), std::string::npos);

  options.shapes["x"] = {6, 7, 3};
  EXPECT_NE(ImportRun(options).text().find("given both as 6 and as 5"), std::string::npos);
  options.shapes["x"] = {5, 7, 4};
  EXPECT_NE(ImportRun(options).text().find("the model fixes this dim to 3"), std::string::npos);
  options.shapes.erase("x");
  options.dims["batcch"] = {1, 1};
  ImportRun typo(options);
  EXPECT_NE(typo.text().find("did you mean 'batch'?"), std::string::npos) << typo.text();
  EXPECT_EQ(typo.diagnostics.exitCode(), 2);
}

TEST(Import, InlinesFunctionsWithTheirAttributes) {
  TempDir dir;
  ModelBuilder b;
  auto &domain = *b.model.add_opset_import();
  domain.set_domain("local");
  domain.set_version(1);
  auto &function = *b.model.add_functions();
  function.set_name("Leaky");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("slope");
  function.add_opset_import()->set_version(17);
  auto &inner = *function.add_node();
  inner.set_op_type("LeakyRelu");
  inner.add_input("a");
  inner.add_output("b");
  auto &reference = *inner.add_attribute();
  reference.set_name("alpha");
  reference.set_ref_attr_name("slope");
  reference.set_type(onnx::AttributeProto::FLOAT);
  b.input("x", "2").output("y");
  auto &call = b.node("Leaky", {"x"}, {"y"}, "call");
  call.set_domain("local");
  auto &slope = *call.add_attribute();
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.25f);
  ImportRun run(inFile(dir, b));
  ASSERT_TRUE(run.imported) << run.text();
  EXPECT_NE(run.ir().find("2.500000e-01"), std::string::npos) << run.ir();

  call.set_op_type("Other");
  EXPECT_EQ(ImportRun(inFile(dir, b)).count("op-unknown"), 1u);
}

TEST(Import, RecursiveFunctionsAreRefused) {
  TempDir dir;
  ModelBuilder b;
  auto &domain = *b.model.add_opset_import();
  domain.set_domain("local");
  domain.set_version(1);
  auto &function = *b.model.add_functions();
  function.set_name("F");
  function.set_domain("local");
  function.add_input("a");
  function.add_output("b");
  *function.add_opset_import() = domain;
  auto &inner = *function.add_node();
  inner.set_op_type("F");
  inner.set_domain("local");
  inner.add_input("a");
  inner.add_output("b");
  b.input("x", "2").output("y").node("F", {"x"}, {"y"}).set_domain("local");
  ImportRun run(inFile(dir, b));
  EXPECT_FALSE(run.imported);
  EXPECT_NE(run.text().find("recursion"), std::string::npos) << run.text();
}

TEST(Import, KeepsNodeNamesAsLocations) {
  TempDir dir;
  ModelBuilder b;
  b.input("x", "2").output("y").node("Relu", {"x"}, {"y"}, "enc/relu_1");
  ImportRun run(inFile(dir, b));
  ASSERT_TRUE(run.imported);
  std::string found;
  run.imported->module->walk([&](dmir::ReluOp op) { found = dmir::nodeName(op); });
  EXPECT_EQ(found, "enc/relu_1");
}

TEST(Import, FoldsShapeArithmetic) {
  TempDir dir;
  ModelBuilder b;
  b.input("x", "2,3,4").output("y");
  b.node("Shape", {"x"}, {"s"});
  b.node("ReduceProd", {"s"}, {"n"});
  b.node("Reshape", {"x", "n"}, {"y"});
  ImportRun run(inFile(dir, b));
  ASSERT_TRUE(run.imported) << run.text();
  EXPECT_EQ(run.ir().find("dmir.reduce"), std::string::npos) << run.ir();
  EXPECT_NE(run.ir().find("tensor<24xf32>"), std::string::npos);
}

TEST(OpTable, RowsAreUniqueAndSorted) {
  const auto &rows = onnxfe::OpTable::get().rows();
  EXPECT_GT(rows.size(), 300u);
  for (size_t i = 1; i < rows.size(); ++i) {
    bool same = std::string(rows[i].name) == rows[i - 1].name && std::string(rows[i].domain) == rows[i - 1].domain;
    EXPECT_TRUE(!same || rows[i - 1].since < rows[i].since) << rows[i].name << " " << rows[i].since;
    EXPECT_TRUE(rows[i].import || *rows[i].note) << rows[i].name << " is refused without a reason";
  }
}

} // namespace
