//===- LowerTiles.cpp - products of tile arrays to the cores of a slice ---===//
//
// Each tile along k is a core's. More tiles than num_imc of the plan are chunks in increasing k, each added to what the
// output buffer holds: the order is part of the result's bits. What the plan says is said by the products then.
//
//===----------------------------------------------------------------------===//
#include "Passes.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "schemas/corsair/Machine.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace dmxc {
#define GEN_PASS_DEF_LOWERTILES
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// Tile `index` along dimension `axis` of what a load of an array would bring.
Value loadTile(OpBuilder &builder, affine_ext::LoadOp load, int64_t axis, int64_t index) {
  AffineMap map = load.getMap();
  SmallVector<AffineExpr> results(map.getResults());
  results[axis] = results[axis] + index;
  map = AffineMap::get(map.getNumDims(), map.getNumSymbols(), results, builder.getContext());
  return affine::AffineLoadOp::create(builder, load.getLoc(), load.getMemref(), map, load.getMapOperands());
}

/// The load that brings an operand, and the format that is made of it; null if none does.
std::pair<affine_ext::LoadOp, Type> loadOf(Value operand) {
  if (auto cast = operand.getDefiningOp<affine_ext::CastOp>())
    return {cast.getInput().getDefiningOp<affine_ext::LoadOp>(), cast.getType().getElementType()};
  return {operand.getDefiningOp<affine_ext::LoadOp>(), Type()};
}

/// A tile in a format; as it is without one.
Value tileIn(OpBuilder &builder, Type format, Value tile) {
  return format ? lldmir::SimdOp::create(builder, tile.getLoc(), format, "cast", tile, ValueRange(), DictionaryAttr())
                      .getResult(0)
                : tile;
}

/// True if nothing writes to memory between a load and the product it is for: the loads of single tiles stand there.
bool canLoadAt(Operation *op, affine_ext::LoadOp load) {
  if (load->getBlock() != op->getBlock())
    return false;
  for (Operation *at = load->getNextNode(); at != op; at = at->getNextNode())
    if (!isMemoryEffectFree(at) && !hasSingleEffect<MemoryEffects::Read>(at))
      return false;
  return true;
}

struct LowerTiles : dmxc::impl::LowerTilesBase<LowerTiles> {
  using LowerTilesBase::LowerTilesBase;

  void runOnOperation() override {
    SmallVector<affine_ext::MatMulOp> products;
    getOperation().walk([&](affine_ext::MatMulOp op) { products.push_back(op); });
    for (affine_ext::MatMulOp op : products)
      if (failed(lower(op)))
        return signalPassFailure();
    getOperation().walk([&](affine_ext::CastOp op) {
      OpBuilder builder(op);
      auto simd = lldmir::SimdOp::create(builder, op.getLoc(), op.getType(), "cast", op.getInput(), ValueRange(),
                                         DictionaryAttr());
      op.replaceAllUsesWith(simd.getResult(0));
      op.erase();
    });
  }

  LogicalResult lower(affine_ext::MatMulOp op) {
    auto [a, format] = loadOf(op.getLhs());
    auto [w, weightFormat] = loadOf(op.getRhs());
    auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
    if (!a || !w)
      return op.emitError("multiplies arrays of tiles that no affine_ext.load brings");
    if (!canLoadAt(op, a) || !canLoadAt(op, w))
      return op.emitError("does not stand right after the loads of its tiles");
    // The arrays' dimension along k: 1xK after any leading dimensions, Kx1.
    int64_t tiles = a.getType().getShape().back(), axisA = a.getType().getRank() - 1, axisW = w.getType().getRank() - 2;
    const dmx::corsair::Machine &machine = lldmir::machineOf(&getContext());
    const lldmir::SpreadAttr spread = plan ? plan.getSpread() : lldmir::SpreadAttr();
    if (std::optional<std::string> why =
            plan ? lldmir::unfit(machine, plan.getNumImc(), plan.getPprMode(), spread) : std::nullopt)
      return op.emitError() << "has a '" << lldmir::kPlanAttr << "' that cannot be: " << *why;
    SmallVector<int64_t> blocks(tiles);
    std::iota(blocks.begin(), blocks.end(), 0);
    if (auto given = op->getAttrOfType<DenseI64ArrayAttr>(lldmir::kBlocksAttr)) {
      blocks.assign(given.asArrayRef().begin(), given.asArrayRef().end());
      if (blocks.empty() || !llvm::all_of(blocks, [&](int64_t block) { return block >= 0 && block < tiles; }))
        return op.emitError() << "has '" << lldmir::kBlocksAttr << "' " << given << ", which are no blocks of its "
                              << tiles << " along K";
    }
    const auto all = static_cast<int64_t>(blocks.size());
    const int64_t limit = plan ? plan.getNumImc() : machine.cores;
    OpBuilder builder(op);
    Value sum;
    for (int64_t first = 0; first < all; first += limit) {
      const int64_t count = std::min(limit, all - first);
      SmallVector<Value> activations, weights;
      for (int64_t block : ArrayRef(blocks).slice(first, count))
        activations.push_back(tileIn(builder, format, loadTile(builder, a, axisA, block)));
      for (int64_t block : ArrayRef(blocks).slice(first, count))
        weights.push_back(tileIn(builder, weightFormat, loadTile(builder, w, axisW, block)));
      const int64_t levels = plan ? plan.getPprMode() : llvm::Log2_64_Ceil(count);
      sum = lldmir::MatMulOp::create(builder, op.getLoc(), op.getType(), activations, weights, count, levels, spread,
                                     sum, op.getRowsAttr());
    }
    affine_ext::CastOp casts[] = {op.getLhs().getDefiningOp<affine_ext::CastOp>(),
                                  op.getRhs().getDefiningOp<affine_ext::CastOp>()};
    op.replaceAllUsesWith(sum);
    op.erase();
    for (affine_ext::CastOp cast : casts)
      if (cast && cast->use_empty())
        cast.erase();
    for (affine_ext::LoadOp load : {a, w})
      if (load->use_empty())
        load.erase();
    return success();
  }
};

} // namespace
