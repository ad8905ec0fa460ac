//===- ProductNest.cpp - the loops of one product, read -------------------===//
#include "ProductNest.h"

using namespace mlir;
using namespace dmxc;

bool ProductNest::read(affine::AffineForOp loop) {
  outer = loop;
  for (Operation &op : *loop.getBody())
    if (auto found = dyn_cast<affine::AffineForOp>(op))
      inner = found;
    else if (!isa<affine::AffineYieldOp>(op))
      return refuse("'" + op.getName().getStringRef().str() + "' stands between its loops");
  if (!inner)
    return refuse("its loops are not two");
  for (Operation &op : *inner.getBody())
    if (auto found = dyn_cast<affine::AffineStoreOp>(op)) {
      if (store)
        return refuse("it stores two tiles");
      store = found;
    } else if (!isa<affine::AffineLoadOp, lldmir::MatMulOp, lldmir::SimdOp, affine::AffineYieldOp>(op)) {
      return refuse("'" + op.getName().getStringRef().str() + "' is not known in it");
    }
  return store ? readStore() && readChain() : refuse("it stores no tile");
}

bool ProductNest::refuse(const std::string &why) {
  problem = why;
  return false;
}

int ProductNest::counterOf(AffineMap map, ValueRange operands, unsigned position) {
  AffineExpr expr = map.getResult(position);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() == 0 ? 0 : -1;
  auto dim = dyn_cast<AffineDimExpr>(expr);
  Value counter = dim ? operands[dim.getPosition()] : Value();
  return counter == outer.getInductionVar() ? 1 : counter && counter == inner.getInductionVar() ? 2 : -1;
}

bool ProductNest::runsOver(int counter, int64_t extent) {
  if (counter == 0)
    return extent == 1;
  affine::AffineForOp loop = counter == 1 ? outer : inner;
  return loop.hasConstantBounds() && loop.getConstantLowerBound() == 0 && loop.getStepAsInt() == 1 &&
         loop.getConstantUpperBound() == extent;
}

bool ProductNest::readStore() {
  MemRefType grid = store.getMemRefType();
  if (grid.getRank() != 2)
    return refuse("its result is no grid");
  row = counterOf(store.getAffineMap(), store.getMapOperands(), 0);
  column = counterOf(store.getAffineMap(), store.getMapOperands(), 1);
  if (row < 0 || column < 0 || row == column || !runsOver(row, grid.getDimSize(0)) ||
      !runsOver(column, grid.getDimSize(1)))
    return refuse("its loops do not run over the tiles of its result");
  columnsOutside = column == 1;
  return true;
}

bool ProductNest::readChain() {
  Value tile = store.getValueToStore();
  auto unit = tile.getDefiningOp<lldmir::SimdOp>();
  if (unit && unit.getFunction() == "cast" && unit.getInputs().size() == 1) {
    tile = unit.getInputs()[0];
    unit = tile.getDefiningOp<lldmir::SimdOp>();
  }
  if (unit) {
    if (unit.getFunction() != "add" || unit.getInputs().size() != 2)
      return refuse("\"" + unit.getFunction().str() + "\" of a tile has no task");
    tile = unit.getInputs()[0];
    bias = unit.getInputs()[1].getDefiningOp<affine::AffineLoadOp>();
    if (!bias || bias.getMemRefType().getRank() != 1 ||
        counterOf(bias.getAffineMap(), bias.getMapOperands(), 0) != column)
      return refuse("what is added to a tile is no bias of its columns");
  }
  for (auto product = tile.getDefiningOp<lldmir::MatMulOp>(); product;
       product = product.getInit() ? product.getInit().getDefiningOp<lldmir::MatMulOp>() : lldmir::MatMulOp())
    chain.insert(chain.begin(), product);
  if (chain.empty())
    return refuse("what it stores is no product");
  int64_t k = 0;
  for (lldmir::MatMulOp product : chain)
    for (auto [a, w] : llvm::zip(product.getActivations(), product.getWeights())) {
      if (!reads(a, row, k, true) || !reads(w, column, k, false))
        return refuse("tile " + std::to_string(k) + " along K is not loaded in order");
      ++k;
    }
  return k == kTiles ? true : refuse("it multiplies other tiles along K than its operands have");
}

bool ProductNest::reads(Value tile, int counter, int64_t k, bool isLeft) {
  if (auto cast = tile.getDefiningOp<lldmir::SimdOp>();
      cast && cast.getFunction() == "cast" && cast.getInputs().size() == 1)
    tile = cast.getInputs()[0];
  auto load = tile.getDefiningOp<affine::AffineLoadOp>();
  if (!load || load.getMemRefType().getRank() != 2)
    return false;
  Value &operand = isLeft ? left : right;
  operand = operand ? operand : load.getMemRef();
  kTiles = load.getMemRefType().getDimSize(isLeft ? 1 : 0);
  auto along = dyn_cast<AffineConstantExpr>(load.getAffineMap().getResult(isLeft ? 1 : 0));
  const int across = counterOf(load.getAffineMap(), load.getMapOperands(), isLeft ? 0 : 1);
  const int64_t extent = load.getMemRefType().getDimSize(isLeft ? 0 : 1);
  return load.getMemRef() == operand && along && along.getValue() == k && (across == counter || extent == 1);
}
