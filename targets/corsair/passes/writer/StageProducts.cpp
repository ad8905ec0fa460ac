//===- StageProducts.cpp - loops over tiles to products -------------------===//
#include "../KernelFunctions.h"
#include "../Views.h"
#include "StageWriter.h"
#include "TileLoops.h"

#include "dmxc/Dialect/DMIR/Model.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// LOOPs that a queue may have in each other.
static constexpr int kLoopsDeep = 8;
/// A product's program has a few instructions for each box of tiles.
static constexpr size_t kMostBoxes = 256;

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
  if (!loops.follow(loop))
    return fail(loops.at, loops.problem);
  for (Value operand : {loops.left, loops.right}) {
    if (matrixOf(operand) == matrixOf(loops.out))
      return fail(loops.store, "fills the matrix that its product reads");
    if (Status s = checkFilled(loop, operand); !s)
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

/// Over how many slices and groups of cores a product goes. Constants lie in ST so; of others the ops say it.
static lldmir::PlanAttr spreadOf(const TileLoops &loops, const TileForm *packed, MLIRContext *context) {
  lldmir::MatMulOp product = loops.products.front();
  auto given = product->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  int64_t groups = given ? given.getGroups() : 1, slices = given ? given.getSlices() : 1;
  StringRef share = given ? given.getShare() : "columns";
  if (packed) {
    groups = packed->groups;
    if (packed->slices > 1 || share == "columns")
      slices = packed->slices, share = "columns";
  }
  uint64_t mode = 0;
  for (lldmir::MatMulOp each : loops.products)
    mode = std::max(mode, each.getPprMode());
  const int64_t imc = loops.widest();
  return lldmir::PlanAttr::get(context, imc, static_cast<int64_t>(mode), groups, slices, share, /*segment=*/imc);
}

TileOrder StageWriter::orderOf(const TileLoops &loops, lldmir::PlanAttr spread, const ProductDims &dims) const {
  const MatmulPlan plan = MatmulPlan::read(spread, dims);
  OrderRules rules;
  rules.rows = dims.m, rules.columns = dims.n, rules.kChunks = dims.kChunks;
  rules.period = plan.columnSlices() > 1 ? plan.tilesARound() : 1;
  rules.rowSlices = plan.rowSlices();
  constexpr int own = 2; // loops over rows and over columns in a box
  return {loops.terms, loops.tiles, rules, std::max(0, kLoopsDeep - own - static_cast<int>(batch.size()))};
}

Status StageWriter::checkTiles(const TileLoops &loops, const TileOrder &order, const ProductDims &dims) {
  for (const TileOrder::Tile &tile : loops.tiles)
    if ((tile.at.activations > tile.at.row && (tile.at.activations + 1) * 64 > dims.m) ||
        (tile.at.weights > tile.at.column && (tile.at.weights + 1) * 64 > dims.n))
      return fail(loops.store, "stores tile [" + Twine(tile.at.row) + ", " + Twine(tile.at.column) +
                                   "] of operands that end in the middle of a tile");
  if (order.boxes() > kMostBoxes)
    return fail(loops.store, "stores tiles in an order that takes " + Twine(order.boxes()) +
                                 " products of neighbouring tiles, more than " + Twine(kMostBoxes));
  return Status::ok();
}

Result<MatmulPlan> StageWriter::planOf(affine::AffineForOp loop, const TileLoops &loops, lldmir::PlanAttr spread,
                                       const ProductDims &dims) {
  const int64_t rows = std::min(dims.m, MatmulPlan::read(spread, dims).sliceRows()),
                held = MatmulPlan::longestSegment(rows);
  for (const TileTerms &terms : loops.terms)
    for (const Addition &addition : terms.additions)
      if (addition.count() > held && dims.kChunks > held)
        return fail(loops.products.front(),
                    "adds up " + Twine(addition.count()) + " blocks at once; half of IB holds " + Twine(held))
            .takeError();
  const int64_t imc = spread.getNumImc(), segment = dims.kChunks <= held ? held : std::max(imc, held / imc * imc);
  auto whole = lldmir::PlanAttr::get(loop.getContext(), imc, spread.getPprMode(), spread.getGroups(),
                                     spread.getSlices(), spread.getShare(), segment);
  if (std::optional<std::string> why = unfit(whole, dims, machine))
    return fail(loop, "has the plan of a product that no slice computes: " + *why).takeError();
  return MatmulPlan::read(whole, dims);
}

Status StageWriter::byWeights(affine::AffineForOp loop, const TileLoops &loops, const Tiles &tiles) {
  Result<DeviceTensor> a = matricesOf(loop, loops.left), out = matricesOf(loop, loops.out);
  if (!a)
    return a.takeError();
  if (!out)
    return out.takeError();
  const size_t rank = out->rank();
  const bool areTiles = a->kind == hw::ElemKind::Bfp16R;
  if (areTiles ? !batch.empty() : a->kind != hw::ElemKind::F16)
    return fail(loop, "multiplies what are no matrices of f16 or tiles");
  ProductDims dims;
  dims.m = out->shape[rank - 2], dims.n = out->shape.back(), dims.k = a->shape.back(),
  dims.kChunks = (dims.k + 63) / 64;
  if (areTiles && (a->shape[0] + 63) / 64 == (dims.m + 63) / 64)
    a->shape[0] = dims.m; // tiles of a part, the last of them ragged
  if (dims.m != a->shape[rank - 2] || tiles.form.n != dims.n || tiles.form.kChunks != dims.kChunks)
    return fail(loop, "does not fit the packed form of its weights");
  const lldmir::PlanAttr spread = spreadOf(loops, &tiles.form, loop.getContext());
  const TileOrder order = orderOf(loops, spread, dims);
  if (Status s = checkTiles(loops, order, dims); !s)
    return s;
  if (!order.isWhole() && comesInPieces(tiles))
    return fail(loop, "is in an order that weights which ST does not hold cannot follow");
  MatmulShape shape(*a, DeviceTensor{a->kind, {1, 1}, {0, 0}, {}}, *out);
  if (order.isWhole()) // rows of a batch go on
    shape.joinBatch();
  dims.m = shape.m;
  Result<MatmulPlan> plan = planOf(loop, loops, spread, dims);
  if (!plan)
    return plan.takeError();
  if (tiles.form.rounds != plan->rounds())
    return fail(loop, "does not fit the packed form of its weights");
  shape.operands.outBytes = out->elementSize();
  if (loops.bias) {
    Result<DeviceTensor> vector = tensorOf(loop, loops.bias);
    if (!vector)
      return vector.takeError();
    shape.operands.bias = vector->address;
  }
  multiplyByConstant(*plan, order, std::move(shape), tiles);
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
  const MatmulShape apart(*a, *b, *out);
  const lldmir::PlanAttr spread = spreadOf(loops, nullptr, loop.getContext());
  const TileOrder order = orderOf(loops, spread, apart.dims());
  if (Status s = checkTiles(loops, order, apart.dims()); !s)
    return s;
  MatmulShape shape = apart;
  // Slices that were to share the matrices of a batch do so where their rows would go on.
  if (order.isWhole()) {
    shape.joinBatch();
    if (unfit(spread, shape.dims(), machine))
      shape = apart;
  }
  Result<MatmulPlan> plan = planOf(loop, loops, spread, shape.dims());
  if (!plan)
    return plan.takeError();
  multiplyValues(*plan, order, std::move(shape));
  return Status::ok();
}
