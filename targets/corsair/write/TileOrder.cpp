//===- TileOrder.cpp - in which order the tiles of a product come --------------===//

#include "TileOrder.h"

#include <numeric>

using namespace mlir;
using namespace dmxc::corsair;

/// How many nodes of a list may repeat together: one period of the columns that slices share, at the most.
static constexpr size_t kLongestPeriod = 64;

TilePlace TilePlace::plus(const TilePlace &step, int64_t times) const {
  return {row + step.row * times, column + step.column * times, activations + step.activations * times,
          weights + step.weights * times, bias + step.bias * times};
}

//===----------------------------------------------------------------------===//
// Along K
//===----------------------------------------------------------------------===//

SmallVector<BlockRun, 1> dmxc::corsair::runsOf(ArrayRef<Addition> segment) {
  SmallVector<BlockRun, 1> runs;
  int64_t slot = 0;
  for (const Addition &addition : segment)
    for (int64_t block : addition.activations) {
      if (!runs.empty() && runs.back().block + runs.back().count == block)
        ++runs.back().count;
      else
        runs.push_back({block, 1, slot});
      ++slot;
    }
  return runs;
}

TileTerms TileTerms::of(const Spread &plan, bool biased) {
  TileTerms terms;
  terms.biased = biased;
  for (int64_t first = 0; first < plan.kChunks; first += plan.imc) {
    Addition &next = terms.additions.emplace_back(Addition{first, plan.imc, plan.ppr, {}});
    next.activations.resize(std::min<int64_t>(plan.imc, plan.kChunks - first));
    std::iota(next.activations.begin(), next.activations.end(), first);
  }
  return terms;
}

/// Whether an instruction that does `done` goes on to `next` by itself. What is behind the last block it leaves out.
static bool goesOn(const Addition &done, const Addition &next, int64_t kChunks) {
  const bool cut = next.count() < done.imc;
  return done.ppr == next.ppr && done.first + done.count() == next.first && done.count() % done.imc == 0 &&
         (cut ? next.first + next.count() == kChunks : next.imc == done.imc);
}

Segments TileTerms::segments(int64_t blocks, int64_t kChunks) const {
  int64_t all = 0, held = 0;
  for (const Addition &addition : additions)
    all += addition.count();
  Segments made;
  for (const Addition &addition : additions) {
    if (made.empty() || (all > blocks && held + addition.count() > blocks)) {
      made.emplace_back();
      held = 0;
    }
    held += addition.count();
    std::vector<Addition> &segment = made.back();
    if (!segment.empty() && goesOn(segment.back(), addition, kChunks))
      llvm::append_range(segment.back().activations, addition.activations);
    else
      segment.push_back(addition);
    // The last blocks of K are cut off by themselves.
    if (&addition != additions.data() && addition.first + addition.count() == kChunks &&
        (&addition)[-1].ppr == addition.ppr && segment.back().count() == addition.count())
      segment.back().imc = std::max(addition.imc, (&addition)[-1].imc);
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Tiles to boxes
//===----------------------------------------------------------------------===//

namespace {

constexpr TilePlace kRight{0, 1, 0, 1, 0}, kRightBiased{0, 1, 0, 1, 1}, kDown{1, 0, 1, 0, 0};

/// Cuts a list of tiles into boxes.
class BoxFinder {
public:
  BoxFinder(const std::vector<TileTerms> &terms, ArrayRef<TileOrder::Tile> tiles, const OrderRules &rules)
      : terms(terms), tiles(tiles), rules(rules) {}

  std::vector<TileOrder::Node> run() {
    std::vector<TileOrder::Node> nodes;
    for (size_t first = 0; first < tiles.size();) {
      const TileOrder::Tile &tile = tiles[first];
      const TilePlace right = terms[tile.terms].biased ? kRightBiased : kRight;
      auto [wide, high] = extent(first, right, kDown);
      auto [tall, across] = extent(first, kDown, right);
      TileOrder::Box box{high, wide, false, tile.terms};
      if (tall * across > high * wide)
        box.rows = tall, box.columns = across, box.columnsOutside = true;
      if (box.rows == 1 || box.columns == 1) // whichever is the faster
        box.columnsOutside = staysFor(tile, box.rows);
      box.phase = tile.at.weights % rules.period;
      box.lastRow = (tile.at.row + box.rows) * 64 > rules.rows;
      box.lastColumn = (tile.at.column + box.columns) * 64 > rules.columns;
      nodes.push_back({tile.at, box});
      first += box.rows * box.columns;
    }
    return nodes;
  }

private:
  bool isAt(size_t number, size_t first, const TilePlace &place) const {
    return number < tiles.size() && tiles[number].terms == tiles[first].terms && tiles[number].at == place;
  }
  /// How many tiles follow each other by the inner step, and how many times the same by the outer one.
  std::pair<int64_t, int64_t> extent(size_t first, const TilePlace &inner, const TilePlace &outer) const {
    const TilePlace &at = tiles[first].at;
    int64_t count = 1, times = 1;
    while (isAt(first + count, first, at.plus(inner, count)))
      ++count;
    auto repeats = [&](int64_t time) {
      for (int64_t i = 0; i < count; ++i)
        if (!isAt(first + time * count + i, first, at.plus(outer, time).plus(inner, i)))
          return false;
      return true;
    };
    while (repeats(times))
      ++times;
    return {count, times};
  }
  bool staysFor(const TileOrder::Tile &tile, int64_t rows) const {
    const std::vector<Addition> &additions = terms[tile.terms].additions;
    const int64_t elements = std::min(rows * 64, rules.rows - tile.at.row * 64);
    return additions.size() == 1 &&
           Spread::passesRows(additions.front().count(), rules.kChunks, elements, rules.rowSlices);
  }

  const std::vector<TileTerms> &terms;
  ArrayRef<TileOrder::Tile> tiles;
  const OrderRules &rules;
};

/// Whether the second of two boxes is of the columns behind the first one's, in the same row of tiles.
bool isBeside(const TileOrder::Node &node, const TileOrder::Node &next, const std::vector<TileTerms> &terms) {
  auto isBand = [](const TileOrder::Node &each) { return each.box.rows == 1 && !each.box.columnsOutside; };
  const bool biased = terms[node.box.terms].biased;
  return isBand(node) && isBand(next) && biased == terms[next.box.terms].biased &&
         next.at == node.at.plus(biased ? kRightBiased : kRight, node.box.columns);
}

/// Boxes beside each other that come again for one row of tiles after the other become bands of rows.
void joinBands(std::vector<TileOrder::Node> &nodes, const std::vector<TileTerms> &terms) {
  std::vector<TileOrder::Node> made;
  for (size_t first = 0; first < nodes.size();) {
    size_t count = 1, rows = 1;
    while (first + count < nodes.size() && isBeside(nodes[first + count - 1], nodes[first + count], terms))
      ++count;
    auto repeats = [&](size_t row) {
      for (size_t i = 0; i < count; ++i) {
        if (first + row * count + i >= nodes.size())
          return false;
        TileOrder::Node next = nodes[first + row * count + i];
        next.box.lastRow = nodes[first + i].box.lastRow; // bands end with a ragged one
        if (next.at != nodes[first + i].at.plus(kDown, static_cast<int64_t>(row)) ||
            !(next.box == nodes[first + i].box))
          return false;
      }
      return true;
    };
    while (count > 1 && repeats(rows))
      ++rows;
    if (count == 1) {
      made.push_back(nodes[first++]);
      continue;
    }
    TileOrder::Node bands{nodes[first].at, {}, static_cast<int64_t>(rows), kDown, {}, true};
    bands.body.assign(nodes.begin() + first, nodes.begin() + first + count);
    bands.box.lastRow = nodes[first + rows * count - 1].box.lastRow;
    made.push_back(std::move(bands));
    first += rows * count;
  }
  nodes = std::move(made);
}

bool isMoved(const TileOrder::Node &node, const TileOrder::Node &from, const TilePlace &by) {
  return node.at == from.at.plus(by) && node.box == from.box && node.trips == from.trips && node.step == from.step &&
         node.bands == from.bands && node.body.size() == from.body.size() &&
         llvm::all_of(llvm::zip(node.body, from.body),
                      [&](auto pair) { return isMoved(std::get<0>(pair), std::get<1>(pair), by); });
}

/// How often the `period` nodes from one on come, each time as far from the last.
int64_t repeats(const std::vector<TileOrder::Node> &nodes, size_t first, size_t period) {
  int64_t times = 1;
  if (first + 2 * period > nodes.size())
    return times;
  const TilePlace step = nodes[first + period].at.minus(nodes[first].at);
  auto again = [&] {
    const size_t from = first + times * period;
    for (size_t i = 0; i < period; ++i)
      if (from + i >= nodes.size() || !isMoved(nodes[from + i], nodes[first + i], TilePlace().plus(step, times)))
        return false;
    return true;
  };
  while (again())
    ++times;
  return times;
}

/// Nodes that repeat to loops. True if there were any.
bool fold(std::vector<TileOrder::Node> &nodes, size_t period) {
  std::vector<TileOrder::Node> made;
  bool found = false;
  for (size_t first = 0; first < nodes.size();) {
    const int64_t times = repeats(nodes, first, period);
    if (times == 1) {
      made.push_back(nodes[first++]);
      continue;
    }
    found = true;
    TileOrder::Node loop;
    loop.at = nodes[first].at;
    loop.trips = times;
    loop.step = nodes[first + period].at.minus(loop.at);
    loop.body.assign(nodes.begin() + first, nodes.begin() + first + period);
    made.push_back(std::move(loop));
    first += times * period;
  }
  nodes = std::move(made);
  return found;
}

size_t boxesIn(const std::vector<TileOrder::Node> &nodes) {
  size_t boxes = 0;
  for (const TileOrder::Node &node : nodes)
    boxes += node.trips ? boxesIn(node.body) : 1;
  return boxes;
}

bool allBoxes(const std::vector<TileOrder::Node> &nodes, llvm::function_ref<bool(const TileOrder::Box &)> holds) {
  return llvm::all_of(
      nodes, [&](const TileOrder::Node &node) { return node.trips ? allBoxes(node.body, holds) : holds(node.box); });
}

} // namespace

TileOrder::TileOrder(std::vector<TileTerms> given, ArrayRef<Tile> tiles, const OrderRules &rules, int deepest)
    : terms(std::move(given)), nodes(BoxFinder(terms, tiles, rules).run()) {
  const int64_t rows = (rules.rows + 63) / 64, columns = (rules.columns + 63) / 64;
  joinBands(nodes, terms);
  auto isAll = [&](const Node &node) {
    const Box &last = node.bands ? node.body.back().box : node.box;
    const int64_t end = node.bands ? node.body.back().at.column + last.columns : last.columns;
    return node.at == TilePlace() && (node.bands ? node.trips : last.rows) == rows && end == columns;
  };
  all = nodes.size() == 1 && isAll(nodes.front());
  for (int depth = 0; depth < deepest; ++depth) {
    bool found = false;
    for (size_t period = 1; period <= std::min(kLongestPeriod, nodes.size() / 2) && !found; ++period)
      found = fold(nodes, period);
    if (!found)
      return;
  }
}

TileOrder TileOrder::whole(const Spread &plan, bool biased) {
  TileOrder order;
  order.terms = {TileTerms::of(plan, biased)};
  Node &node = order.nodes.emplace_back();
  node.box.rows = (plan.m + 63) / 64, node.box.columns = plan.tilesN();
  node.box.columnsOutside = plan.isStationary();
  order.all = true;
  return order;
}

bool TileOrder::isStationary(int64_t kChunks) const {
  return allBoxes(nodes, [&](const Box &box) {
    const std::vector<Addition> &additions = terms[box.terms].additions;
    return box.columnsOutside && additions.size() == 1 && additions.front().count() == kChunks;
  });
}

size_t TileOrder::boxes() const { return boxesIn(nodes); }
