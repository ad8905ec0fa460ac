//===- ProductOrder.cpp - the tiles of a product in their order -----------===//

#include "Operands.h"

using namespace mlir;
using namespace dmxc::corsair;

namespace dmxc::corsair {

namespace {

/// Emits the boxes of an order, and its loops.
class OrderEmitter {
public:
  OrderEmitter(Program &program, const ArrayUnits &units, const Spread &plan, const TileOrder &order,
               const MatmulOperands &operands)
      : program(program), units(units), plan(plan), order(order), operands(operands),
        stays(plan.kept.empty() && order.isStationary(plan.kChunks)) {
    for (const TileTerms &terms : order.terms)
      segments.push_back(terms.segments(plan.segment, blocksOf(terms)));
  }

  void run() { emit(order.nodes); }

private:
  void emit(const std::vector<TileOrder::Node> &nodes) {
    for (const TileOrder::Node &node : nodes) {
      if (!node.trips || node.bands) {
        boxes(node);
        continue;
      }
      program.loop(node.trips, [&](int depth) {
        loops.push_back({depth, node.step});
        emit(node.body);
        loops.pop_back();
      });
    }
  }

  /// How many tiles the weights have along K.
  int64_t blocksOf(const TileTerms &terms) const {
    int64_t sum = 0;
    for (const Addition &addition : terms.additions)
      sum += addition.count();
    return plan.kept.empty() ? plan.kChunks : sum;
  }

  void boxes(const TileOrder::Node &node) {
    std::vector<PlacedBox> all;
    if (!node.bands)
      all.push_back(placed(node, node.box.rows));
    else
      for (const TileOrder::Node &each : node.body)
        all.push_back(placed(each, node.trips));
    emitBoxes(program, units, all, stays);
  }

  PlacedBox placed(const TileOrder::Node &node, int64_t rows) const {
    Spread part = plan;
    part.kChunks = blocksOf(order.terms[node.box.terms]);
    part.n = std::min(node.box.columns * 64, plan.n - node.at.column * 64);
    if (!order.isWhole()) // else they may be those of a batch
      part.m = std::min(rows * 64, plan.m - node.at.row * 64);
    MatmulOperands at = operands;
    if (!order.terms[node.box.terms].biased)
      at.bias = {};
    if (const int number = order.terms[node.box.terms].epilogue; number >= 0)
      at.epilogue = &operands.epilogues[number];
    move(at, node.at, [](Address &place, int64_t bytes) { place = place.plus(bytes); });
    for (const auto &[depth, step] : loops)
      move(at, step, [depth = depth](Address &place, int64_t bytes) {
        if (bytes)
          place = place.plusLoop(depth, bytes);
      });
    return {node.box, part, &segments[node.box.terms], at};
  }

  void move(MatmulOperands &at, const TilePlace &by, llvm::function_ref<void(Address &, int64_t)> plus) const {
    plus(at.a, by.activations * 64 * at.aRow);
    plus(at.out, by.row * 64 * at.outRow + by.column * 64 * at.outBytes);
    if (at.bias.buffer >= 0)
      plus(at.bias, by.bias * 64 * 4);
    for (Beside &matrix : at.beside)
      plus(matrix.at, by.row * 64 * matrix.row + by.column * 64 * matrix.column);
    plus(at.st, weightsAt(by.weights));
  }

  /// Where the weights of a column of tiles begin, without the groups before it where slices share the columns.
  int64_t weightsAt(int64_t column) const {
    const int64_t round = column / plan.tilesARound(), group = plan.columnSlices() == 1 ? column % plan.groups : 0;
    if (plan.kept.empty())
      return (round * plan.groups + group) * plan.bytesPerGroup();
    int64_t before = 0; // a group's tiles in all rounds before
    for (const auto &blocks : ArrayRef(plan.kept).take_front(round))
      before += static_cast<int64_t>(blocks.size());
    const int64_t own = group ? static_cast<int64_t>(plan.kept[round].size()) : 0;
    return (before * plan.groups + group * own) * Spread::kTileBytes;
  }

  Program &program;
  const ArrayUnits units;
  const Spread &plan;
  const TileOrder &order;
  const MatmulOperands &operands;
  const bool stays;
  std::vector<Segments> segments;
  SmallVector<std::pair<int, TilePlace>> loops; ///< that are open
};

} // namespace

void emitTiles(Program &program, const ArrayUnits &units, const Spread &plan, const TileOrder &order,
               const MatmulOperands &operands) {
  OrderEmitter(program, units, plan, order, operands).run();
}

void emitProduct(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &operands) {
  emitTiles(program, units, plan, TileOrder::whole(plan, operands.bias.buffer >= 0), operands);
}

} // namespace dmxc::corsair
