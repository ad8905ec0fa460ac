//===- RuleTest.cpp - ranges and counts of rules against enumeration ----------===//

#include "dmxc/Dialect/DMIR/Columns.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

using namespace dmxc::dmir;
using namespace mlir;

namespace {

struct Sizes {
  int64_t heads, rows, columns;
};

/// Rules as masks have them: bounds on j - i, chunks, heads that differ, single columns, strides; in up to three cases.
class Random {
public:
  Random(MLIRContext &context, unsigned seed) : context(context), engine(seed) {}

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
  Sizes sizes() { return {number(1, 2), number(0, 300), number(0, 300)}; }

  Condition condition() {
    AffineExpr h = getAffineDimExpr(0, &context), i = getAffineDimExpr(1, &context), j = getAffineDimExpr(2, &context),
               s = getAffineSymbolExpr(0, &context);
    int64_t by = number(1, 70);
    switch (number(0, 7)) {
    case 0:
      return {i + s - j, false};
    case 1:
      return {j - i - number(-200, 100), false};
    case 2:
      return {i * number(1, 3) - j * number(1, 3) + number(-50, 50), false};
    case 3:
      return {i.floorDiv(by) - j.floorDiv(by) + number(0, 1), number(0, 1) == 1};
    case 4:
      return {(h + 1) * number(0, 100) - j, false};
    case 5:
      return {s - i - number(-20, 20), false};
    case 6:
      return {(i - j) % by, true};
    default:
      return {j - number(0, 300), number(0, 3) == 0};
    }
  }

  Rule rule() {
    Rule rule;
    rule.rank = 3;
    rule.dims = {dmxc::Dim::symbol("s")};
    for (int64_t cases = number(1, 3); cases-- > 0;) {
      Conditions conditions;
      for (int64_t count = number(1, 3); count-- > 0;)
        conditions.push_back(condition());
      rule.cases.push_back(caseOf(3, 1, conditions));
    }
    return rule;
  }

private:
  MLIRContext &context;
  std::mt19937 engine;
};

/// The value of an expression by the definition of each of its operations.
int64_t valueOf(AffineExpr expr, ArrayRef<int64_t> index, int64_t symbol) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return index[dim.getPosition()];
  if (isa<AffineSymbolExpr>(expr))
    return symbol;
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return number.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t a = valueOf(binary.getLHS(), index, symbol), b = valueOf(binary.getRHS(), index, symbol);
  auto floor = [&] { return (a - ((a % b) + b) % b) / b; };
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return a + b;
  case AffineExprKind::Mul:
    return a * b;
  case AffineExprKind::FloorDiv:
    return floor();
  default:
    return a - floor() * b;
  }
}

bool isKept(const Rule &rule, ArrayRef<int64_t> index, int64_t symbol) {
  return llvm::any_of(rule.cases, [&](IntegerSet set) {
    for (auto [expr, isEq] : llvm::zip(set.getConstraints(), set.getEqFlags())) {
      int64_t value = valueOf(expr, index, symbol);
      if (isEq ? value != 0 : value < 0)
        return false;
    }
    return true;
  });
}

void checkRule(const Rule &rule, Sizes sizes, int64_t symbol, int64_t block) {
  auto kept = [&](int64_t h, int64_t i, int64_t j) { return isKept(rule, {h, i, j}, symbol); };
  for (int64_t h = 0; h < sizes.heads; ++h)
    for (int64_t first = 0; first < sizes.rows; first += block) {
      int64_t last = std::min(first + block, sizes.rows) - 1;
      std::pair<int64_t, int64_t> bounds[] = {{h, h}, {first, last}};
      ColumnRange<int64_t> range = Columns<int64_t>(plainIntegers(), bounds, symbol, sizes.columns).of(rule);
      for (int64_t i = first; i <= last; ++i) {
        int64_t count = 0;
        for (int64_t j = 0; j < sizes.columns; ++j) {
          bool is = kept(h, i, j);
          count += is;
          ASSERT_EQ(keeps(rule, {h, i, j}, symbol), is);
          ASSERT_TRUE(!is || (j >= range.first && j < range.last)) << describe(rule) << " at " << i << ", " << j;
          ASSERT_TRUE(is || j < range.firstFull || j >= range.lastFull) << describe(rule) << " at " << i << ", " << j;
        }
        ASSERT_EQ(keptInRow(rule, {h, i}, sizes.columns, symbol), count) << describe(rule) << " row " << i;
      }
      for (int64_t at = 0; at < sizes.columns; at += block) {
        int64_t end = std::min(at + block, sizes.columns), count = 0;
        for (int64_t i = first; i <= last; ++i)
          for (int64_t j = at; j < end; ++j)
            count += kept(h, i, j);
        TileKind kind = classify(rule, {{h, h}, {first, last}, {at, end - 1}}, symbol);
        ASSERT_TRUE(kind != TileKind::Empty || count == 0) << describe(rule);
        ASSERT_TRUE(kind != TileKind::Full || count == (last - first + 1) * (end - at)) << describe(rule);
      }
    }
}

} // namespace

TEST(Rule, AgreesWithEnumeration) {
  MLIRContext context;
  unsigned rules = std::getenv("DMXC_LONG") ? 2000 : 40;
  for (unsigned seed = 0; seed < rules; ++seed) {
    Random random(context, seed);
    checkRule(random.rule(), random.sizes(), random.number(-50, 350), random.number(1, 80));
    if (testing::Test::HasFatalFailure())
      FAIL() << "seed " << seed;
  }
}

/// Of one comparison with j, a block's ranges are exact: no column less is kept by no row, no column more by all.
TEST(Rule, RangesAreTight) {
  MLIRContext context;
  AffineExpr i = getAffineDimExpr(0, &context), j = getAffineDimExpr(1, &context);
  Rule rule;
  rule.rank = 2;
  rule.cases.push_back(caseOf(2, 0, {{i - j, false}, {j - i + 5, false}}));
  std::pair<int64_t, int64_t> bounds[] = {{16, 23}};
  ColumnRange<int64_t> range = Columns<int64_t>(plainIntegers(), bounds, {}, 100).of(rule);
  EXPECT_EQ(range.first, 11);
  EXPECT_EQ(range.last, 24);
  EXPECT_EQ(range.firstFull, 18);
  EXPECT_EQ(range.lastFull, 18);
  EXPECT_EQ(describe(rule), "j <= i and i <= j + 5");
  EXPECT_EQ(keptInRow(rule, {3}, 100, {}), 4);
}
