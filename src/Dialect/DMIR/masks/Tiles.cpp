//===- Tiles.cpp - what a rule keeps, row by row and tile by tile ---------===//
#include "dmxc/Dialect/DMIR/masks/Tiles.h"

#include "dmxc/Dialect/DMIR/masks/Columns.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

RowRuns::RowRuns(const Rule &rule, ArrayRef<int64_t> symbols, int64_t columns)
    : rank(rule.rank), symbols(symbols), columns(columns), tiles(rule.tiles) {
  llvm::for_each(rule.cases, [&](IntegerSet set) { addCase(set); });
}

bool RowRuns::byColumn() const {
  return llvm::any_of(cases,
                      [](const auto &lines) { return llvm::any_of(lines, [](const Line &l) { return l.whole; }); });
}

void RowRuns::addCase(IntegerSet set) {
  SmallVector<Line> lines;
  AffineExpr column = getAffineDimExpr(rank - 1, set.getContext());
  for (const Condition &condition : conditionsOf(set)) {
    Line line;
    line.isEq = condition.isEq;
    for (const AffineTerm &term : termsOf(condition.expr, line.constant)) {
      auto dim = dyn_cast<AffineDimExpr>(term.atom);
      auto quotient = dyn_cast<AffineBinaryOpExpr>(term.atom);
      bool divides = quotient && quotient.getKind() == AffineExprKind::FloorDiv && quotient.getLHS() == column;
      if (!term.atom.isFunctionOfDim(rank - 1)) {
        if (dim)
          line.dims.emplace_back(dim.getPosition(), term.factor);
        else
          line.others.push_back(term);
      } else if ((dim || divides) && !line.factor) {
        line.factor = term.factor;
        line.divisor = divides ? cast<AffineConstantExpr>(quotient.getRHS()).getValue() : 1;
      } else {
        line.whole = condition.expr;
      }
    }
    lines.push_back(line);
  }
  cases.push_back(std::move(lines));
}

int64_t RowRuns::valueOf(AffineExpr expr, ArrayRef<int64_t> index) const {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return index[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return number.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t x = valueOf(binary.getLHS(), index), y = valueOf(binary.getRHS(), index);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return x + y;
  case AffineExprKind::Mul:
    return x * y;
  case AffineExprKind::FloorDiv:
    return llvm::divideFloorSigned(x, y);
  default:
    return x - llvm::divideFloorSigned(x, y) * y;
  }
}

void RowRuns::addRuns(ArrayRef<Line> lines, ArrayRef<int64_t> row) {
  int64_t first = 0, last = columns;
  SmallVector<const Line *> rest;
  for (const Line &line : lines) {
    if (line.whole) {
      rest.push_back(&line);
      continue;
    }
    int64_t value = line.constant;
    for (auto [position, factor] : line.dims)
      value += factor * row[position];
    for (const AffineTerm &term : line.others)
      value += term.factor * valueOf(term.atom, row);
    for (int64_t sign : {1, -1}) { // == is >= of both signs
      int64_t factor = sign * line.factor, of = sign * value;
      if (factor > 0)
        first = std::max(first, -llvm::divideFloorSigned(of, factor) * line.divisor);
      else if (factor < 0)
        last = std::min(last, (llvm::divideFloorSigned(of, -factor) + 1) * line.divisor);
      else if (of < 0)
        last = 0;
      if (!line.isEq)
        break;
    }
  }
  if (first >= last)
    return;
  if (rest.empty()) {
    runs.emplace_back(first, last);
    return;
  }
  index.assign(row.begin(), row.end());
  index.push_back(first);
  for (int64_t &column = index.back(); column < last; ++column) {
    bool keeps = llvm::all_of(rest, [&](const Line *line) {
      int64_t value = valueOf(line->whole, index);
      return line->isEq ? value == 0 : value >= 0;
    });
    if (keeps && !runs.empty() && runs.back().second == column)
      ++runs.back().second;
    else if (keeps)
      runs.emplace_back(column, column + 1);
  }
}

ArrayRef<RowRuns::Run> RowRuns::of(ArrayRef<int64_t> row) {
  runs.clear();
  for (const auto &lines : cases)
    addRuns(lines, row);
  if (runs.size() > 1) {
    llvm::sort(runs);
    size_t count = 1;
    for (size_t i = 1; i < runs.size(); ++i) {
      Run &before = runs[count - 1];
      if (runs[i].first <= before.second)
        before.second = std::max(before.second, runs[i].second);
      else
        runs[count++] = runs[i];
    }
    runs.truncate(count);
  }
  if (tiles)
    cutByTiles(tiles.of(row.back() / tiles.rows));
  return runs;
}

/// Leaves what lies in tiles that are listed.
void RowRuns::cutByTiles(ArrayRef<int64_t> listed) {
  SmallVector<Run> whole;
  std::swap(whole, runs);
  for (auto [first, last] : whole)
    for (const int64_t *at = llvm::lower_bound(listed, first / tiles.columns);
         at != listed.end() && *at * tiles.columns < last; ++at) {
      Run part{std::max(first, *at * tiles.columns), std::min(last, (*at + 1) * tiles.columns)};
      if (!runs.empty() && runs.back().second == part.first)
        runs.back().second = part.second;
      else
        runs.push_back(part);
    }
}

int64_t dmir::keptInRow(const Rule &rule, ArrayRef<int64_t> row, int64_t columns, ArrayRef<int64_t> symbols) {
  RowRuns runs(rule, symbols, columns);
  int64_t count = 0;
  for (auto [first, last] : runs.of(row))
    count += last - first;
  return count;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void TileCounts::add(const TileCounts &other) {
  elements += other.elements, kept += other.kept;
  empty += other.empty, full += other.full, mixed += other.mixed;
  visited += other.visited;
}

std::pair<int64_t, int64_t> dmir::visitedColumns(int64_t first, int64_t last, int64_t columns, TileSize tile) {
  int64_t lastPass = std::max<int64_t>(columns - 1, 0) / tile.pass * tile.pass;
  int64_t from = std::min(std::max<int64_t>(first, 0) / tile.pass * tile.pass, lastPass);
  int64_t to = (std::max<int64_t>(last, 0) + tile.columns - 1) / tile.columns * tile.columns;
  return {from, std::min(std::max(to, from + tile.columns), columns)};
}

namespace {

/// Counts the tiles of one block of rows.
class TileRow {
public:
  TileRow(int64_t columns, int64_t width)
      : columns(columns), width(width), partial((columns + width - 1) / width), whole(partial.size() + 1) {}

  void clear() {
    std::fill(partial.begin(), partial.end(), 0);
    std::fill(whole.begin(), whole.end(), 0);
  }
  void add(int64_t first, int64_t last) {
    int64_t from = first / width, to = (last - 1) / width;
    if (from == to) {
      partial[from] += last - first;
      return;
    }
    partial[from] += (from + 1) * width - first;
    partial[to] += last - to * width;
    ++whole[from + 1], --whole[to];
  }
  /// For each tile: its columns, and how many elements are kept.
  void finish(llvm::function_ref<void(int64_t first, int64_t last, int64_t kept)> use) const {
    int64_t rows = 0;
    for (size_t tile = 0; tile < partial.size(); ++tile) {
      rows += whole[tile];
      int64_t first = static_cast<int64_t>(tile) * width;
      use(first, std::min(first + width, columns), partial[tile] + rows * width);
    }
  }

private:
  int64_t columns, width;
  std::vector<int64_t> partial, whole; ///< of runs' ends; differences of rows that keep a whole tile
};

} // namespace

TileCounts dmir::countTiles(const Rule &rule, ArrayRef<int64_t> outer, int64_t rows, int64_t columns,
                            ArrayRef<int64_t> symbols, TileSize tile, size_t mostPresent) {
  TileCounts counts;
  counts.elements = rows * columns;
  if (!counts.elements)
    return counts;
  RowRuns runs(rule, symbols, columns);
  SmallVector<int64_t> row(outer);
  row.push_back(0);
  SmallVector<std::pair<int64_t, int64_t>> bounds;
  for (int64_t at : outer)
    bounds.emplace_back(at, at);
  bounds.emplace_back(0, 0);
  TileRow tiles(columns, tile.columns);
  // Tiles that begin anywhere are each asked about where what is kept is no range.
  const bool asks = tile.pass == tile.columns && (rule.tiles || rule.cases.size() > 1);
  for (int64_t first = 0; first < rows; first += tile.rows) {
    int64_t last = std::min(first + tile.rows, rows);
    tiles.clear();
    for (row.back() = first; row.back() < last; ++row.back())
      for (auto [from, to] : runs.of(row))
        tiles.add(from, to);
    tiles.finish([&](int64_t from, int64_t to, int64_t kept) {
      counts.kept += kept;
      counts.visited += asks && kept ? (last - first) * (to - from) : 0;
      ++(kept == 0 ? counts.empty : kept == (last - first) * (to - from) ? counts.full : counts.mixed);
      if (kept && counts.present.size() < mostPresent)
        counts.present.push_back({from, first, to, last});
      else if (kept)
        counts.allPresent = false;
    });
    if (asks)
      continue;
    bounds.back() = {first, last - 1};
    auto range = Columns<int64_t>(plainIntegers(), bounds, pointsOf(symbols), columns).of(rule);
    auto [from, to] = visitedColumns(range.first, range.last, columns, tile);
    counts.visited += (last - first) * (to - from);
  }
  return counts;
}

std::optional<TileCounts> dmir::countAllTiles(const Rule &rule, ArrayRef<int64_t> extents, ArrayRef<int64_t> symbols,
                                              TileSize tile, size_t mostPresent) {
  SmallVector<int64_t> outer(extents.drop_back(2).size(), 0);
  int64_t rows = extents[extents.size() - 2], columns = extents.back(), items = 1;
  for (int64_t extent : extents.drop_back(2))
    items *= extent;
  bool same = llvm::all_of(rule.cases, [&](IntegerSet set) {
    return llvm::all_of(set.getConstraints(), [&](AffineExpr expr) {
      return llvm::none_of(llvm::seq<unsigned>(outer.size()),
                           [&](unsigned axis) { return expr.isFunctionOfDim(axis); });
    });
  });
  int64_t matrices = same ? std::min<int64_t>(items, 1) : items;
  constexpr double mostLooks = 1 << 22, mostRows = 1 << 24;
  double looks = static_cast<double>(matrices) * static_cast<double>(rows);
  double tiles =
      looks / static_cast<double>(tile.rows) * (static_cast<double>(columns) / static_cast<double>(tile.columns));
  bool byColumn = RowRuns(rule, symbols, columns).byColumn();
  if (looks > mostRows || tiles > 8 * mostRows || (byColumn && looks * static_cast<double>(columns) > mostLooks))
    return std::nullopt;
  TileCounts total;
  for (int64_t item = 0; item < matrices; ++item) {
    int64_t rest = item;
    for (size_t axis = outer.size(); axis-- > 0; rest /= extents[axis])
      outer[axis] = rest % extents[axis];
    TileCounts one = countTiles(rule, outer, rows, columns, symbols, tile, mostPresent);
    if (item == 0 && (same || matrices == 1))
      total.present = one.present;
    total.allPresent = one.allPresent && (same || matrices == 1);
    total.add(one);
  }
  if (same)
    for (int64_t *count : {&total.elements, &total.kept, &total.empty, &total.full, &total.mixed, &total.visited})
      *count *= items;
  return total;
}
