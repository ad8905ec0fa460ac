//===- StageProducts.cpp - loops over tiles to products -------------------===//
#include "../KernelFunctions.h"
#include "../Views.h"
#include "StageWriter.h"
#include "TileForms.h"
#include "TileLoops.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/IR/IntegerSet.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// LOOPs that a queue may have in each other.
static constexpr int kLoopsDeep = 8;
/// A product's program has a few instructions for each box of tiles.
static constexpr size_t kMostBoxes = 256;
/// More blocks along K than half of IB ever holds.
static constexpr int64_t kMostSegment = 1 << 20;

/// The matrix that a grid's tiles are of.
static Value matrixOf(Value grid) {
  auto tiles = grid.getDefiningOp<affine_ext::TilesOp>();
  return tiles ? tiles.getOperand() : grid;
}

Status StageWriter::product(affine::AffineForOp loop) {
  if (loop->hasAttr(kBatchAttr))
    return matrices(loop);
  if (loop->hasAttr(lldmir::kBandsAttr))
    return bands(loop);
  TileLoops loops;
  loops.formOf = [&](Value grid) {
    auto tiles = weights.find(outside(grid) ? outside(grid) : grid);
    return tiles == weights.end() ? nullptr : &tiles->second.form;
  };
  if (!loops.follow(loop))
    return fail(loops.at, loops.problem);
  SmallVector<Value> operands{loops.left, loops.right};
  operands.append(loops.beside);
  for (Value operand : operands) {
    if (matrixOf(operand) == matrixOf(loops.out))
      return fail(loops.store, "fills the matrix that its product reads");
    if (Status s = checkFilled(loop, operand); !s)
      return s;
    if (Status s = operand == loops.left ? Status::ok() : checkArrived(loop, operand); !s)
      return s;
  }
  if (Status s = note(loops); !s)
    return s;
  task(loop);
  Value packed = outside(loops.right) ? outside(loops.right) : loops.right;
  if (auto tiles = weights.find(packed); tiles != weights.end())
    return byWeights(loop, loops, tiles->second);
  return byValues(loop, loops);
}

Status StageWriter::taken(affine::AffineIfOp condition) {
  SmallVector<int64_t> operands;
  for (Value operand : condition.getOperands()) {
    APInt number;
    if (!matchPattern(operand, m_ConstantInt(&number)))
      return fail(condition, "stands around loops, and is not the same in every run");
    operands.push_back(number.getSExtValue());
  }
  if (condition.getNumResults() || condition.hasElse())
    return fail(condition, "is a choice of two values or works");
  if (!holds(condition.getIntegerSet(), operands))
    return Status::ok();
  for (Operation &op : condition.getThenBlock()->without_terminator())
    if (Status s = lower(&op); !s)
      return s;
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Every tile once
//===----------------------------------------------------------------------===//

Status StageWriter::note(const TileLoops &loops) {
  Filled &matrix = filled[matrixOf(loops.out)];
  const auto grid = cast<MemRefType>(loops.out.getType());
  matrix.store = loops.store, matrix.tiles = grid.getNumElements(), matrix.columns = grid.getDimSize(1);
  for (const TileOrder::Tile &tile : loops.tiles)
    if (!matrix.written.insert(tile.at.row * matrix.columns + tile.at.column).second)
      return fail(loops.store, "stores tile [" + Twine(tile.at.row) + ", " + Twine(tile.at.column) +
                                   "], which other loops store too");
  return Status::ok();
}

Status StageWriter::checkFilled(Operation *user, Value memref) {
  for (Value value = memref; value; value = value.getDefiningOp() ? value.getDefiningOp()->getOperand(0) : Value()) {
    if (auto found = filled.find(value); found != filled.end())
      return checkFilled(user, found->second);
    if (!isBufferView(value.getDefiningOp()) && !value.getDefiningOp<affine_ext::TilesOp>())
      break;
  }
  return Status::ok();
}

Status StageWriter::checkFilled(Operation *user, const Filled &matrix) {
  for (int64_t tile = 0; tile < matrix.tiles; ++tile)
    if (!matrix.written.contains(tile))
      return fail(user, "needs tile [" + Twine(tile / matrix.columns) + ", " + Twine(tile % matrix.columns) +
                            "] of the product at node '" + dmir::nodeName(matrix.store) +
                            "', which no loop before stores");
  return Status::ok();
}

/// The matrix that the last store in a loop is to; null: none, or several are.
static Value filledBy(affine::AffineForOp loop) {
  Value matrix;
  loop.walk([&](affine::AffineStoreOp store) { matrix = matrixOf(store.getMemRef()); });
  return matrix;
}

Status StageWriter::matrices(affine::AffineForOp loop) {
  if (!loop.hasConstantBounds() || loop.getConstantLowerBound() != 0 || loop.getStepAsInt() != 1 ||
      loop.getConstantUpperBound() < 1)
    return fail(loop, "runs not from 0 by 1 to a constant over a batch");
  batch.push_back(loop);
  Status status = Status::ok();
  int products = 0;
  Value matrix; // that loops over tiles fill, each a part of it
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (auto inner = dyn_cast<affine::AffineForOp>(op); inner && inner->hasAttr(lldmir::kBandsAttr)) {
      status = ++products == 1 ? bands(inner) : fail(&op, "is a second loop in one over a batch");
    } else if (inner) {
      const Value before = std::exchange(matrix, filledBy(inner));
      status = ++products == 1 || before == matrix ? product(inner)
                                                   : fail(&op, "is a second product in a loop over a batch");
    } else if (isa<memref::SubViewOp, affine_ext::TilesOp>(op)) {
      status = view(&op);
    } else if (!isa<affine::AffineApplyOp>(op)) {
      status = fail(&op, "is not known in a loop over a batch");
    }
    if (!status)
      break;
  }
  batch.pop_back();
  return status;
}

//===----------------------------------------------------------------------===//
// One product
//===----------------------------------------------------------------------===//

Result<lldmir::PlanAttr> StageWriter::spreadOf(const TileLoops &loops, const corsair::TileForm *packed) {
  MLIRContext *context = function.getContext();
  lldmir::SpreadAttr given = lldmir::MatMulOp(loops.products.front()).getSpreadAttr();
  int64_t mode = 0;
  for (lldmir::MatMulOp each : loops.products) {
    mode = std::max(mode, static_cast<int64_t>(each.getPprMode()));
    if (each.getSpreadAttr() != given)
      return fail(each, "is not spread as the others of its matrix").takeError();
  }
  if (!given)
    given = packed ? lldmir::SpreadAttr::get(context, packed->groups, packed->slices, "columns", kMostSegment)
                   : lldmir::SpreadAttr::get(context, 1, 1, "columns", kMostSegment);
  const int64_t slices = given.getShare() == "columns" ? given.getSlices() : 1;
  if (packed && (given.getGroups() != packed->groups || slices != packed->slices))
    return fail(loops.products.front(), "is spread over " + Twine(given.getGroups()) + " groups and " + Twine(slices) +
                                            " slices that share columns; its weights are packed for " +
                                            Twine(packed->groups) + " and " + Twine(packed->slices))
        .takeError();
  return lldmir::PlanAttr::get(context, loops.widest(), mode, given);
}

Result<Spread> StageWriter::fitted(const TileLoops &loops, const Spread &product, lldmir::PlanAttr plan) {
  lldmir::MatMulOp op = loops.products.front();
  Spread made = product.by(plan);
  const int64_t held = made.longestSegment();
  for (const TileTerms &terms : loops.terms)
    for (const Addition &addition : terms.additions)
      if (addition.count() > held && made.kChunks > held)
        return fail(op, "adds up " + Twine(addition.count()) + " blocks at once; half of IB holds " + Twine(held))
            .takeError();
  made.segment = std::min(made.segment, held);
  if (made.kChunks > made.segment) // whole additions
    made.segment = std::max<int64_t>(made.imc, made.segment / made.imc * made.imc);
  if (std::optional<std::string> why = unfit(product, made.plan(function.getContext()), machine))
    return fail(op, "is spread as no slice computes it: " + *why).takeError();
  return made;
}

TileOrder StageWriter::orderOf(const TileLoops &loops, const Spread &product) const {
  OrderRules rules;
  rules.rows = product.m, rules.columns = product.n, rules.kChunks = product.kept.empty() ? product.kChunks : -1;
  rules.period = product.columnSlices() > 1 ? product.tilesARound() : 1;
  rules.rowSlices = product.rowSlices();
  constexpr int own = 2; // loops over rows and over columns in a box
  // Rounds that have other numbers of tiles than others lie at no equal distances.
  const int deepest = product.kept.empty() ? std::max(0, kLoopsDeep - own - static_cast<int>(batch.size())) : 0;
  return {loops.terms, loops.tiles, rules, deepest};
}

Status StageWriter::checkTiles(const TileLoops &loops, const TileOrder &order, const Spread &product) {
  for (const TileOrder::Tile &tile : loops.tiles)
    if ((tile.at.activations > tile.at.row && (tile.at.activations + 1) * 64 > product.m) ||
        (tile.at.weights > tile.at.column && (tile.at.weights + 1) * 64 > product.n))
      return fail(loops.store, "stores tile [" + Twine(tile.at.row) + ", " + Twine(tile.at.column) +
                                   "] of operands that end in the middle of a tile");
  if (order.boxes() > kMostBoxes)
    return fail(loops.store, "stores tiles in an order that takes " + Twine(order.boxes()) +
                                 " products of neighbouring tiles, more than " + Twine(kMostBoxes));
  return Status::ok();
}

Status StageWriter::byWeights(affine::AffineForOp loop, const TileLoops &loops, const Tiles &tiles) {
  Result<DeviceTensor> a = matricesOf(loop, loops.left), out = matricesOf(loop, loops.out);
  if (!a)
    return a.takeError();
  if (!out)
    return out.takeError();
  const bool areTiles = a->kind == hw::ElemKind::Bfp16R;
  if (areTiles ? !batch.empty() : a->kind != hw::ElemKind::F16)
    return fail(loop, "multiplies what are no matrices of f16 or tiles");
  Result<Epilogues> epilogues = epiloguesOf(loop, loops, *out);
  if (!epilogues)
    return epilogues.takeError();
  PlacedProduct placed(*a, nullptr, *out, epilogues->beside);
  placed.operands.epilogues = epilogues->all;
  placed.product.batch = 0; // slices have the same weights
  const Spread &product = placed.product;
  const int64_t rows = a->shape[a->rank() - 2]; // tiles of a part end with a ragged one
  if ((areTiles ? (rows + 63) / 64 != product.tilesM() : rows != product.m) || tiles.form.n != product.n ||
      tiles.form.kChunks != product.kChunks)
    return fail(loop, "does not fit the packed form of its weights");
  Result<lldmir::PlanAttr> given = spreadOf(loops, &tiles.form);
  if (!given)
    return given.takeError();
  placed.product.kept = tiles.form.kept;
  const TileOrder order = orderOf(loops, product.by(*given));
  if (Status s = checkTiles(loops, order, product); !s)
    return s;
  if ((!order.isWhole() || !tiles.form.kept.empty()) && comesInPieces(tiles))
    return fail(loop, "is in an order that weights which ST does not hold cannot follow");
  if (order.isWhole()) // rows of a batch go on
    placed.joinBatch();
  placed.product.batch = 0;
  Result<Spread> spread = fitted(loops, product, *given);
  if (!spread)
    return spread.takeError();
  if (tiles.form.rounds != spread->rounds())
    return fail(loop, "does not fit the packed form of its weights");
  placed.product = *spread;
  if (loops.bias) {
    Result<DeviceTensor> vector = tensorOf(loop, loops.bias);
    if (!vector)
      return vector.takeError();
    placed.operands.bias = vector->address;
  }
  if (Status s = cross(loop, order, comesInPieces(tiles), placed); !s)
    return s;
  multiplyByConstant(std::move(placed), order, tiles);
  return Status::ok();
}

Result<DeviceTensor> StageWriter::matricesOf(Operation *user, Value grid) {
  Result<DeviceTensor> tensor = tensorOf(user, grid);
  if (!tensor)
    return tensor;
  if (tensor->rank() != 2)
    return fail(user, "multiplies what are no matrices").takeError();
  SmallVector<int64_t> steps = trips.lookup(grid);
  steps.resize(batch.size(), 0);
  for (size_t i = batch.size(); i-- > 0;) {
    tensor->shape.insert(tensor->shape.begin(), affine::AffineForOp(batch[i]).getConstantUpperBound());
    tensor->strides.insert(tensor->strides.begin(), steps[i]);
  }
  return tensor;
}

Status StageWriter::byValues(affine::AffineForOp loop, const TileLoops &loops) {
  Result<DeviceTensor> a = matricesOf(loop, loops.left), b = matricesOf(loop, loops.right),
                       out = matricesOf(loop, loops.out);
  for (Result<DeviceTensor> *each : {&a, &b, &out})
    if (!*each)
      return each->takeError();
  const size_t rank = out->rank();
  for (Result<DeviceTensor> *each : {&a, &b, &out})
    if ((*each)->kind != hw::ElemKind::F16)
      return fail(loop, "multiplies what are no matrices of f16");
  if (a->shape[rank - 2] != out->shape[rank - 2] || b->shape[rank - 2] != a->shape.back() ||
      b->shape.back() != out->shape.back() || loops.bias)
    return fail(loop, "multiplies matrices that do not fit each other");
  Result<lldmir::PlanAttr> given = spreadOf(loops, nullptr);
  if (!given)
    return given.takeError();
  Result<Epilogues> epilogues = epiloguesOf(loop, loops, *out);
  if (!epilogues)
    return epilogues.takeError();
  PlacedProduct apart(*a, &*b, *out, epilogues->beside);
  apart.operands.epilogues = epilogues->all;
  const TileOrder order = orderOf(loops, apart.product.by(*given));
  if (Status s = checkTiles(loops, order, apart.product); !s)
    return s;
  PlacedProduct placed = apart;
  if (order.isWhole())
    placed.joinBatch();
  // Slices that were to share the matrices of a batch do so where their rows would go on.
  if (given->getSpread().getShare() == "batch" && given->getSpread().getSlices() > 1 && !placed.product.batch)
    placed = apart;
  Result<Spread> spread = fitted(loops, placed.product, *given);
  if (!spread)
    return spread.takeError();
  placed.product = *spread;
  if (Status s = cross(loop, order, /*inPieces=*/false, placed); !s)
    return s;
  multiplyValues(std::move(placed), order);
  return Status::ok();
}
