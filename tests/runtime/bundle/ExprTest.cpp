//===- ExprTest.cpp - size expressions and JSON reading -------------------===//

#include "runtime/bundle/Expr.h"
#include "../RuntimeTest.h"

using namespace dmxrt;

namespace {

struct Parsed {
  ExprPool pool;
  ExprId id = 0;
  std::string error;
};

Parsed parse(const std::string &text) {
  Parsed out;
  JsonDocument document({reinterpret_cast<const std::byte *>(text.data()), text.size()}, "test");
  ExprPool::DimNames names{{"n", 0}, {"m", 1}};
  out.id = out.pool.parse(document.root(), names);
  if (document.failed())
    out.error = document.takeError().message;
  return out;
}

int64_t value(const std::string &text, std::vector<int64_t> dims = {7, -3}) {
  Parsed parsed = parse(text);
  EXPECT_EQ(parsed.error, "") << text;
  auto result = parsed.pool.evaluate(parsed.id, dims);
  EXPECT_TRUE(result) << text;
  return result ? *result : INT64_MIN;
}

bool fails(const std::string &text, std::vector<int64_t> dims = {7, -3}) {
  Parsed parsed = parse(text);
  EXPECT_EQ(parsed.error, "") << text;
  return !parsed.pool.evaluate(parsed.id, dims);
}

const std::string kNames[] = {"n", "m"};

} // namespace

TEST(Expr, Values) {
  EXPECT_EQ(value("42"), 42);
  EXPECT_EQ(value("\"n\""), 7);
  EXPECT_EQ(value(R"(["add", "n", ["mul", 2, "m"]])"), 1);
  EXPECT_EQ(value(R"(["sub", "n", "m"])"), 10);
  EXPECT_EQ(value(R"(["floordiv", "n", 2])"), 3);
  EXPECT_EQ(value(R"(["floordiv", -7, 2])"), -4);
  EXPECT_EQ(value(R"(["floordiv", 7, -2])"), -4);
  EXPECT_EQ(value(R"(["floordiv", -7, -2])"), 3);
  EXPECT_EQ(value(R"(["floordiv", -8, 2])"), -4);
  EXPECT_EQ(value(R"(["ceildiv", "n", 2])"), 4);
  EXPECT_EQ(value(R"(["ceildiv", -7, 2])"), -3);
  EXPECT_EQ(value(R"(["ceildiv", 8, 2])"), 4);
  EXPECT_EQ(value(R"(["mod", 7, 3])"), 1);
  EXPECT_EQ(value(R"(["mod", -7, 3])"), 2);
  EXPECT_EQ(value(R"(["mod", 7, -3])"), -2);
  EXPECT_EQ(value(R"(["min", "n", "m"])"), -3);
  EXPECT_EQ(value(R"(["max", "n", "m"])"), 7);
  EXPECT_EQ(value(R"(["broadcast", "n", 1])"), 7);
  EXPECT_EQ(value(R"(["broadcast", 1, "n"])"), 7);
  EXPECT_EQ(value(R"(["broadcast", "n", 7])"), 7);
  EXPECT_EQ(value(R"(["broadcast", 0, 1])"), 0);
}

TEST(Expr, BroadcastFailures) {
  for (const char *text : {R"(["broadcast", "n", 3])", R"(["broadcast", 0, "n"])", R"(["broadcast", 2, 4])"})
    EXPECT_TRUE(fails(text)) << text;
  Parsed parsed = parse(R"(["broadcast", 3, ["add", "n", -3]])");
  auto result = parsed.pool.evaluate(parsed.id, std::vector<int64_t>{7, 0});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "cannot broadcast 3 and 4");
  EXPECT_EQ(result.error().status, DMX_STATUS_INVALID_ARGUMENT) << "the inputs are wrong, not the bundle";
  EXPECT_EQ(parsed.pool.text(parsed.id, kNames), "broadcast(3, n + -3)");
}

/// Every pair within bounds that broadcasts gives a value within the range.
TEST(Expr, BroadcastRanges) {
  Parsed parsed = parse(R"(["broadcast", "n", "m"])");
  for (int64_t a = 0; a < 4; ++a)
    for (int64_t b = a; b < 4; ++b)
      for (int64_t c = 0; c < 4; ++c)
        for (int64_t d = c; d < 4; ++d) {
          ExprPool::Range bounds[] = {{a, b}, {c, d}};
          auto [low, high] = parsed.pool.range(parsed.id, bounds);
          for (int64_t n = a; n <= b; ++n)
            for (int64_t m = c; m <= d; ++m)
              if (n == m || n == 1 || m == 1) {
                EXPECT_LE(low, n == 1 ? m : n);
                EXPECT_GE(high, n == 1 ? m : n);
              }
        }
}

TEST(Expr, OverflowAndZeroDivisors) {
  std::string most = std::to_string(INT64_MAX), least = std::to_string(INT64_MIN);
  EXPECT_TRUE(fails("[\"add\", " + most + ", 1]"));
  EXPECT_TRUE(fails("[\"sub\", " + least + ", 1]"));
  EXPECT_TRUE(fails("[\"mul\", " + most + ", \"n\"]"));
  EXPECT_TRUE(fails("[\"floordiv\", " + least + ", -1]"));
  EXPECT_TRUE(fails("[\"ceildiv\", " + least + ", -1]"));
  EXPECT_EQ(value("[\"mod\", " + least + ", -1]"), 0);
  for (const char *op : {"floordiv", "ceildiv", "mod"})
    EXPECT_TRUE(fails(std::string("[\"") + op + "\", 1, [\"sub\", \"n\", 7]]"));
}

TEST(Expr, Refusals) {
  EXPECT_NE(parse("\"other\"").error.find("dim 'other'"), std::string::npos);
  EXPECT_NE(parse("[\"pow\", 1, 2]").error.find("'pow'"), std::string::npos);
  EXPECT_NE(parse("[\"add\", 1]").error.find("[op, a, b]"), std::string::npos);
  EXPECT_NE(parse("1.5").error, "");
  EXPECT_NE(parse("null").error, "");
  EXPECT_NE(parse("{}").error, "");
  EXPECT_NE(parse("18446744073709551615").error.find("integer"), std::string::npos);
  std::string deep = "1"; // FORMAT.md: at most 48 operations
  for (int i = 0; i < 48; ++i)
    deep = "[\"add\", 1, " + deep + "]";
  EXPECT_EQ(parse(deep).error, "");
  deep = "[\"add\", 1, " + deep + "]";
  EXPECT_NE(parse(deep).error.find("nests"), std::string::npos);
  for (int i = 0; i < 100000; ++i)
    deep = "[" + deep;
  EXPECT_NE(parse(deep).error.find("nests"), std::string::npos);
  EXPECT_NE(parse("[1, 2").error.find("not valid JSON"), std::string::npos);
}

TEST(Expr, Text) {
  Parsed parsed = parse(R"(["mul", ["add", "n", 1], ["max", "m", 2]])");
  EXPECT_EQ(parsed.pool.text(parsed.id, kNames), "(n + 1) * max(m, 2)");
}

TEST(Expr, Ranges) {
  ExprPool::Range ranges[] = {{1, 64}, {0, INT64_MAX}};
  auto range = [&](const std::string &text) {
    Parsed parsed = parse(text);
    return parsed.pool.range(parsed.id, ranges);
  };
  auto expect = [&](const std::string &text, int64_t min, int64_t max) {
    auto [low, high] = range(text);
    EXPECT_EQ(low, min) << text;
    EXPECT_EQ(high, max) << text;
  };
  expect(R"(["mul", "n", 49])", 49, 64 * 49);
  expect(R"(["sub", 10, "n"])", -54, 9);
  expect(R"(["mul", "n", -1])", -64, -1);
  expect(R"(["floordiv", "n", 3])", 0, 21);
  expect(R"(["ceildiv", "n", 3])", 1, 22);
  expect(R"(["mod", "n", 8])", 0, 7);
  expect(R"(["add", "m", 1])", 1, INT64_MAX);
  expect(R"(["min", "n", "m"])", 0, 64);
  expect(R"(["max", "n", 10])", 10, 64);
}
