//===- RuleTest.cpp - ranges, tiles and counts of rules against enumeration ----===//

#include "dmxc/Dialect/DMIR/masks/Columns.h"
#include "dmxc/Dialect/DMIR/masks/Tiles.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

using namespace dmxc::dmir;
using namespace mlir;

namespace {

struct Sizes {
  int64_t heads, rows, columns;
};

/// A condition in both forms: as the rule has it, and as a function of the index that is written down beside it.
struct Both {
  Condition condition;
  std::function<int64_t(int64_t h, int64_t i, int64_t j)> value;
};

int64_t floorOf(int64_t a, int64_t b) { return (a - ((a % b) + b) % b) / b; }

/// Rules as masks have them: bounds on j - i, chunks, heads that differ, single columns, strides; in up to three cases.
class Random {
public:
  Random(MLIRContext &context, unsigned seed) : context(context), engine(seed) { symbol = number(-50, 350); }

  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
  Sizes sizes() { return {number(1, 2), number(0, 300), number(0, 300)}; }

  Both condition() {
    AffineExpr h = getAffineDimExpr(0, &context), i = getAffineDimExpr(1, &context), j = getAffineDimExpr(2, &context),
               s = getAffineSymbolExpr(0, &context);
    using N = int64_t;
    N by = number(1, 70), at = symbol, a = number(1, 3), c = number(1, 3), n = number(-200, 100), m = number(0, 300);
    switch (number(0, 8)) {
    case 0:
      return {{i + s - j, false}, [=](N, N i, N j) { return i + at - j; }};
    case 1:
      return {{j - i - n, false}, [=](N, N i, N j) { return j - i - n; }};
    case 2:
      return {{i * a - j * c + n, false}, [=](N, N i, N j) { return i * a - j * c + n; }};
    case 3: {
      bool isEq = number(0, 1) == 1;
      return {{i.floorDiv(by) - j.floorDiv(by), isEq}, [=](N, N i, N j) { return floorOf(i, by) - floorOf(j, by); }};
    }
    case 4:
      return {{(h + 1) * m - j, false}, [=](N h, N, N j) { return (h + 1) * m - j; }};
    case 5:
      return {{s - i - n, false}, [=](N, N i, N) { return at - i - n; }};
    case 6:
      return {{(i - j) % by, true}, [=](N, N i, N j) { return i - j - floorOf(i - j, by) * by; }};
    case 7:
      return {{(i + m).floorDiv(by) * by - j, false}, [=](N, N i, N j) { return floorOf(i + m, by) * by - j; }};
    default: {
      bool isEq = number(0, 3) == 0;
      return {{j - m, isEq}, [=](N, N, N j) { return j - m; }};
    }
    }
  }

  void makeRule() {
    rule.rank = 3;
    rule.dims = {dmxc::Dim::symbol("s")};
    for (int64_t count = number(1, 3); count-- > 0;) {
      Conditions conditions;
      cases.emplace_back();
      for (int64_t more = number(1, 3); more-- > 0;) {
        cases.back().push_back(condition());
        conditions.push_back(cases.back().back().condition);
      }
      rule.cases.push_back(caseOf(3, 1, conditions));
    }
  }

  bool isKept(int64_t h, int64_t i, int64_t j) const {
    return llvm::any_of(cases, [&](const std::vector<Both> &all) {
      return llvm::all_of(all, [&](const Both &one) {
        int64_t value = one.value(h, i, j);
        return one.condition.isEq ? value == 0 : value >= 0;
      });
    });
  }

  Rule rule;
  std::vector<std::vector<Both>> cases;
  int64_t symbol;

private:
  MLIRContext &context;
  std::mt19937 engine;
};

/// One matrix, element by element.
struct Enumerated {
  int64_t rows, columns;
  std::vector<char> kept;
  bool at(int64_t i, int64_t j) const { return kept[i * columns + j]; }

  Enumerated(const Random &random, Sizes sizes, int64_t h) : rows(sizes.rows), columns(sizes.columns) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        kept.push_back(random.isKept(h, i, j));
  }

  TileCounts tiles(TileSize tile) const {
    TileCounts counts;
    counts.elements = rows * columns;
    for (int64_t row = 0; row < rows; row += tile.rows)
      for (int64_t column = 0; column < columns; column += tile.columns) {
        int64_t rowsEnd = std::min(row + tile.rows, rows), columnsEnd = std::min(column + tile.columns, columns),
                here = 0;
        for (int64_t i = row; i < rowsEnd; ++i)
          for (int64_t j = column; j < columnsEnd; ++j)
            here += at(i, j);
        counts.kept += here;
        bool isFull = here == (rowsEnd - row) * (columnsEnd - column);
        ++(here == 0 ? counts.empty : isFull ? counts.full : counts.mixed);
        if (here)
          counts.present.push_back({column, row, columnsEnd, rowsEnd});
      }
    return counts;
  }
};

/// Classes of tiles, which of them hold something, and counts: exactly those of enumeration.
bool tilesAgree(const Rule &rule, const Random &random, Sizes sizes, TileSize tile) {
  for (int64_t h = 0; h < sizes.heads; ++h) {
    TileCounts wanted = Enumerated(random, sizes, h).tiles(tile),
               got = countTiles(rule, {h}, sizes.rows, sizes.columns, random.symbol, tile, 1 << 20);
    if (wanted.elements != got.elements || wanted.kept != got.kept || wanted.empty != got.empty ||
        wanted.full != got.full || wanted.mixed != got.mixed || wanted.present != got.present)
      return false;
  }
  return true;
}

/// What is said of a box whatever a symbol is between bounds: never that nothing is kept, or all, where that is not so;
/// of one index and one number what is so.
void checkBox(const Random &random, ArrayRef<std::pair<int64_t, int64_t>> box, int64_t kept, int64_t elements,
              bool isPoint = false) {
  for (int64_t more : {0, 3}) {
    std::pair<int64_t, int64_t> symbol{random.symbol - more, random.symbol + more};
    auto [some, every] = Columns<int64_t>(plainIntegers(), box, symbol, 0).whether(random.rule);
    ASSERT_TRUE(some || kept == 0) << describe(random.rule);
    ASSERT_TRUE(!every || kept == elements) << describe(random.rule);
    if (isPoint && more == 0)
      ASSERT_TRUE(some == kept && every == kept) << describe(random.rule);
  }
}

/// Rows: their runs are those of enumeration. Blocks of rows: nothing that is kept is outside of their range, nothing
/// that is not kept in its full part; what the bounds of a tile tell is never wrong.
void checkRows(const Random &random, Sizes sizes, TileSize tile, Random &points) {
  RowRuns runs(random.rule, random.symbol, sizes.columns);
  for (int64_t h = 0; h < sizes.heads; ++h) {
    Enumerated all(random, sizes, h);
    for (int64_t i = 0; i < sizes.rows; ++i) {
      std::vector<std::pair<int64_t, int64_t>> wanted;
      for (int64_t j = 0; j < sizes.columns; ++j)
        if (all.at(i, j) && !wanted.empty() && wanted.back().second == j)
          ++wanted.back().second;
        else if (all.at(i, j))
          wanted.emplace_back(j, j + 1);
      ASSERT_TRUE(runs.of({h, i}) == ArrayRef(wanted)) << describe(random.rule) << " row " << i;
    }
    for (int64_t first = 0; first < sizes.rows; first += tile.rows) {
      int64_t last = std::min(first + tile.rows, sizes.rows) - 1;
      std::pair<int64_t, int64_t> bounds[] = {{h, h}, {first, last}};
      auto range =
          Columns<int64_t>(plainIntegers(), bounds, pointsOf<int64_t>(random.symbol), sizes.columns).of(random.rule);
      auto [from, to] = visitedColumns(range.first, range.last, sizes.columns, tile);
      for (int64_t i = first; i <= last; ++i)
        for (int64_t j = 0; j < sizes.columns; ++j) {
          bool is = all.at(i, j);
          ASSERT_TRUE(!is || (j >= range.first && j < range.last && j >= from && j < to)) << describe(random.rule);
          ASSERT_TRUE(is || j < range.firstFull || j >= range.lastFull) << describe(random.rule);
        }
    }
    for (int look = 0; look < 20 && sizes.rows && sizes.columns; ++look) {
      int64_t i = points.number(0, sizes.rows - 1), j = points.number(0, sizes.columns - 1);
      ASSERT_EQ(keeps(random.rule, {h, i, j}, random.symbol), all.at(i, j)) << describe(random.rule);
      int64_t rows = std::min(tile.rows, sizes.rows - i), columns = std::min(tile.columns, sizes.columns - j), here = 0;
      for (int64_t r = i; r < i + rows; ++r)
        for (int64_t c = j; c < j + columns; ++c)
          here += all.at(r, c);
      TileKind kind = classify(random.rule, {{h, h}, {i, i + rows - 1}, {j, j + columns - 1}}, random.symbol);
      ASSERT_TRUE(kind != TileKind::Empty || here == 0) << describe(random.rule);
      ASSERT_TRUE(kind != TileKind::Full || here == rows * columns) << describe(random.rule);
      checkBox(random, {{h, h}, {i, i + rows - 1}, {j, j + columns - 1}}, here, rows * columns);
      checkBox(random, {{h, h}, {i, i}, {j, j}}, all.at(i, j), 1, /*isPoint=*/true);
    }
  }
}

} // namespace

TEST(Rule, AgreesWithEnumeration) {
  MLIRContext context;
  unsigned rules = std::getenv("DMXC_LONG") ? 2000 : 200;
  for (unsigned seed = 0; seed < rules; ++seed) {
    Random random(context, seed);
    random.makeRule();
    Sizes sizes = random.sizes();
    TileSize tile{random.number(1, 80), random.number(1, 80), 0};
    tile.pass = tile.columns * random.number(1, 4);
    ASSERT_TRUE(tilesAgree(random.rule, random, sizes, tile)) << "seed " << seed << ": " << describe(random.rule);
    checkRows(random, sizes, tile, random);
    if (testing::Test::HasFatalFailure())
      FAIL() << "seed " << seed;
  }
}

/// The control: a rule that is off by one in one comparison gives other tiles.
TEST(Rule, OffByOneIsSeen) {
  MLIRContext context;
  int tried = 0, seen = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(context, seed);
    random.makeRule();
    Sizes sizes{1, 150, 170};
    TileCounts plain = Enumerated(random, sizes, 0).tiles({16, 16, 16});
    const Condition &first = random.cases[0][0].condition;
    if (random.rule.cases.size() != 1 || random.cases[0].size() != 1 || first.isEq || !plain.kept || !plain.empty)
      continue;
    Rule off = random.rule;
    off.cases = {caseOf(3, 1, {{first.expr - 1, false}})};
    ++tried;
    seen += !tilesAgree(off, random, sizes, {16, 16, 16});
  }
  EXPECT_GE(tried, 10);
  EXPECT_EQ(seen, tried);
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

/// As people write them.
TEST(Rule, Texts) {
  MLIRContext context;
  AffineExpr i = getAffineDimExpr(0, &context), j = getAffineDimExpr(1, &context);
  auto s = [&](unsigned at) { return getAffineSymbolExpr(at, &context); };
  Rule rule;
  rule.rank = 2;
  rule.values = {{"'ids'", "", false, true, false},
                 {"'ids'", "", false, false, true},
                 {"'pad'", "", true, false, true},
                 {"'b'", " > 0", true, true, true}};
  auto text = [&](const Conditions &conditions) {
    rule.cases = {caseOf(2, 4, conditions)};
    return describe(rule);
  };
  EXPECT_EQ(text({{i - j + 63, false}, {j - i + 63, false}}), "|i - j| < 64");
  EXPECT_EQ(text({{i - j + 63, false}, {j - i + 62, false}}), "j <= i + 63 and i <= j + 62");
  EXPECT_EQ(text({{i - j - 1, false}}), "j < i");
  EXPECT_EQ(text({{i - 1, false}}), "1 <= i");
  EXPECT_EQ(text({{i.floorDiv(64) - (j + 2).floorDiv(64), true}}), "(j + 2) // 64 == i // 64");
  EXPECT_EQ(text({{(i - j) % 32, true}}), "(i - j) % 32 == 0");
  EXPECT_EQ(text({{s(0) - s(1), true}, {s(2) - 1, false}, {-s(3), false}}),
            "'ids'[j] == 'ids'[i] and 'pad'[j] and not ('b'[i, j] > 0)");
}

/// The example of the documentation, and a size at which nothing of the matrix may be made.
TEST(Rule, CausalAndWindow) {
  MLIRContext context;
  AffineExpr i = getAffineDimExpr(0, &context), j = getAffineDimExpr(1, &context);
  Rule causal, window;
  causal.rank = window.rank = 2;
  causal.cases.push_back(caseOf(2, 0, {{i - j, false}}));
  window.cases.push_back(caseOf(2, 0, {{i - j, false}, {j - i + 511, false}}));
  TileCounts small = countTiles(causal, {}, 8, 8, {}, {4, 4, 4});
  std::vector<std::array<int64_t, 4>> wanted{{0, 0, 4, 4}, {0, 4, 4, 8}, {4, 4, 8, 8}};
  EXPECT_EQ(small.present, wanted);
  constexpr int64_t n = 131072;
  std::optional<TileCounts> large = countAllTiles(window, {n, n}, {}, {64, 64, 256});
  ASSERT_TRUE(large);
  EXPECT_EQ(large->kept, 66978048);
  EXPECT_FALSE(large->allPresent);
}
