//===- UnitByteRegions.cpp - products of bytes by tiles -------------------===//
//
// As UnitRegions.cpp, of bytes: sums are exact, so all levels and the interpreter have the same bits.
//
//===----------------------------------------------------------------------===//

#include "UnitRegions.h"

#include "targets/cpu/code/IsaLevel.h"
#include "tests/Sample.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using dmxc::kernels::test::RegionModule;

namespace {

/// At the level of tiles, and in a long run also at one whose vectors have dot products of bytes; each alone, as a
/// bundle with both has one code of what tiles do not multiply.
void check(const std::string &text, bool vectorsToo) {
  for (llvm::StringRef level : {kTileLevel, kVnniLevel})
    if (level == kTileLevel || vectorsToo)
      checkAt(level, text);
}

struct Product {
  int64_t batch = 0, m = 1, n = 1, k = 1; ///< batch: 0: there is none
  bool turnedWeights = false, openRows = false, greatest = false;
  std::string epilogue;
};

std::string tensor(const std::string &dims, const char *type, bool open = false) {
  return "tensor<" + dims + "x" + type + (open ? ", #dmir.dims<\"m\">>" : ">");
}

/// The text of a product of u8 and s8 and what quantised layers do with its sums: a zero point's share is taken off,
/// scaled, rounded to bytes. `greatest`: all bytes have the greatest magnitude, so that saturating sums would show.
std::string functionOf(const std::string &name, const Product &p) {
  auto of = [](int64_t x) { return std::to_string(x); };
  std::string rows = (p.batch ? of(p.batch) + "x" : "") + (p.openRows ? "?" : of(p.m));
  auto result = [&](const char *type) { return tensor(rows + "x" + of(p.n), type, p.openRows); };
  std::string a = tensor(rows + "x" + of(p.k), "ui8", p.openRows), w = tensor(of(p.k) + "x" + of(p.n), "i8"), held = w;
  std::string body, right = "%w", value = "%r", type = "i32", extra;
  if (p.turnedWeights) {
    held = tensor(of(p.n) + "x" + of(p.k), "i8");
    body += "  %t = dmir.transpose %w {permutation = array<i64: 1, 0>} : (" + held + ") -> " + w + "\n";
    right = "%t";
  }
  body += "  %r = dmir.matmul %a, " + right + " : (" + a + ", " + w + ") -> " + result("i32") + "\n";
  auto add = [&](const char *op, const std::string &operand, const std::string &its, const char *to) {
    std::string next = value + "e", types = result(type.c_str()) + (operand.empty() ? "" : ", " + its);
    body += "  " + next + " = dmir." + op + " " + value + (operand.empty() ? "" : ", " + operand) + " : (" + types +
            ") -> " + result(to) + "\n";
    value = next, type = to;
  };
  std::string zeros = tensor(of(p.n), "i32"), scales = tensor(of(p.n), "f32");
  if (!p.epilogue.empty()) {
    extra = ", %z: " + zeros + " {test.lo = -9000, test.hi = 9000}";
    add("sub", "%z", zeros, "i32");
  }
  if (p.epilogue == "bytes") {
    extra += ", %s: " + scales + ", %o: tensor<f32>";
    add("cast", "", "", "f32");
    add("mul", "%s", scales, "f32");
    add("round", "", "", "f32");
    add("add", "%o", "tensor<f32>", "f32");
    add("cast", "", "", "ui8");
  }
  std::string range = p.greatest ? ", test.lo = -128, test.hi = -128" : "";
  return "func.func @" + name + "(%a: " + a + (p.greatest ? " {test.lo = 255, test.hi = 255}" : "") + ", %w: " + held +
         " {test.packed" + range + "}" + extra + ") -> " + result(type.c_str()) + "\n    attributes {" +
         (p.openRows ? "sizes = [{m = " + of(p.m) + "}, {m = 1}, {m = 17}, {m = 0}]" : "ulp = 0.0") + "} {\n" + body +
         "  return " + value + " : " + result(type.c_str()) + "\n}\n";
}

Product randomProduct(std::mt19937_64 &random) {
  auto size = [&] { return int64_t(std::lround(std::pow(300.0, std::uniform_real_distribution<>()(random)))); };
  Product p;
  p.m = size(), p.n = size(), p.k = size();
  if (random() % 2)
    p.batch = 1 + random() % 3;
  p.turnedWeights = random() % 3 == 0, p.openRows = random() % 4 == 0, p.greatest = random() % 8 == 0;
  constexpr const char *epilogues[] = {"", "zeros", "bytes"};
  p.epilogue = epilogues[random() % std::size(epilogues)];
  return p;
}

TEST(ByteUnits, RandomProducts) {
  sampling::Sample sample(10);
  for (unsigned group = 0; group < 30; ++group) {
    if (!sample.takes(uint64_t(group)))
      continue;
    std::mt19937_64 random(group + 1000);
    std::string text;
    for (unsigned i = 0; i < 10; ++i)
      text += functionOf("b" + std::to_string(group) + "_" + std::to_string(i), randomProduct(random));
    check(text, sample.whole());
  }
}

/// One register, two of them and what lies between; one byte, a four, a tile of k and what lies between. The last tile
/// of k has some of it again where fours are not shared out evenly.
TEST(ByteUnits, ProductsAtTheEdgesOfTiles) {
  std::string text;
  auto add = [&](Product p) { text += functionOf("e" + std::to_string(text.size()), p); };
  for (int64_t m : {1, 4, 5, 16, 17, 32, 33, 49})
    add({.m = m, .n = 40, .k = 139});
  for (int64_t n : {1, 15, 16, 17, 32, 33, 64, 65})
    add({.m = 20, .n = n, .k = 66});
  for (int64_t n : {16, 48, 63, 64, 70}) // one tile of rows has four of columns
    add({.m = 9, .n = n, .k = 128});
  for (int64_t k : {1, 2, 3, 4, 5, 60, 61, 63, 64, 65, 68, 69, 127, 128, 129, 132, 133, 191, 192, 193, 258})
    add({.m = 18, .n = 20, .k = k});
  add({.m = 700, .n = 33, .k = 1203}); // several blocks of rows
  add({.m = 300, .n = 20, .k = 130, .openRows = true, .epilogue = "bytes"});
  add({.m = 40, .n = 20, .k = 1030, .greatest = true});
  check(text, sampling::longRun());
}

/// Two taps at a time by vectors, at a level with tiles, too.
TEST(ByteUnits, DepthwiseConvolutions) {
  const std::string image = "tensor<2x40x5x14xui8, #dmir.blocked<1, 16>>", weights = "tensor<40x1x3x3xi8>",
                    result = "tensor<2x40x5x14xi32, #dmir.blocked<1, 16>>";
  check("func.func @taps(%a: " + image + ", %w: " + weights + " {test.packed}) -> " + result + R"( {
  %c = dmir.conv %a, %w {groups = 40 : i64, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, high = array<i64: 1, 1>} : ()" +
            image + ", " + weights + ") -> " + result + "\n  return %c : " + result + "\n}\n",
        /*vectorsToo=*/true);
}

TEST(ByteUnits, SumsStayInRegisters) {
  RegionModule regions(functionOf("large", {.m = 128, .n = 768, .k = 768, .epilogue = "bytes"}) +
                       functionOf("uneven", {.m = 14, .n = 200, .k = 530, .epilogue = "zeros"}) +
                       functionOf("open", {.m = 40, .n = 100, .k = 300, .openRows = true, .epilogue = "bytes"}) +
                       functionOf("few", {.m = 3, .n = 100, .k = 300}));
  ASSERT_EQ(regions.error, "");
  for (const std::string &name : regions.names()) {
    std::string text = assemblyAt(kTileLevel, name + "_kernel");
    EXPECT_EQ(spillIn(text), "") << name;
    bool isFew = name == "few"; // they wait for their weights
    EXPECT_EQ(text.find("\ttdpbusd") == std::string::npos, isFew) << name;
    EXPECT_EQ(text.find("\tvpdpbusd") != std::string::npos, isFew) << name;
    EXPECT_EQ(text.find("tilerelease") == std::string::npos, isFew) << name;
    EXPECT_NE(regions.strategy(name).find("algorithm = \"matmul-quads\""), std::string::npos);
  }
}

} // namespace
