//===- Quad.cpp - buffers and tiles of one quad ---------------------------===//
#include "Quad.h"
#include "VectorDevice.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using affine_ext::VecExtType;

Result<View> Quad::viewOf(Operation *reader, Value value) const {
  if (auto found = views.find(value); found != views.end())
    return found->second;
  return errorAt(reader, "reads what nothing has made");
}

Status Quad::put(Operation *op, View view) {
  if (!view.isInside())
    return errorAt(op, "looks beyond its buffer");
  views[op->getResult(0)] = std::move(view);
  return Status::ok();
}

Status Quad::evaluate(Operation *op) {
  return TypeSwitch<Operation *, Status>(op)
      .Case<memref::AllocOp, memref::SubViewOp, memref::TransposeOp, memref::ReinterpretCastOp, affine_ext::TilesOp,
            affine::AffineForOp, affine::AffineIfOp, affine::AffineLoadOp, affine::AffineStoreOp, affine_ext::LoadOp,
            affine_ext::CastOp, affine_ext::MatMulOp, lldmir::MatMulOp, lldmir::SimdOp, lldmir::ReshapeOp,
            lldmir::ConvOp, lldmir::SumOp>([&](auto typed) { return lower(typed); })
      .Case([&](gpu::ThreadIdOp typed) {
        indices.set(typed.getResult(), typed.getDimension() == gpu::Dimension::x ? number : 0);
        return Status::ok();
      })
      .Default([&](Operation *other) -> Status {
        const bool isIndex = other->getNumResults() == 1 && indices.at(other->getResult(0));
        if (isIndex || isa<gpu::BarrierOp>(other)) // computed where it is read; quads meet after each op
          return Status::ok();
        return notEvaluated(other, "is not known to the interpreter of buffers");
      });
}

Status Quad::evaluateBody(Block &body) {
  for (Operation &op : body.without_terminator())
    if (Status done = evaluate(&op); !done)
      return done;
  return Status::ok();
}

Status Quad::lower(affine::AffineForOp op) {
  auto bounds = indices.bounds(op);
  if (!bounds)
    return notEvaluated(op, "is a loop whose bounds are no numbers");
  if (Status done = carry(op, op.getInits(), op.getRegionIterArgs()); !done)
    return done;
  for (int64_t i = bounds->first; i < bounds->second; i += op.getStepAsInt()) {
    indices.set(op.getInductionVar(), i);
    if (Status done = evaluateBody(*op.getBody()); !done)
      return done;
    if (Status done = carry(op, op.getBody()->getTerminator()->getOperands(), op.getRegionIterArgs()); !done)
      return done;
  }
  return carry(op, op.getRegionIterArgs(), op.getResults());
}

Status Quad::lower(affine::AffineIfOp op) {
  std::optional<bool> holds = indices.holds(op);
  if (!holds || op.getNumResults() || op.hasElse())
    return notEvaluated(op, "is a condition of other than numbers, or a choice");
  return *holds ? evaluateBody(*op.getThenBlock()) : Status::ok();
}

/// Tiles, and sums that are still in the arrays, under other names; all at once.
Status Quad::carry(Operation *op, ValueRange from, ValueRange to) {
  SmallVector<std::optional<Sums>> pending;
  SmallVector<View> tiles;
  for (Value value : from) {
    auto found = sums.find(value);
    pending.push_back(found == sums.end() ? std::nullopt : std::optional(found->second));
    Result<View> tile = pending.back() ? Result<View>(View()) : viewOf(op, value);
    if (!tile)
      return tile.takeError();
    tiles.push_back(*tile);
  }
  for (auto [value, sum, tile] : llvm::zip(to, pending, tiles)) {
    sums.erase(value), views.erase(value);
    if (sum)
      sums[value] = *sum;
    else
      views[value] = tile;
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What nobody has written reads as no number.
Status Quad::lower(memref::AllocOp op) {
  const MemRefType type = op.getType();
  std::optional<hw::ElemKind> kind = kindOf(type.getElementType());
  auto [strides, offset] = type.getStridesAndOffset();
  if (!kind || !type.hasStaticShape() || offset != 0)
    return notEvaluated(op, "makes a buffer whose elements or size are not known");
  if (type.getNumElements() == 0)
    strides.assign(strides.size(), 0);
  auto tile = dyn_cast<VecExtType>(type.getElementType());
  if (tile && tile.getShape() != ArrayRef<int64_t>{1})
    return notEvaluated(op, "makes a buffer of tiles");
  View made = View::strided(*kind, type.getShape(), strides);
  std::fill(made.memory->begin(), made.memory->end(), std::byte(0xff));
  return put(op, made);
}

/// Of a grid the elements of one index along each dim: of its tiles along the last ones.
static Dims unitsOf(MemRefType type) {
  Dims units(type.getRank(), 1);
  if (auto tile = dyn_cast<VecExtType>(type.getElementType()))
    for (auto [i, extent] : llvm::enumerate(llvm::reverse(tile.getShape())))
      units[units.size() - 1 - i] = extent;
  return units;
}

Status Quad::lower(memref::SubViewOp op) {
  Result<View> from = viewOf(op, op.getSource());
  std::optional<Dims> at = indices.at(op.getMixedOffsets()), sizes = indices.at(op.getMixedSizes()),
                      steps = indices.at(op.getMixedStrides());
  if (!from)
    return from.takeError();
  if (!at || !sizes || !steps)
    return errorAt(op, "begins at no number that its loops give");
  const MemRefType type = op.getSourceType();
  const Dims units = unitsOf(type);
  for (size_t i = 0; i < from->rank(); ++i) {
    const int64_t last = (*at)[i] + ((*sizes)[i] - 1) * (*steps)[i], extent = type.getDimSize(i);
    if ((*sizes)[i] > 0 && (std::min((*at)[i], last) < 0 || std::max((*at)[i], last) >= extent))
      return errorAt(op, "looks beyond its buffer, along dim " + std::to_string(i));
    (*at)[i] *= units[i];
    (*sizes)[i] = std::min((*sizes)[i] * units[i], units[i] == 1 ? INT64_MAX : from->shape[i] - (*at)[i]);
  }
  View part = from->part(*at, *sizes, *steps);
  const llvm::SmallBitVector dropped = op.getDroppedDims();
  for (size_t i = part.rank(); i-- > 0;)
    if (dropped.test(i)) {
      part.shape.erase(part.shape.begin() + i);
      part.steps.erase(part.steps.begin() + i);
    }
  return put(op, part);
}

Status Quad::lower(memref::TransposeOp op) {
  Result<View> from = viewOf(op, op.getIn());
  if (!from)
    return from.takeError();
  Dims permutation;
  for (unsigned dim = 0; dim < from->rank(); ++dim)
    permutation.push_back(op.getPermutation().getDimPosition(dim));
  return put(op, from->transposed(permutation));
}

/// Steps and an offset of elements from the beginning of the buffer that the source is a view of.
Status Quad::lower(memref::ReinterpretCastOp op) {
  Result<View> from = viewOf(op, op.getSource());
  std::optional<Dims> sizes = indices.at(op.getMixedSizes()), steps = indices.at(op.getMixedStrides());
  if (!from)
    return from.takeError();
  std::optional<int64_t> at = indices.at(op.getMixedOffsets()[0]);
  if (!sizes || !steps || !at)
    return errorAt(op, "begins at no number that its loops give");
  const int64_t size = hw::elementBytes(from->kind);
  View made = *from;
  made.shape = *sizes, made.steps = *steps;
  for (int64_t &step : made.steps)
    step *= size;
  if (!ShapedType::isDynamic(*at))
    made.offset = *at * size;
  return put(op, made);
}

Status Quad::lower(affine_ext::TilesOp op) {
  Result<View> from = viewOf(op, op.getBuffer());
  return from ? put(op, *from) : Status(from.takeError());
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// So many neighbouring tiles as one matrix; what lies beyond a ragged edge is zero.
Result<View> Quad::tilesAt(Operation *op, Value grid, ArrayRef<int64_t> at, ArrayRef<int64_t> counts) const {
  Result<View> from = viewOf(op, grid);
  if (!from)
    return from;
  const auto type = cast<MemRefType>(grid.getType());
  const Dims units = unitsOf(type);
  const size_t rank = cast<VecExtType>(type.getElementType()).getRank();
  Dims first, here, whole;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0 || at[i] + counts[i] > type.getDimSize(i))
      return errorAt(op, "has tile " + std::to_string(at[i]) + " along dim " + std::to_string(i) + " of a grid of " +
                             std::to_string(type.getDimSize(i)));
    first.push_back(at[i] * units[i]);
    whole.push_back(counts[i] * units[i]);
    here.push_back(std::clamp<int64_t>(from->shape[i] - first[i], 0, whole[i]));
  }
  View part = from->part(first, here, Dims(at.size(), 1));
  part.shape.erase(part.shape.begin(), part.shape.end() - rank); // of a batch there is one matrix
  part.steps.erase(part.steps.begin(), part.steps.end() - rank);
  whole.erase(whole.begin(), whole.end() - rank);
  View tile = View::zeros(from->kind, whole);
  copyInto(part, tile.part(Dims(rank, 0), part.shape, Dims(rank, 1)));
  return tile;
}

Status Quad::lower(affine::AffineLoadOp op) {
  std::optional<Dims> at = indices.at(op.getAffineMap(), op.getMapOperands());
  if (!at || !isa<VecExtType>(op.getMemRefType().getElementType()))
    return notEvaluated(op, "reads no tile at an index that its loops give");
  Result<View> tile = tilesAt(op, op.getMemRef(), *at, Dims(at->size(), 1));
  return tile ? put(op, *tile) : Status(tile.takeError());
}

Status Quad::lower(affine_ext::LoadOp op) {
  std::optional<Dims> at = indices.at(op.getMap(), op.getMapOperands());
  if (!at)
    return errorAt(op, "reads tiles at no index that its loops give");
  Result<View> tiles = tilesAt(op, op.getMemref(), *at, op.getType().getShape());
  return tiles ? put(op, *tiles) : Status(tiles.takeError());
}

Status Quad::lower(affine::AffineStoreOp op) {
  std::optional<Dims> at = indices.at(op.getAffineMap(), op.getMapOperands());
  Result<View> to = viewOf(op, op.getMemRef()), tile = numbersOf(op, op.getValue());
  if (!to || !tile)
    return (to ? tile : to).takeError();
  const MemRefType type = op.getMemRefType();
  if (!at || !isa<VecExtType>(type.getElementType()))
    return notEvaluated(op, "writes no tile at an index that its loops give");
  const Dims units = unitsOf(type);
  Dims first, here, zeros(tile->rank(), 0), ones(tile->rank(), 1);
  for (size_t i = 0; i < at->size(); ++i) {
    if ((*at)[i] < 0 || (*at)[i] >= type.getDimSize(i))
      return errorAt(op, "has tile " + std::to_string((*at)[i]) + " along dim " + std::to_string(i) + " of a grid of " +
                             std::to_string(type.getDimSize(i)));
    first.push_back((*at)[i] * units[i]);
    here.push_back(std::clamp<int64_t>(to->shape[i] - first[i], 0, units[i]));
  }
  View target = to->part(first, here, Dims(at->size(), 1));
  target.shape.erase(target.shape.begin(), target.shape.end() - tile->rank());
  target.steps.erase(target.steps.begin(), target.steps.end() - tile->rank());
  copyInto(tile->part(zeros, target.shape, ones), target);
  return Status::ok();
}

Status Quad::lower(affine_ext::CastOp op) {
  Result<View> from = numbersOf(op, op.getInput());
  std::optional<hw::ElemKind> kind = kindOf(op.getType().getElementType());
  if (!from)
    return from.takeError();
  return kind ? put(op, from->copy(kind)) : Status(notEvaluated(op, "makes numbers that the device does not have"));
}

/// A tile; of sums in the arrays what they are when they leave them.
Result<View> Quad::numbersOf(Operation *op, Value tile) const {
  auto pending = sums.find(tile);
  if (pending == sums.end())
    return viewOf(op, tile);
  Result<View> made = addedUp(pending->second);
  return made ? std::move(made) : Result<View>(errorAt(op, made.error().message));
}

Status Quad::lower(affine_ext::MatMulOp op) {
  Result<View> left = viewOf(op, op.getLhs()), right = viewOf(op, op.getRhs());
  if (!left || !right)
    return (left ? right : left).takeError();
  auto plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
  auto tree = op->getAttrOfType<IntegerAttr>(dmir::kTreeTilesAttr);
  if (auto blocks = op->getAttrOfType<DenseI64ArrayAttr>(lldmir::kBlocksAttr)) {
    if (left->rank() != 2 || right->rank() != 2 || !llvm::all_of(blocks.asArrayRef(), [&](int64_t block) {
          return block >= 0 && block < (left->shape[1] + 63) / 64;
        }))
      return errorAt(op, "has no such blocks along K as '" + lldmir::kBlocksAttr.str() + "' says");
    left = blocksOf(*left, 1, blocks), right = blocksOf(*right, 0, blocks);
  }
  Sums made;
  made.parts.push_back({*left, *right, plan ? plan.getNumImc() : tree ? tree.getInt() : 16});
  sums[op.getResult()] = made;
  return Status::ok();
}

Status Quad::lower(lldmir::MatMulOp op) {
  Sums made;
  if (op.getInit()) {
    auto before = sums.find(op.getInit());
    if (before == sums.end())
      return notEvaluated(op, "adds to a tile that is no sum of the arrays");
    made = before->second;
  }
  const int64_t count = op.getActivations().size();
  View left, right;
  for (auto [i, a, b] : llvm::enumerate(op.getActivations(), op.getWeights())) {
    Result<View> row = numbersOf(op, a), column = numbersOf(op, b);
    if (!row || !column)
      return (row ? column : row).takeError();
    if (i == 0) {
      left = View::zeros(hw::ElemKind::F32, {row->shape[0], count * row->shape[1]});
      right = View::zeros(hw::ElemKind::F32, {count * column->shape[0], column->shape[1]});
    }
    const auto k = static_cast<int64_t>(i);
    copyInto(*row, left.slice(1, k * row->shape[1], row->shape[1]));
    copyInto(*column, right.slice(0, k * column->shape[0], column->shape[0]));
  }
  made.parts.push_back({left, right, count});
  sums[op.getResult()] = std::move(made);
  return Status::ok();
}

/// A cast, the bias of a sum, which lies below it, or a function of tiles that are no sums any more.
Status Quad::lowerTile(lldmir::SimdOp op) {
  auto type = cast<VecExtType>(op.getResults()[0].getType());
  std::optional<hw::ElemKind> kind = kindOf(type.getElementType());
  if (op->getNumResults() != 1 || !kind)
    return notEvaluated(op, "makes no tile of numbers that the device has");
  auto pending = op.getInputs().empty() ? sums.end() : sums.find(op.getInputs()[0]);
  if (op.getFunction() == "add" && op.getInputs().size() == 2 && pending != sums.end() && !pending->second.bias) {
    Result<View> bias = viewOf(op, op.getInputs()[1]);
    if (!bias)
      return bias.takeError();
    Sums made = pending->second;
    made.bias = *bias;
    sums[op.getResults()[0]] = std::move(made);
    return Status::ok();
  }
  if (op.getFunction() != "cast" || op.getInputs().size() != 1)
    return functionOfTiles(op, *kind);
  Result<View> from = numbersOf(op, op.getInputs()[0]);
  return from ? put(op, from->copy(kind)) : Status(from.takeError());
}
