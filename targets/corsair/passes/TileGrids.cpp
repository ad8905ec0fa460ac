//===- TileGrids.cpp - buffers of a kernel and their tiles ----------------===//
#include "TileGrids.h"
#include "KernelFunctions.h"
#include "Views.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/decide/Constants.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

static MemRefType bufferIn(StringRef memory, ArrayRef<int64_t> shape, Type element) {
  return MemRefType::get(shape, element, MemRefLayoutAttrInterface(), StringAttr::get(element.getContext(), memory));
}

FailureOr<MemRefType> dmxc::argumentBuffer(func::FuncOp function, BlockArgument argument) {
  const unsigned number = argument.getArgNumber();
  auto tensor = dyn_cast<RankedTensorType>(argument.getType());
  if (!tensor || !tensor.hasStaticShape())
    return function.emitError() << "takes a " << argument.getType() << "; kernels take tensors of static shapes";
  auto deal = function.getArgAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr);
  const int64_t quads = function->getAttrOfType<IntegerAttr>(kQuadsAttr).getInt();
  const corsair::Split split = corsair::splitOf(deal, tensor.getShape(), quads);
  if (deal && deal.getDim() >= 0 && !split)
    return function.emitError() << "has a '" << lldmir::kDealAttr << "' of argument " << number
                                << " that gives no equal shares of " << tensor << " to " << quads << " quads";
  const SmallVector<int64_t> shape = corsair::shareOf(tensor.getShape(), split);
  auto block = dmir::blockFpOf(tensor);
  if (function.getArgAttr(number, kOrderAttr) && !block) {
    std::optional<SmallVector<unsigned>> order = orderOfDims(function, number, tensor.getRank());
    if (!order)
      return function.emitError() << "has a '" << kOrderAttr << "' of argument " << number
                                  << " that is no order of its dims";
    return denseBuffer(shape, tensor.getElementType(), *order);
  }
  if (!block)
    return bufferIn(function.getArgAttr(number, kTableAttr) ? "DDR" : "GM", shape, tensor.getElementType());
  auto gridIn = [&](StringRef memory, int64_t down, int64_t right) {
    return bufferIn(memory, {down, right}, VecExtType::get(function.getContext(), {64, 64}, block));
  };
  if (auto rows = function.getArgAttrOfType<IntegerAttr>(number, kTilesAttr)) {
    const int64_t part = rows.getInt();
    if (tensor.getRank() != 2 || !block.hasBlocks() || block.getColumns() || part < 1 || shape[0] % part)
      return function.emitError() << "takes a " << tensor << ", which is no matrix of tiles of " << part << " rows";
    return gridIn("GM", shape[0] / part * tilesOf(part), tilesOf(shape[1]));
  }
  auto form = function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr);
  if (!form)
    return function.emitError() << "takes a " << tensor << " that has no packed form";
  if (dmir::isBfp32(block))
    return bufferIn("GM", shape, VecExtType::get(function.getContext(), {1}, block));
  auto tiles = corsair::TileForm::parse(form, lldmir::machineOf(function.getContext()));
  if (!tiles)
    return function.emitError() << "has a '" << kFormAttr << "' of argument " << number
                                << " that is no form of tiles: " << form;
  const int64_t down = tiles->alongK ? tiles->quads : 1; // each quad has rows of the matrix, or columns
  return gridIn("ST", tiles->kChunks * down, tiles->quads / down * tilesOf(tiles->n));
}

/// The only operand of a map d0 -> d0 * scale that gives an offset; null where it is none.
static Value scaledBy(OpFoldResult offset, int64_t scale) {
  auto value = dyn_cast<Value>(offset);
  auto apply = value ? value.getDefiningOp<affine::AffineApplyOp>() : affine::AffineApplyOp();
  if (!apply || apply.getAffineMap().getNumInputs() != 1 ||
      apply.getAffineMap().getResult(0) != getAffineDimExpr(0, apply.getContext()) * scale)
    return {};
  return apply.getMapOperands()[0];
}

/// An offset as an expression of counters.
static std::pair<AffineExpr, SmallVector<Value>> expressionOf(OpFoldResult offset, MLIRContext *context) {
  if (std::optional<int64_t> constant = getConstantIntValue(offset))
    return {getAffineConstantExpr(*constant, context), {}};
  auto apply = cast<Value>(offset).getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return {getAffineDimExpr(0, context), {cast<Value>(offset)}};
  SmallVector<AffineExpr> dims;
  for (unsigned i = 0; i < apply.getAffineMap().getNumInputs(); ++i)
    dims.push_back(getAffineDimExpr(i, context));
  const unsigned symbols = apply.getAffineMap().getNumDims();
  return {apply.getAffineMap().getResult(0).replaceSymbols(ArrayRef(dims).drop_front(symbols)),
          SmallVector<Value>(apply.getMapOperands())};
}

/// The number of the tile that begins at an element; null where none does.
static AffineExpr tileAt(AffineExpr element, unsigned operands) {
  element = simplifyAffineExpr(element, operands, 0);
  return element.isMultipleOf(64) ? simplifyAffineExpr(element.floorDiv(64), operands, 0) : AffineExpr();
}

FailureOr<AffineMap> dmxc::tileMap(Operation *op, ArrayRef<OpFoldResult> offsets, const IRMapping &mapping,
                                   SmallVector<Value> &operands) {
  if (auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(op))
    if (llvm::any_of(slice.getMixedStrides(), [](OpFoldResult step) { return getConstantIntValue(step) != 1; }))
      return op->emitError("takes no neighbouring elements, which a tile has");
  SmallVector<AffineExpr> indices;
  for (OpFoldResult offset : offsets) {
    auto [expr, counters] = expressionOf(offset, op->getContext());
    AffineExpr tile = tileAt(expr, counters.size());
    if (!tile)
      return op->emitError("does not begin at a tile");
    indices.push_back(tile.shiftDims(counters.size(), operands.size()));
    for (Value counter : counters)
      operands.push_back(mapping.lookupOrDefault(counter));
  }
  return AffineMap::get(operands.size(), 0, indices, op->getContext());
}

FailureOr<VectorPlace> dmxc::placeInVector(Operation *op, OpFoldResult offset, const IRMapping &mapping) {
  MLIRContext *context = op->getContext();
  auto [expr, counters] = expressionOf(offset, context);
  const AffineExpr zero = getAffineConstantExpr(0, context);
  VectorPlace place;
  SmallVector<AffineExpr> ofQuad(counters.size(), zero), ofTile(counters.size(), zero);
  for (auto [i, counter] : llvm::enumerate(counters)) {
    auto argument = dyn_cast<BlockArgument>(counter);
    auto loop = argument ? dyn_cast<affine::AffineForOp>(argument.getOwner()->getParentOp()) : affine::AffineForOp();
    if (loop && loop->hasAttr(kQuadsAttr) && loop.hasConstantUpperBound()) {
      place.quad = counter;
      ofQuad[i] = getAffineDimExpr(0, context);
      place.lastPart = loop.getConstantUpperBound() - 1;
      continue;
    }
    ofTile[i] = getAffineDimExpr(place.operands.size(), context);
    place.operands.push_back(mapping.lookupOrDefault(counter));
  }
  // What is left at tile 0 is where the part begins; what is left for quad 0 is the tile.
  const SmallVector<AffineExpr> none(counters.size(), zero);
  AffineExpr part = simplifyAffineExpr(expr.replaceDims(ofQuad) - expr.replaceDims(none), 1, 0);
  AffineExpr tile = tileAt(expr.replaceDims(ofTile), place.operands.size());
  if (!tile)
    return op->emitError("does not begin at a tile");
  place.part = AffineMap::get(1, 0, part);
  place.tile = AffineMap::get(place.operands.size(), 0, tile);
  if (place.quad)
    place.lastPart = cast<AffineConstantExpr>(
                         simplifyAffineExpr(part.replaceDims({getAffineConstantExpr(place.lastPart, context)}), 0, 0))
                         .getValue();
  return place;
}

FailureOr<OpFoldResult> dmxc::partIndex(OpBuilder &builder, Operation *op, OpFoldResult offset, int64_t size,
                                        const IRMapping &mapping) {
  if (getConstantIntValue(offset) == 0)
    return offset;
  Value quad = scaledBy(offset, size);
  if (!quad)
    return op->emitError("cuts tiles elsewhere than at a quad's part");
  AffineMap map = AffineMap::get(1, 0, builder.getAffineDimExpr(0) * tilesOf(size));
  return OpFoldResult(
      affine::AffineApplyOp::create(builder, op->getLoc(), map, mapping.lookupOrDefault(quad)).getResult());
}
