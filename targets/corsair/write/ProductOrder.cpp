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
        stays(order.isStationary(plan.kChunks)) {
    for (const TileTerms &terms : order.terms)
      segments.push_back(terms.segments(plan.segment, plan.kChunks));
  }

  void run() { emit(order.nodes); }

private:
  void emit(const std::vector<TileOrder::Node> &nodes) {
    for (const TileOrder::Node &node : nodes) {
      if (!node.trips) {
        box(node);
        continue;
      }
      program.loop(node.trips, [&](int depth) {
        loops.push_back({depth, node.step});
        emit(node.body);
        loops.pop_back();
      });
    }
  }

  void box(const TileOrder::Node &node) {
    Spread part = plan;
    if (!order.isWhole()) {
      part.m = std::min(node.box.rows * 64, plan.m - node.at.row * 64);
      part.n = std::min(node.box.columns * 64, plan.n - node.at.column * 64);
    }
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
    emitBox(program, units, part, segments[node.box.terms], at, node.box, stays);
  }

  void move(MatmulOperands &at, const TilePlace &by, llvm::function_ref<void(Address &, int64_t)> plus) const {
    plus(at.a, by.activations * 64 * at.aRow);
    plus(at.out, by.row * 64 * at.outRow + by.column * 64 * at.outBytes);
    if (at.bias.buffer >= 0)
      plus(at.bias, by.bias * 64 * 4);
    for (Beside &matrix : at.beside)
      plus(matrix.at, by.row * 64 * matrix.row + by.column * 64 * matrix.column);
    const int64_t tile = plan.kChunks * Spread::kTileBytes;
    plus(at.st, plan.columnSlices() == 1 ? by.weights * tile : by.weights / plan.tilesARound() * plan.groups * tile);
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
