//===- PointwiseRegionTest.cpp - elementwise and movement regions --------------===//

#include "RegionHarness.h"

#include <gtest/gtest.h>

using namespace dmxc::kernels::test;

namespace {

const std::vector<std::string> signedInts{"i8", "i16", "i32", "i64"}, unsignedInts{"ui8", "ui16", "ui32", "ui64"};
const std::vector<std::string> plainFloats{"f32", "f64", "f16", "bf16"},
    tinyFloats{"f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string unary(const std::string &op, const std::string &type, const std::string &attrs = "",
                  const std::string &argument = "") {
  return substitute(
      "func.func @$op_$type(%a: tensor<3x37x$type> $arg) -> tensor<3x37x$type> attributes {specials $attrs} {\n"
      "  %r = dmir.$op %a : (tensor<3x37x$type>) -> tensor<3x37x$type>\n"
      "  return %r : tensor<3x37x$type>\n}\n",
      {{"op", op}, {"type", type}, {"attrs", attrs}, {"arg", argument}});
}

std::string binary(const std::string &op, const std::string &type, const std::string &attrs = "",
                   const std::string &argument = "") {
  return substitute("func.func @$op_$type(%a: tensor<4x1x19x$type> $arg, %b: tensor<5x19x$type> $arg) -> "
                    "tensor<4x5x19x$type> attributes {specials $attrs} {\n"
                    "  %r = dmir.$op %a, %b : (tensor<4x1x19x$type>, tensor<5x19x$type>) -> tensor<4x5x19x$type>\n"
                    "  return %r : tensor<4x5x19x$type>\n}\n",
                    {{"op", op}, {"type", type}, {"attrs", attrs}, {"arg", argument}});
}

TEST(PointwiseRegion, ExactUnaryOps) {
  std::string text;
  for (const std::string &type : plainFloats + tinyFloats) {
    for (const char *op : {"neg", "abs", "sign", "ceil", "floor", "round", "sqrt", "reciprocal", "relu"})
      text += unary(op, type);
  }
  for (const std::string &type : signedInts + unsignedInts)
    for (const char *op : {"neg", "abs", "sign", "relu", "not"})
      text += unary(op, type);
  text += unary("not", "i1");
  expectAgree(text);
}

TEST(PointwiseRegion, Functions) {
  std::string text;
  for (const std::string &type : plainFloats)
    for (const char *op :
         {"exp",  "log",  "log2",  "log1p", "expm1", "sin", "cos",     "tan",  "asin",       "acos",     "atan", "sinh",
          "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "silu", "hard_swish", "softplus", "rsqrt"})
      text += unary(op, type, type == "f16" || type == "bf16" ? ", ulp = 1.0" : ", ulp = 4.0");
  expectAgree(text);
}

/// x * sigmoid(x), one function in f32 and f64, and the product with another's sigmoid, which is not.
TEST(PointwiseRegion, ProductsWithSigmoids) {
  std::string text;
  for (const std::string &type : plainFloats)
    for (const char *factors : {"%a, %s", "%s, %a", "%b, %s"})
      text += substitute("func.func @r$n(%a: tensor<3x37x$type>, %b: tensor<3x37x$type>) -> tensor<3x37x$type> "
                         "attributes {specials, ulp = $ulp, abs = 1.0e-36} {\n"
                         "  %s = dmir.sigmoid %a : (tensor<3x37x$type>) -> tensor<3x37x$type>\n"
                         "  %r = dmir.mul $factors : (tensor<3x37x$type>, tensor<3x37x$type>) -> tensor<3x37x$type>\n"
                         "  return %r : tensor<3x37x$type>\n}\n",
                         {{"n", std::to_string(text.size())},
                          {"type", type},
                          {"factors", factors},
                          {"ulp", type == "f16" || type == "bf16" ? "1.0" : "5.0"}});
  expectAgree(text);
}

TEST(PointwiseRegion, BinaryOps) {
  std::string text;
  for (const std::string &type : plainFloats + tinyFloats)
    for (const char *op : {"add", "sub", "mul", "div", "max", "min", "mod", "fmod"})
      text += binary(op, type);
  for (const std::string &type : plainFloats)
    text += binary("pow", type, type.size() == 3 && type != "f16" ? ", ulp = 4.0" : ", ulp = 1.0");
  for (const std::string &type : signedInts + unsignedInts) {
    for (const char *op : {"add", "sub", "mul", "max", "min", "and", "or", "xor", "shl", "shr", "pow"})
      text += binary(op, type);
    for (const char *op : {"div", "mod", "fmod"})
      text += binary(op, type, "", type[0] == 'u' ? "{test.lo = 1, test.hi = 100}" : "{test.lo = -128, test.hi = -1}");
  }
  for (const char *op : {"and", "or", "xor"})
    text += binary(op, "i1");
  expectAgree(text);
}

TEST(PointwiseRegion, DivisionByZeroFails) {
  std::string text;
  for (const char *type : {"i8", "i32", "i64", "ui16"})
    for (const char *op : {"div", "mod", "fmod"})
      text += binary(op, type, ", fails = 2", "{test.lo = 0, test.hi = 3}");
  expectAgree(text);
}

TEST(PointwiseRegion, ComparisonsAndTests) {
  std::string text;
  for (const std::string &type : plainFloats + tinyFloats + signedInts + unsignedInts + std::vector<std::string>{"i1"})
    for (const char *kind : {"eq", "ne", "lt", "le", "gt", "ge"})
      text +=
          substitute("func.func @cmp_$kind_$type(%a: tensor<7x23x$type>, %b: tensor<7x1x$type>) -> tensor<7x23xi1> "
                     "attributes {specials} {\n"
                     "  %r = dmir.compare $kind %a, %b : (tensor<7x23x$type>, tensor<7x1x$type>) -> tensor<7x23xi1>\n"
                     "  return %r : tensor<7x23xi1>\n}\n",
                     {{"kind", kind}, {"type", type}});
  for (const std::string &type : plainFloats + tinyFloats)
    for (const char *op : {"is_nan", "is_inf"})
      text +=
          substitute("func.func @$op_$type(%a: tensor<3x37x$type>) -> tensor<3x37xi1> attributes {specials} {\n"
                     "  %r = dmir.$op %a : (tensor<3x37x$type>) -> tensor<3x37xi1>\n  return %r : tensor<3x37xi1>\n}\n",
                     {{"op", op}, {"type", type}});
  expectAgree(text, 1);
}

TEST(PointwiseRegion, Casts) {
  std::string text;
  const std::vector<std::string> packed{"i4", "ui4", "f4E2M1FN", "i2", "ui2"};
  auto all = plainFloats + tinyFloats + signedInts + unsignedInts + packed + std::vector<std::string>{"i1"};
  for (const std::string &from : all)
    for (const std::string &to : all)
      for (const char *saturate : {"true", "false"}) {
        if (to.substr(0, 2) != "f8" && saturate[0] == 'f')
          continue;
        text += substitute(
            "func.func @cast_$from_$to_$sat(%a: tensor<71x$from>) -> tensor<71x$to> attributes {specials} {\n"
            "  %r = dmir.cast %a {saturate = $sat} : (tensor<71x$from>) -> tensor<71x$to>\n"
            "  return %r : tensor<71x$to>\n}\n",
            {{"from", from}, {"to", to}, {"sat", saturate}});
      }
  expectAgree(text, 3, 3);
}

TEST(PointwiseRegion, Bitcasts) {
  const std::vector<std::vector<std::string>> widths{{"i2", "ui2"},
                                                     {"i4", "ui4", "f4E2M1FN"},
                                                     {"i8", "ui8", "f8E4M3FN", "f8E5M2FNUZ", "f8E8M0FNU"},
                                                     {"i16", "ui16", "f16", "bf16"},
                                                     {"i32", "ui32", "f32"},
                                                     {"i64", "ui64", "f64"}};
  std::string text;
  for (const std::vector<std::string> &types : widths)
    for (const std::string &from : types)
      for (const std::string &to : types)
        text +=
            substitute("func.func @bitcast_$from_$to(%a: tensor<71x$from>) -> tensor<71x$to> attributes {specials} {\n"
                       "  %r = dmir.bitcast %a : (tensor<71x$from>) -> tensor<71x$to>\n"
                       "  return %r : tensor<71x$to>\n}\n",
                       {{"from", from}, {"to", to}});
  expectAgree(text, 5);
}

TEST(PointwiseRegion, FusedChainsAndBroadcasts) {
  expectAgree(R"(
func.func @gelu(%x: tensor<2x5x33xf32>, %bias: tensor<33xf32>) -> tensor<2x5x33xf32> attributes {ulp = 4.0, abs = 1.0e-6} {
  %half = dmir.constant dense<0.5> : tensor<f32>
  %one = dmir.constant dense<1.0> : tensor<1xf32>
  %scale = dmir.constant dense<0.70710678> : tensor<f32>
  %y = dmir.add %x, %bias : (tensor<2x5x33xf32>, tensor<33xf32>) -> tensor<2x5x33xf32>
  %s = dmir.mul %y, %scale : (tensor<2x5x33xf32>, tensor<f32>) -> tensor<2x5x33xf32>
  %e = dmir.erf %s : (tensor<2x5x33xf32>) -> tensor<2x5x33xf32>
  %p = dmir.add %e, %one : (tensor<2x5x33xf32>, tensor<1xf32>) -> tensor<2x5x33xf32>
  %h = dmir.mul %y, %half : (tensor<2x5x33xf32>, tensor<f32>) -> tensor<2x5x33xf32>
  %r = dmir.mul %h, %p : (tensor<2x5x33xf32>, tensor<2x5x33xf32>) -> tensor<2x5x33xf32>
  return %r : tensor<2x5x33xf32>
}
func.func @select(%c: tensor<6x1xi1>, %a: tensor<6x40xf16>, %b: tensor<f16>) -> tensor<6x40xf16> {
  %r = dmir.select %c, %a, %b : (tensor<6x1xi1>, tensor<6x40xf16>, tensor<f16>) -> tensor<6x40xf16>
  return %r : tensor<6x40xf16>
}
func.func @table(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %t = dmir.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %r = dmir.mul %a, %t : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
func.func @scalar(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %r = dmir.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
func.func @empty(%a: tensor<3x0x4xf32>) -> tensor<3x0x4xf32> {
  %r = dmir.neg %a : (tensor<3x0x4xf32>) -> tensor<3x0x4xf32>
  return %r : tensor<3x0x4xf32>
}
func.func @two_results(%a: tensor<3x50xf32>) -> (tensor<3x50xf32>, tensor<3x50xi1>) {
  %z = dmir.constant dense<0.0> : tensor<f32>
  %n = dmir.neg %a : (tensor<3x50xf32>) -> tensor<3x50xf32>
  %c = dmir.compare gt %n, %z : (tensor<3x50xf32>, tensor<f32>) -> tensor<3x50xi1>
  return %n, %c : tensor<3x50xf32>, tensor<3x50xi1>
}
func.func @one_result_of_another(%a: tensor<3x50xf32>, %b: tensor<3x50xf32>, %d: tensor<50xf32>)
    -> (tensor<3x50xf32>, tensor<3x50xf32>) attributes {ulp = 8.0, abs = 1.0e-6} {
  %m = dmir.mul %a, %b : (tensor<3x50xf32>, tensor<3x50xf32>) -> tensor<3x50xf32>
  %c = dmir.add %m, %d : (tensor<3x50xf32>, tensor<50xf32>) -> tensor<3x50xf32>
  %t = dmir.tanh %c : (tensor<3x50xf32>) -> tensor<3x50xf32>
  %h = dmir.mul %t, %b : (tensor<3x50xf32>, tensor<3x50xf32>) -> tensor<3x50xf32>
  return %c, %h : tensor<3x50xf32>, tensor<3x50xf32>
}
func.func @large(%a: tensor<64x1000xf32>, %b: tensor<64x1xf32>) -> tensor<64x1000xf32> attributes {ulp = 4.0} {
  %s = dmir.mul %a, %b : (tensor<64x1000xf32>, tensor<64x1xf32>) -> tensor<64x1000xf32>
  %r = dmir.tanh %s : (tensor<64x1000xf32>) -> tensor<64x1000xf32>
  return %r : tensor<64x1000xf32>
}
func.func @long_row(%a: tensor<100003xf32>) -> tensor<100003xf32> attributes {ulp = 4.0} {
  %r = dmir.exp %a : (tensor<100003xf32>) -> tensor<100003xf32>
  return %r : tensor<100003xf32>
}
func.func @round_each_op(%a: tensor<200xf16>, %b: tensor<200xf16>) -> tensor<200xf16> {
  %p = dmir.mul %a, %b : (tensor<200xf16>, tensor<200xf16>) -> tensor<200xf16>
  %r = dmir.add %p, %b : (tensor<200xf16>, tensor<200xf16>) -> tensor<200xf16>
  return %r : tensor<200xf16>
}
)");
}

TEST(PointwiseRegion, BlockedLayouts) {
  expectAgree(R"(
func.func @to_blocked(%a: tensor<2x35x5x7xf32>) -> tensor<2x35x5x7xf32, #dmir.blocked<1, 16>> {
  %r = dmir.relayout %a : (tensor<2x35x5x7xf32>) -> tensor<2x35x5x7xf32, #dmir.blocked<1, 16>>
  return %r : tensor<2x35x5x7xf32, #dmir.blocked<1, 16>>
}
func.func @to_plain(%a: tensor<2x35x5x7xf32, #dmir.blocked<1, 16>>) -> tensor<2x35x5x7xf32> {
  %r = dmir.relayout %a : (tensor<2x35x5x7xf32, #dmir.blocked<1, 16>>) -> tensor<2x35x5x7xf32>
  return %r : tensor<2x35x5x7xf32>
}
func.func @exact_blocks(%a: tensor<1x32x40x41xf32, #dmir.blocked<1, 16>>) -> tensor<1x32x40x41xf32> {
  %r = dmir.relayout %a : (tensor<1x32x40x41xf32, #dmir.blocked<1, 16>>) -> tensor<1x32x40x41xf32>
  return %r : tensor<1x32x40x41xf32>
}
func.func @flat_blocked(%a: tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>, %b: tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>) -> tensor<2x20x3x3xf32, #dmir.blocked<1, 16>> {
  %s = dmir.add %a, %b : (tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>, tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>) -> tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>
  %r = dmir.relu %s : (tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>) -> tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>
  return %r : tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>
}
func.func @bias_blocked(%a: tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>, %b: tensor<20x1x1xf32>) -> tensor<2x20x3x3xf32, #dmir.blocked<1, 16>> {
  %s = dmir.add %a, %b : (tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>, tensor<20x1x1xf32>) -> tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>
  return %s : tensor<2x20x3x3xf32, #dmir.blocked<1, 16>>
}
)");
}

// The harness must be able to fail: a kernel for one function against the interpreter's of another.
TEST(RegionHarness, NoticesDifferences) {
  std::string text = R"(
func.func @good(%a: tensor<40xf32>) -> tensor<40xf32> attributes {test.other} {
  %r = dmir.exp %a : (tensor<40xf32>) -> tensor<40xf32>
  return %r : tensor<40xf32>
}
)"; // exp asked for bit-exact: some element differs from the correctly rounded one
  RegionModule regions(text);
  ASSERT_EQ(regions.error, "");
  std::string differences;
  for (unsigned seed = 1; seed < 60; ++seed)
    differences += regions.check("good", regions.levels().front(), seed);
  EXPECT_NE(differences.find("want"), std::string::npos);
}

} // namespace
