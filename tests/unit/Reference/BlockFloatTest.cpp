//===- BlockFloatTest.cpp - block floating point through DMIR's ops -------===//
//
// The numerics themselves are tested in unit/Corsair; here, that ops reach them: golden vector V17, and data movement
// of wire-format bytes against the movement of the values they stand for.
//
//===----------------------------------------------------------------------===//
#include "../BlockFp/TestSupport.h"
#include "Cases.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc::reference::test {
namespace {

using dmx::blockfp::test::goldenInput;

std::vector<Tensor> run(const std::string &text, std::vector<Tensor> inputs) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(text);
  EXPECT_TRUE(module);
  if (!module)
    return {};
  auto results = evaluateFunction(module->lookupSymbol<mlir::func::FuncOp>("main"), inputs);
  EXPECT_TRUE(results) << results.error().message;
  return results ? *results : std::vector<Tensor>();
}

Tensor tensor(const std::vector<float> &values, Shape shape) {
  Tensor result(DType::F32, std::move(shape));
  std::copy(values.begin(), values.end(), result.as<float>());
  return result;
}

template <typename T> uint32_t crcOf(const Tensor &tensor) {
  size_t count = tensor.byteSize() / sizeof(T);
  return dmx::blockfp::test::crcOf(std::vector<T>(tensor.as<T>(), tensor.as<T>() + count));
}

TEST(ReferenceBlockFloat, V17) {
  std::vector<Tensor> results =
      run(R"(
    !R = !dmir.block_fp<BFP16_64R>
    !C = !dmir.block_fp<BFP16_64C>
    !P = !dmir.block_fp<BFP32_1>
    func.func @main(%a: tensor<64x512xf32>, %w: tensor<512x64xf32>)
        -> (tensor<64x512x!R>, tensor<512x64x!C>, tensor<64x64x!P>, tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) {
      %r = dmir.cast %a : (tensor<64x512xf32>) -> tensor<64x512x!R>
      %c = dmir.cast %w : (tensor<512x64xf32>) -> tensor<512x64x!C>
      %p = dmir.matmul %r, %c : (tensor<64x512x!R>, tensor<512x64x!C>) -> tensor<64x64x!P>
      %h = dmir.matmul %r, %c {dmir.tree_tiles = 8 : i64} : (tensor<64x512x!R>, tensor<512x64x!C>) -> tensor<64x64xf16>
      %g = dmir.cast %p : (tensor<64x64x!P>) -> tensor<64x64xf16>
      %f = dmir.matmul %r, %c : (tensor<64x512x!R>, tensor<512x64x!C>) -> tensor<64x64xf32>
      return %r, %c, %p, %h, %g, %f : tensor<64x512x!R>, tensor<512x64x!C>, tensor<64x64x!P>, tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>
    })",
          {tensor(goldenInput(1, 64 * 512, 512), {64, 512}), tensor(goldenInput(2, 512 * 64, 64), {512, 64})});
  ASSERT_EQ(results.size(), 6u);
  EXPECT_EQ(results[0].byteSize(), 8u * 4160);
  EXPECT_EQ(crcOf<uint8_t>(results[0]), 0x4f798a96u);
  EXPECT_EQ(crcOf<uint8_t>(results[1]), 0x758834fcu);
  EXPECT_EQ(crcOf<float>(results[2]), 0xd75a42bau);
  EXPECT_EQ(crcOf<uint16_t>(results[3]), 0x60b8a470u);
  EXPECT_EQ(crcOf<uint16_t>(results[4]), 0x60b8a470u);
  EXPECT_EQ(crcOf<float>(results[5]), 0xd75a42bau);
}

/// 266,240 bytes for 512x512, as the specification says.
TEST(ReferenceBlockFloat, BytesOfAConstant) {
  mlir::OwningOpRef<mlir::ModuleOp> module =
      parse("func.func @main(%x: tensor<512x512x!dmir.block_fp<BFP16_64C>>) { return }");
  mlir::Type type = module->lookupSymbol<mlir::func::FuncOp>("main").getArgument(0).getType();
  EXPECT_EQ(dmir::hostFormOf(type)->shape, Shape{266240});
}

/// Casts, applies `op` to the blocks, casts back; the same `op` on the values cast there and back must give the same.
void expectMoves(const std::string &from, const std::string &to, const std::string &type, const std::string &resultType,
                 const std::string &op, Shape shape) {
  std::string wide = "tensor<" + from + "xf32>", wideTo = "tensor<" + to + "xf32>";
  std::string narrow = "tensor<" + from + "x!dmir.block_fp<" + type + ">>";
  std::string narrowTo = "tensor<" + to + "x!dmir.block_fp<" + resultType + ">>";
  auto apply = [&](const std::string &value, const std::string &in, const std::string &out) {
    std::string text = op;
    for (size_t at; (at = text.find("$x")) != std::string::npos;)
      text.replace(at, 2, value);
    for (size_t at; (at = text.find("$T")) != std::string::npos;)
      text.replace(at, 2, in);
    return text + " -> " + out + "\n";
  };
  int64_t count = elementCount(shape);
  std::vector<Tensor> results =
      run("func.func @main(%a: " + wide + ") -> (" + wideTo + ", " + wideTo + ") {\n%q = dmir.cast %a : (" + wide +
              ") -> " + narrow + "\n%v = dmir.cast %q : (" + narrow + ") -> " + wide + "\n%m = " +
              apply("%q", narrow, narrowTo) + "%n = " + apply("%v", wide, wideTo) + "%r = dmir.cast %m : (" + narrowTo +
              ") -> " + wideTo + "\nreturn %r, %n : " + wideTo + ", " + wideTo + "\n}",
          {tensor(goldenInput(3, static_cast<int>(count), static_cast<int>(shape.back())), shape)});
  ASSERT_EQ(results.size(), 2u) << op;
  EXPECT_EQ(crcOf<float>(results[0]), crcOf<float>(results[1])) << op << " of " << type;
}

TEST(ReferenceBlockFloat, Movement) {
  expectMoves("70x130", "130x70", "BFP16_64R", "BFP16_64C", "dmir.transpose $x {permutation = array<i64: 1, 0>} : ($T)",
              {70, 130});
  expectMoves("2x3x70x130", "3x2x130x70", "BFP16_64R", "BFP16_64C",
              "dmir.transpose $x {permutation = array<i64: 1, 0, 3, 2>} : ($T)", {2, 3, 70, 130});
  for (std::string type : {"BFP16_16R", "BFP24_32R", "BFP14_64R", "BFP12_64R", "BFP12_16AR"})
    expectMoves(
        "70x260", "31x68", type, type,
        "dmir.slice $x {starts = array<i64: 69, 192>, sizes = array<i64: 31, 68>, steps = array<i64: -2, 1>} : ($T)",
        {70, 260});
  expectMoves("3x260x70", "2x128x20", "BFP16_64C", "BFP16_64C",
              "dmir.slice $x {starts = array<i64: 0, 64, 5>, sizes = array<i64: 2, 128, 20>, steps = array<i64: 2, 1, "
              "3>} : ($T)",
              {3, 260, 70});
  expectMoves("70x64", "70x128", "BFP16_64R", "BFP16_64R", "dmir.concat $x, $x {axis = 1 : i64} : ($T, $T)", {70, 64});
  expectMoves("70x96", "140x96", "BFP16_64R", "BFP16_64R", "dmir.concat $x, $x {axis = 0 : i64} : ($T, $T)", {70, 96});
  expectMoves("2x3x70x96", "2x6x70x96", "BFP16_64C", "BFP16_64C", "dmir.concat $x, $x {axis = 1 : i64} : ($T, $T)",
              {2, 3, 70, 96});
}

/// Padding keeps the values and reads as zero; the product of padded operands is that of the operands.
TEST(ReferenceBlockFloat, PadBlocks) {
  std::vector<Tensor> results =
      run(R"(
    !R = !dmir.block_fp<BFP16_64R>
    !C = !dmir.block_fp<BFP16_64C>
    func.func @main(%a: tensor<2x5x100xf32>, %w: tensor<100x7xf32>) -> (tensor<2x5x7xf16>, tensor<2x5x7xf16>, tensor<2x64x256xf32>) {
      %r = dmir.cast %a : (tensor<2x5x100xf32>) -> tensor<2x5x100x!R>
      %c = dmir.cast %w : (tensor<100x7xf32>) -> tensor<100x7x!C>
      %h = dmir.matmul %r, %c : (tensor<2x5x100x!R>, tensor<100x7x!C>) -> tensor<2x5x7xf16>
      %rp = dmir.pad_blocks %r : (tensor<2x5x100x!R>) -> tensor<2x64x256x!R>
      %cp = dmir.pad_blocks %c : (tensor<100x7x!C>) -> tensor<256x64x!C>
      %hp = dmir.matmul %rp, %cp : (tensor<2x64x256x!R>, tensor<256x64x!C>) -> tensor<2x64x64xf16>
      %cut = dmir.slice %hp {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 5, 7>, steps = array<i64: 1, 1, 1>} : (tensor<2x64x64xf16>) -> tensor<2x5x7xf16>
      %v = dmir.cast %rp : (tensor<2x64x256x!R>) -> tensor<2x64x256xf32>
      return %h, %cut, %v : tensor<2x5x7xf16>, tensor<2x5x7xf16>, tensor<2x64x256xf32>
    })",
          {tensor(goldenInput(4, 1000, 100), {2, 5, 100}), tensor(goldenInput(5, 700, 7), {100, 7})});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(crcOf<uint16_t>(results[0]), crcOf<uint16_t>(results[1]));
  EXPECT_NE(results[0].asDouble(3), 0.0);
  EXPECT_NE(results[2].asDouble(99), 0.0);
  for (int64_t i : {100, 255, 5 * 256})
    EXPECT_EQ(results[2].asDouble(i), 0.0) << i;
}

/// 20 tiles along k: chunks of 16 and 4, each sum rounded to BFP32_1.
TEST(ReferenceBlockFloat, LongProductAndBias) {
  std::vector<float> a = goldenInput(6, 3 * 1280, 1280), w = goldenInput(7, 1280 * 5, 5);
  auto product = [&](const char *attributes) {
    return run(std::string(R"(
      !R = !dmir.block_fp<BFP16_64R>
      !C = !dmir.block_fp<BFP16_64C>
      !P = !dmir.block_fp<BFP32_1>
      func.func @main(%a: tensor<3x1280xf32>, %w: tensor<1280x5xf32>, %b: tensor<5xf32>) -> (tensor<3x5x!P>, tensor<3x5x!P>) {
        %r = dmir.cast %a : (tensor<3x1280xf32>) -> tensor<3x1280x!R>
        %c = dmir.cast %w : (tensor<1280x5xf32>) -> tensor<1280x5x!C>
        %p = dmir.matmul %r, %c )") +
                   attributes + R"( : (tensor<3x1280x!R>, tensor<1280x5x!C>) -> tensor<3x5x!P>
        %bias = dmir.cast %b : (tensor<5xf32>) -> tensor<5x!P>
        %s = dmir.add %p, %bias : (tensor<3x5x!P>, tensor<5x!P>) -> tensor<3x5x!P>
        return %p, %s : tensor<3x5x!P>, tensor<3x5x!P>
      })",
               {tensor(a, {3, 1280}), tensor(w, {1280, 5}), tensor({1, 2, 3, 4, 5}, {5})});
  };
  std::vector<Tensor> chunks = product(""), same = product("{dmir.tree_tiles = 16 : i64}"),
                      tree = product("{dmir.tree_tiles = 20 : i64}");
  ASSERT_TRUE(chunks.size() == 2 && same.size() == 2 && tree.size() == 2);
  EXPECT_EQ(crcOf<float>(chunks[0]), crcOf<float>(same[0]));
  for (int i = 0; i < 15; ++i) {
    EXPECT_NEAR(chunks[0].asDouble(i), tree[0].asDouble(i), 1e-3 * 1280);
    float sum = chunks[0].as<float>()[i] + static_cast<float>(i % 5 + 1);
    EXPECT_EQ(chunks[1].as<float>()[i], dmx::blockfp::roundToBfp32(sum));
  }
}

TEST(ReferenceBlockFloat, NaNStaysInItsRow) {
  std::vector<float> a(2 * 64, 1.0f);
  a[70] = std::numeric_limits<float>::quiet_NaN();
  std::vector<Tensor> results = run(R"(
    func.func @main(%a: tensor<2x64xf32>) -> tensor<2x2xf16> {
      %r = dmir.cast %a : (tensor<2x64xf32>) -> tensor<2x64x!dmir.block_fp<BFP16_64R>>
      %c = dmir.constant dense<1.0> : tensor<64x2xf32>
      %w = dmir.cast %c : (tensor<64x2xf32>) -> tensor<64x2x!dmir.block_fp<BFP16_64C>>
      %h = dmir.matmul %r, %w : (tensor<2x64x!dmir.block_fp<BFP16_64R>>, tensor<64x2x!dmir.block_fp<BFP16_64C>>) -> tensor<2x2xf16>
      return %h : tensor<2x2xf16>
    })",
                                    {tensor(a, {2, 64})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].asDouble(0), 64.0);
  EXPECT_EQ(results[0].asDouble(1), 64.0);
  EXPECT_TRUE(std::isnan(results[0].asDouble(2)) && std::isnan(results[0].asDouble(3)));
}

TEST(ReferenceBlockFloat, UndefIsZero) {
  std::vector<Tensor> results = run(R"(
    func.func @main() -> (tensor<2xf16>, tensor<2x2xf32>) {
      %a = dmir.undef : tensor<2xf16>
      %b = dmir.undef : tensor<2x2x!dmir.block_fp<BFP16_64R>>
      %c = dmir.cast %b : (tensor<2x2x!dmir.block_fp<BFP16_64R>>) -> tensor<2x2xf32>
      return %a, %c : tensor<2xf16>, tensor<2x2xf32>
    })",
                                    {});
  ASSERT_EQ(results.size(), 2u);
  expectTensor(results[0], tensorOf("2xf16: 0 0"), 0);
  expectTensor(results[1], tensorOf("2x2xf32: 0 0 0 0"), 0);
}

/// A format without a code for infinity refuses it by name.
TEST(ReferenceBlockFloat, RefusesWhatHasNoCode) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(R"(
    func.func @main(%a: tensor<1x16xf32>) -> tensor<1x16x!dmir.block_fp<SBFP12_16_7R>> {
      %r = dmir.cast %a : (tensor<1x16xf32>) -> tensor<1x16x!dmir.block_fp<SBFP12_16_7R>>
      return %r : tensor<1x16x!dmir.block_fp<SBFP12_16_7R>>
    })");
  std::vector<float> values(16, std::numeric_limits<float>::infinity());
  auto results = evaluateFunction(module->lookupSymbol<mlir::func::FuncOp>("main"), {tensor(values, {1, 16})});
  ASSERT_FALSE(results);
  EXPECT_NE(results.error().message.find("dmir.cast"), std::string::npos) << results.error().message;
}

} // namespace
} // namespace dmxc::reference::test
