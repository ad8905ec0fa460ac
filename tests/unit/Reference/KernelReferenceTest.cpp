//===- KernelReferenceTest.cpp - what kernels of users compute ------------===//
#include "Cases.h"

#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Support/Sha256.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <unistd.h>

namespace dmxc::reference::test {

namespace {

/// A kernel of one operand, `type`, whose reference is a text in a file that the context may read.
class KernelReference : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::canonical(std::filesystem::temp_directory_path()) /
             ("dmxc-kernel-reference-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    dmir::DataFiles::of(&context()).admitBelow({folder});
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  Result<std::vector<Tensor>> run(const std::string &text, const std::string &type, const std::string &input,
                                  const std::string &results, size_t count, const std::string &numbers = "{}",
                                  const std::string &sha256 = "") {
    std::string file = (folder / ("r" + std::to_string(++files) + ".mlir")).string();
    std::ofstream(file) << text;
    std::string sum = sha256.empty() ? Sha256::hexOf(std::as_bytes(std::span(text))) : sha256, values;
    for (size_t i = 0; i < count; ++i)
      values += (i ? ", %0#" : "%0#") + std::to_string(i);
    return runText(
        "func.func @main(%x: " + type + ") -> (" + results + ") {\n  %0" + ":" + std::to_string(count) +
            " = dmir.extern \"k\"(%x) {bodies = [], counts = #dmir.dims<\"1\", \"1\", \"0\">, reference = {file = \"" +
            file + "\", sha256 = \"" + sum + "\", functions = [\"f\"], numbers = " + numbers + "}} : (" + type +
            ") -> (" + results + ") loc(\"the_node\")\n  return " + values + " : " + results + "\n}",
        {input});
  }

  void expectError(const Result<std::vector<Tensor>> &results, const std::string &clause) {
    ASSERT_FALSE(results);
    EXPECT_NE(results.error().message.find(clause), std::string::npos) << results.error().message;
    EXPECT_NE(results.error().message.find("node 'the_node'"), std::string::npos) << results.error().message;
  }

  std::filesystem::path folder;
  int files = 0;
};

} // namespace

/// Sizes of the call and numbers of the node stand where the text has names: in types, among numbers and as k.
TEST_F(KernelReference, DimsAreThoseOfTheCall) {
  const std::string text = R"mlir(func.func @f(%x: tensor<?xf32, #dmir.dims<"n">>, %k: tensor<i64> {dmir.name = "k"})
      -> (tensor<?xf32, #dmir.dims<"n - 1">>, tensor<?xf32, #dmir.dims<"floordiv(n, 2)">>, tensor<2xi64>, tensor<i64>) {
    %a = dmir.slice %x {starts = array<i64: 1>, sizes = array<i64: OPEN>, steps = array<i64: 1>, dims = #dmir.dims<"n - 1">}
        : (tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n - 1">>
    %b:2 = dmir.top_k %x {k = OPEN : i64, axis = 0 : i64, dims = #dmir.dims<"floordiv(n, 2)">}
        : (tensor<?xf32, #dmir.dims<"n">>) -> (tensor<?xf32, #dmir.dims<"floordiv(n, 2)">>, tensor<?xi64, #dmir.dims<"floordiv(n, 2)">>)
    %c = dmir.dim_tensor {values = array<i64: OPEN, OPEN>, dims = #dmir.dims<"n", "k + 2*n">} : tensor<2xi64>
    return %a, %b#0, %c, %k : tensor<?xf32, #dmir.dims<"n - 1">>, tensor<?xf32, #dmir.dims<"floordiv(n, 2)">>, tensor<2xi64>, tensor<i64>
  })mlir";
  auto results =
      run(std::regex_replace(text, std::regex("OPEN"), "-9223372036854775808"), "tensor<5xf32>", "5xf32: 3 1 5 4 2",
          "tensor<4xf32>, tensor<2xf32>, tensor<2xi64>, tensor<i64>", 4, "{k = 7 : i64}");
  ASSERT_TRUE(results) << results.error().message;
  expectTensor((*results)[0], tensorOf("4xf32: 1 5 4 2"), 0);
  expectTensor((*results)[1], tensorOf("2xf32: 5 4"), 0);
  expectTensor((*results)[2], tensorOf("2xi64: 5 17"), 0);
  expectTensor((*results)[3], tensorOf("i64: 7"), 0);
}

TEST_F(KernelReference, BranchesAreGraphsOfTheSameText) {
  const std::string text = R"mlir(
  func.func @twice(%x: tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">> {
    %y = dmir.add %x, %x : (tensor<?xf32, #dmir.dims<"n">>, tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">>
    return %y : tensor<?xf32, #dmir.dims<"n">>
  }
  func.func @less(%x: tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">> {
    %y = dmir.neg %x : (tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">>
    return %y : tensor<?xf32, #dmir.dims<"n">>
  }
  func.func @f(%x: tensor<?xf32, #dmir.dims<"n">>, %k: tensor<i64> {dmir.name = "k"}) -> tensor<?xf32, #dmir.dims<"n">> {
    %p = dmir.cast %k : (tensor<i64>) -> tensor<i1>
    %y = dmir.if %p then @twice else @less(%x) : (tensor<i1>, tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">>
    return %y : tensor<?xf32, #dmir.dims<"n">>
  })mlir";
  for (auto [number, expected] : {std::pair("{k = 1 : i64}", "2xf32: 6 -2"), {"{k = 0 : i64}", "2xf32: -3 1"}}) {
    auto results = run(text, "tensor<2xf32>", "2xf32: 3 -1", "tensor<2xf32>", 1, number);
    ASSERT_TRUE(results) << results.error().message;
    expectTensor((*results)[0], tensorOf(expected), 0);
  }
}

TEST_F(KernelReference, WhatDoesNotHold) {
  const std::string same = R"mlir(func.func @f(%x: tensor<?xf32, #dmir.dims<"n">>) -> tensor<?xf32, #dmir.dims<"n">> {
    return %x : tensor<?xf32, #dmir.dims<"n">>
  })mlir";
  const std::string withNumber =
      R"mlir(func.func @f(%x: tensor<?xf32, #dmir.dims<"n">>, %k: tensor<i64>) -> tensor<?xf32, #dmir.dims<"n">> {
    return %x : tensor<?xf32, #dmir.dims<"n">>
  })mlir";
  const std::string rowsOfTwo =
      R"mlir(func.func @f(%x: tensor<?xf32, #dmir.dims<"n">>) -> tensor<?x2xf32, #dmir.dims<"floordiv(n, 2)">> {
    %y = dmir.reshape %x : (tensor<?xf32, #dmir.dims<"n">>) -> tensor<?x2xf32, #dmir.dims<"floordiv(n, 2)">>
    return %y : tensor<?x2xf32, #dmir.dims<"floordiv(n, 2)">>
  })mlir";
  auto apply = [&](const std::string &text, const std::string &results = "tensor<3xf32>",
                   const std::string &sha256 = "") {
    return run(text, "tensor<3xf32>", "3xf32: 1 2 3", results, 1, "{}", sha256);
  };
  ASSERT_TRUE(apply(same));
  expectError(apply(same, "tensor<4xf32>"), "its result 0 is 4 f32 in the module but 3 f32 was given");
  expectError(apply(same, "tensor<3xf32>", std::string(64, '0')), "is not the one that was declared");
  expectError(apply("func.func @g() { return }"), "it has no function 'f'; did you mean 'g'?");
  expectError(apply("func.func @f() { return }"), "no function of it takes such operands");
  expectError(apply("what is this"), "1:1: ");
  expectError(apply(withNumber), "'f': argument 1 is no attribute of the node");
  expectError(apply(rowsOfTwo, "tensor<1x2xf32>"), "dmir.reshape"); // which 3 elements are not
}

} // namespace dmxc::reference::test
