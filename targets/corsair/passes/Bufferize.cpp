//===- Bufferize.cpp - tensors of a kernel to buffers ---------------------===//
//
// A value is a buffer in GM, or a view of one. Where a product reads or writes it, a grid of tiles is a view of it,
// whose edges are ragged; packed weights are a grid of tiles in ST. A cast to block_fp becomes one of each tile that is
// loaded. What is not loops over tiles is one op of the vector device on whole buffers.
//
//===----------------------------------------------------------------------===//
#include "KernelFunctions.h"
#include "Passes.h"
#include "Shares.h"
#include "TileGrids.h"
#include "Views.h"
#include "WholeBuffers.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/decide/Distribution.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dmxc {
#define GEN_PASS_DEF_BUFFERIZE
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

namespace {

class KernelBufferizer : WholeBuffers {
public:
  explicit KernelBufferizer(func::FuncOp function) : WholeBuffers(function), functions(function.getBody().front()) {}

  LogicalResult run() {
    if (!function.getBody().hasOneBlock())
      return function.emitError("has several blocks; a kernel is straight-line code and loops over tiles");
    Block &old = function.getBody().front();
    auto *fresh = new Block();
    function.getBody().push_back(fresh);
    for (BlockArgument argument : old.getArguments()) {
      FailureOr<MemRefType> type = argumentBuffer(function, argument);
      if (failed(type)) {
        fresh->erase();
        return failure();
      }
      auto deal = function.getArgAttrOfType<lldmir::DealAttr>(argument.getArgNumber(), lldmir::kDealAttr);
      places[argument] = {
          fresh->addArgument(*type, argument.getLoc()), {}, corsair::splitOf(deal, shapeOf(argument), quads)};
    }
    builder.setInsertionPointToEnd(fresh);
    for (Operation &op : old)
      if (failed(convert(&op))) {
        fresh->erase();
        return failure();
      }
    // Offsets have become indices of tiles.
    SmallVector<Operation *> offsets;
    fresh->walk([&](Operation *op) {
      if (isa<affine::AffineApplyOp, arith::ConstantOp>(op))
        offsets.push_back(op);
    });
    for (Operation *op : llvm::reverse(offsets))
      if (op->use_empty())
        op->erase();
    SmallVector<Type> results(fresh->getTerminator()->getOperandTypes());
    old.dropAllReferences();
    old.dropAllDefinedValueUses();
    old.erase();
    function.setType(FunctionType::get(function.getContext(), fresh->getArgumentTypes(), results));
    return success();
  }

private:
  LogicalResult convert(Operation *op) {
    if (functions.isUnused(op))
      return success();
    if (auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
        deal && deal.getDim() >= 0 && op->getNumResults() && !splitOf(op))
      return op->emitError() << "cannot be dealt by '" << lldmir::kDealAttr << "' " << deal << ": it gives "
                             << op->getResultTypes()[0] << " to " << quads << " quads";
    if (const corsair::DeviceFunction *function = functions.at(op))
      return lowerAs(*function, op);
    return TypeSwitch<Operation *, LogicalResult>(op)
        .Case<dmir::ConstantOp, dmir::UndefOp, dmir::CastOp, dmir::PadBlocksOp, dmir::ReshapeOp, dmir::TransposeOp,
              dmir::SliceOp, dmir::BroadcastOp, dmir::ConcatOp, dmir::PadOp, dmir::GatherOp, dmir::ConvOp, dmir::PoolOp,
              dmir::IsInfOp, dmir::ScatterElementsOp, dmir::ExternOp, lldmir::ConvOp, lldmir::SumOp, dmir::MatMulOp,
              affine::AffineForOp, tensor::ExtractSliceOp, tensor::InsertSliceOp, lldmir::GatherOp, func::ReturnOp>(
            [&](auto typed) { return lower(typed); })
        .Case<affine::AffineApplyOp, arith::ConstantOp>([&](auto index) { return lowerIndex(index); })
        .Case([](affine::AffineYieldOp) { return success(); }) // what is carried was stored to
        .Default([&](Operation *other) { return inTiles(other) ? lowerTile(other) : lowerWhole(other); });
  }
  using WholeBuffers::lower;

  /// What has elements gets its place where it is written to.
  LogicalResult lower(dmir::UndefOp op) {
    if (corsair::makesNothing(op))
      places[op.getResult()] = {allocate(op.getLoc(), shapeOf(op.getResult()), elementOf(op.getResult())), {}};
    return success();
  }

  LogicalResult lower(dmir::CastOp op) {
    Type to = elementOf(op.getResult());
    if (auto block = dyn_cast<dmir::BlockFpType>(to); block && block.hasBlocks()) {
      // Descriptors take a step of 0 along K for "side by side".
      Value numbers = writtenOut(op, op.getInput(), block.getColumns() ? 2 : 1);
      if (!numbers)
        return failure();
      places[op.getResult()] = {numbers, to, places.lookup(op.getInput()).split};
      return success();
    }
    if (auto constant = op.getInput().getDefiningOp<dmir::ConstantOp>(); constant && isWide(elementOf(constant))) {
      fill(constant, to);
      places[op.getResult()] = places.lookup(constant.getResult());
      return success();
    }
    return inTiles(op) ? lowerTile(op) : lowerWhole(op);
  }

  LogicalResult lower(lldmir::GatherOp op) {
    SmallVector<Value> parts, wholes;
    for (auto [part, whole, attribute] : llvm::zip(op.getParts(), op.getResults(), op.getDeals())) {
      const Place from = places.lookup(part);
      if (!from.memref)
        return op.emitError("gathers a value that has no buffer");
      auto type = cast<MemRefType>(from.memref.getType());
      const corsair::Split split = corsair::splitOf(dyn_cast<lldmir::DealAttr>(attribute), shapeOf(part), quads);
      if (!split || from.split != split || isa<VecExtType>(type.getElementType()))
        return op.emitError() << "gathers a value by " << attribute << " of which each quad has no such share";
      Value made = allocate(op.getLoc(), shapeOf(part), type.getElementType(), layoutOf(type).order());
      places[whole] = {made, from.format};
      parts.push_back(from.memref);
      wholes.push_back(made);
    }
    lldmir::GatherOp::create(builder, op.getLoc(), TypeRange(), parts, wholes, op.getDeals());
    return success();
  }

  LogicalResult lower(func::ReturnOp op) {
    SmallVector<Value> results;
    llvm::DenseSet<int64_t> states; // what becomes one is copied there as it lies
    for (BlockArgument argument : op->getBlock()->getArguments())
      if (auto next = function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kStateAttr))
        states.insert(next.getInt());
    for (auto [number, value] : llvm::enumerate(op.getOperands())) {
      const Place place = places.lookup(value);
      if (!place.memref)
        return op.emitError("returns a value that has no buffer");
      auto deal = function.getResultAttrOfType<lldmir::DealAttr>(number, lldmir::kDealAttr);
      if (place.split != corsair::splitOf(deal, shapeOf(value), quads) || (deal && !place.split))
        return op.emitError() << "returns other shares of result " << number << " than its '" << lldmir::kDealAttr
                              << "' says";
      results.push_back(states.contains(number) ? place.memref : withoutGaps(value.getLoc(), value));
    }
    func::ReturnOp::create(builder, op.getLoc(), results);
    return success();
  }

  //===--- loops ----------------------------------------------------------------------===//

  static bool inTiles(Operation *op) { return isa<affine::AffineForOp>(op->getParentOp()); }
  /// Of a loop: whether its body has whole products.
  static bool isOutside(Operation *loop) { return loop->hasAttr(kQuadsAttr) || loop->hasAttr(kBatchAttr); }

  LogicalResult lower(affine::AffineForOp op) {
    if (op.getNumRegionIterArgs() != 1 || (isOutside(op) && !op.hasConstantBounds()))
      return op.emitError("is no loop of a product: it carries its result alone; over quads, bounds are numbers");
    Value init = op.getInits()[0];
    Place target = places.lookup(init);
    if (!target.memref) {
      nest = nullptr;
      if (!init.getDefiningOp<dmir::UndefOp>() || !init.hasOneUse())
        return op.emitError("carries a tensor that others may read; only a dmir.undef of its own is written in place");
      FailureOr<Place> made = isOutside(op) ? wholeOf(op, init) : gridOf(op);
      if (failed(made))
        return failure();
      target = *made;
    }
    auto loop =
        affine::AffineForOp::create(builder, op.getLoc(), mapped(op.getLowerBoundOperands()), op.getLowerBoundMap(),
                                    mapped(op.getUpperBoundOperands()), op.getUpperBoundMap(), op.getStepAsInt());
    for (StringRef key : {kQuadsAttr, kBatchAttr})
      if (Attribute kind = op->getAttr(key))
        loop->setAttr(key, kind);
    if (!isOutside(op) && !nest)
      nest = loop;
    mapping.map(op.getInductionVar(), loop.getInductionVar());
    places[op.getRegionIterArgs()[0]] = target;
    if (!places.contains(op.getResult(0)))
      places[op.getResult(0)] = target;
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    for (Operation &inner : *op.getBody())
      if (failed(convert(&inner)))
        return failure();
    return success();
  }

  /// The buffer that a loop over quads or a batch fills; each quad's share where it is one over quads.
  FailureOr<Place> wholeOf(affine::AffineForOp op, Value init) {
    corsair::Split split;
    if (op->hasAttr(kQuadsAttr)) {
      op.walk([&](tensor::InsertSliceOp insert) {
        std::optional<int64_t> dim = insideNest(insert) ? std::nullopt : dimOfQuads(insert);
        if (dim && insert.getDestType().getRank() == typeOf(init).getRank())
          split = corsair::splitOf(lldmir::DealAttr::get(op.getContext(), *dim, quads), shapeOf(init), quads);
      });
      if (!split || op.getConstantUpperBound() != quads)
        return op.emitError() << "gives no equal shares of " << init.getType() << " to the " << quads
                              << " quads of the function's team";
    }
    return Place{allocate(op.getLoc(), corsair::shareOf(shapeOf(init), split), elementOf(init)), {}, split};
  }

  /// The grid that the loops of a product write to: a view of the buffer that what they make ends up in.
  FailureOr<Place> gridOf(affine::AffineForOp op) {
    Value value = op.getResult(0);
    while (auto next = value.hasOneUse() ? dyn_cast<affine::AffineForOp>(*value.user_begin()) : affine::AffineForOp())
      value = next.getResult(0); // loops that go on with it
    auto cut = value.hasOneUse() ? dyn_cast<tensor::ExtractSliceOp>(*value.user_begin()) : tensor::ExtractSliceOp();
    Value part = cut ? cut.getResult() : value;
    auto into = part.hasOneUse() ? dyn_cast<tensor::InsertSliceOp>(*part.user_begin()) : tensor::InsertSliceOp();
    Value buffer;
    if (into && into.getSource() == part && into.getDest().getDefiningOp<dmir::UndefOp>() &&
        !memrefOf(into.getDest())) // the only matrix of a batch
      places[into.getDest()] = {allocate(op.getLoc(), shapeOf(into.getDest()), elementOf(part)), {}};
    if (into && into.getSource() == part)
      buffer =
          partOf(into, places.lookup(into.getDest()), into.getMixedOffsets(), into.getStaticSizes(), shapeOf(part));
    else
      buffer = allocate(op.getLoc(), shapeOf(part), elementOf(part));
    if (!buffer)
      return op.emitError("makes a tensor that is inserted into one without a buffer");
    places[part] = {buffer, {}};
    return Place{tiles(op.getLoc(), buffer), {}};
  }

  /// Index values of offsets, in the new code.
  SmallVector<OpFoldResult> offsetsOf(ArrayRef<OpFoldResult> offsets) {
    SmallVector<OpFoldResult> made;
    for (OpFoldResult offset : offsets) {
      auto value = dyn_cast<Value>(offset);
      if (value && !mapping.contains(value) && value.getDefiningOp<affine::AffineApplyOp>())
        (void)lowerIndex(value.getDefiningOp());
      made.push_back(value ? OpFoldResult(mapping.lookupOrDefault(value)) : offset);
    }
    return made;
  }

  SmallVector<Value> mapped(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  LogicalResult lowerIndex(Operation *op) {
    if (!mapping.contains(op->getResult(0)))
      builder.clone(*op, mapping);
    return success();
  }

  /// `shape`: the sizes, or without dims of one. Null, with an error, where it is no part of a share.
  Value partOf(Operation *op, const Place &place, SmallVector<OpFoldResult> offsets, ArrayRef<int64_t> sizes,
               ArrayRef<int64_t> shape) {
    Value memref = place.memref;
    if (!memref)
      return {};
    const Location loc = op->getLoc();
    auto type = cast<MemRefType>(memref.getType());
    if (const int dim = place.split.dim; place.split) {
      FailureOr<OpFoldResult> own = inShare(builder, op, offsets[dim], {place.split.part, sizes[dim]}, mapping);
      if (failed(own))
        return {};
      offsets[dim] = *own;
    }
    if (shape == type.getShape() &&
        llvm::all_of(offsets, [](OpFoldResult offset) { return getConstantIntValue(offset) == 0; }))
      return memref;
    SmallVector<OpFoldResult> at = offsetsOf(offsets), ones(sizes.size(), builder.getIndexAttr(1)),
                              extents = getAsIndexOpFoldResult(builder.getContext(), sizes);
    if (shape.size() == sizes.size())
      return memref::SubViewOp::create(builder, loc, memref, at, extents, ones);
    auto reduced = memref::SubViewOp::inferRankReducedResultType(shape, type, at, extents, ones);
    return memref::SubViewOp::create(builder, loc, cast<MemRefType>(reduced), memref, at, extents, ones);
  }

  /// A buffer as a grid of tiles; made before the loops that walk over it.
  Value tiles(Location loc, Value buffer, Type format = Type()) {
    auto type = cast<MemRefType>(buffer.getType());
    if (auto tile = dyn_cast<VecExtType>(type.getElementType()); tile && tile.getShape() != ArrayRef<int64_t>{1})
      return buffer;
    OpBuilder::InsertionGuard guard(builder);
    if (!nest)
      return affine_ext::TilesOp::create(builder, loc, affine_ext::gridOf(type), buffer);
    builder.setInsertionPoint(nest);
    Value &grid = grids[{nest, buffer, format, AffineMap()}]; // a body that was written out has one for all its parts
    if (!grid)
      grid = affine_ext::TilesOp::create(builder, loc, affine_ext::gridOf(type), buffer);
    return grid;
  }

  LogicalResult lower(tensor::ExtractSliceOp op) {
    const bool isMade = places.contains(op.getResult()); // by a product's loops
    if (LogicalResult checked = checkSlice(op, isMade); isMade || failed(checked))
      return checked;
    Place from = places.lookup(op.getSource());
    if (!from.memref)
      return op.emitError("cuts a value that has no buffer");
    auto type = cast<MemRefType>(from.memref.getType());
    if (!nest || !insideNest(op)) { // a quad's part
      SmallVector<OpFoldResult> offsets = op.getMixedOffsets();
      SmallVector<int64_t> sizes(op.getStaticSizes());
      if (auto tile = dyn_cast<VecExtType>(type.getElementType()); tile && tile.getRank() == 2) {
        // Each part has tiles of its own.
        for (size_t i = 0; i < sizes.size(); ++i) {
          const bool own = from.split && from.split.dim == static_cast<int>(i);
          FailureOr<OpFoldResult> index = own ? inShare(builder, op, offsets[i], {sizes[i], sizes[i]}, mapping)
                                              : partIndex(builder, op, offsets[i], sizes[i], mapping);
          if (failed(index))
            return failure();
          offsets[i] = *index;
          sizes[i] = tilesOf(sizes[i]);
        }
        from.split = {};
      }
      SmallVector<int64_t> shape(sizes);
      if (op.getType().getRank() < static_cast<int64_t>(sizes.size()))
        shape.assign(op.getType().getShape().begin(), op.getType().getShape().end());
      Value part = partOf(op, from, offsets, sizes, shape);
      places[op.getResult()] = {part, from.format};
      return success(static_cast<bool>(part));
    }
    return load(op, from);
  }

  static bool insideNest(Operation *op) {
    auto loop = dyn_cast<affine::AffineForOp>(op->getParentOp());
    return loop && !isOutside(loop);
  }

  //===--- tiles ----------------------------------------------------------------------===//

  LogicalResult load(tensor::ExtractSliceOp op, Place from) {
    if (op.getType().getRank() == 1)
      return loadBias(op, from);
    Value grid = tiles(op.getLoc(), from.memref, from.format);
    SmallVector<Value> operands;
    FailureOr<AffineMap> map = tileMap(op, op.getMixedOffsets(), mapping, operands);
    if (failed(map))
      return failure();
    auto tile = cast<VecExtType>(cast<MemRefType>(grid.getType()).getElementType());
    SmallVector<int64_t> counts;
    for (int64_t size : op.getType().getShape())
      counts.push_back(tilesOf(size));
    auto array = VecExtType::get(op.getContext(), counts, tile);
    Value loaded =
        affine_ext::LoadOp::create(builder, op.getLoc(), array, grid, operands, AffineMapAttr::get(*map)).getResult();
    if (from.format) {
      auto quantised = VecExtType::get(op.getContext(), tile.getShape(), from.format);
      loaded =
          affine_ext::CastOp::create(builder, op.getLoc(), VecExtType::get(op.getContext(), counts, quantised), loaded);
    }
    mapping.map(op.getResult(), loaded);
    return success();
  }

  /// 64 numbers of a packed vector, from a quad's part on.
  LogicalResult loadBias(tensor::ExtractSliceOp op, Place from) {
    FailureOr<VectorPlace> place = placeInVector(op, op.getMixedOffsets()[0], mapping);
    if (failed(place))
      return failure();
    Value vector = from.memref;
    if (place->quad) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(nest);
      Value at = affine::AffineApplyOp::create(builder, op.getLoc(), place->part, mapping.lookupOrDefault(place->quad));
      // As far as the packed zeros go behind the last part.
      const int64_t reach = cast<MemRefType>(vector.getType()).getDimSize(0) - place->lastPart;
      if (reach < 64)
        return op.emitError("reaches beyond the packed vector");
      Value &part = grids[{nest, vector, Type(), place->part}];
      if (!part)
        part = memref::SubViewOp::create(builder, op.getLoc(), vector, ArrayRef<OpFoldResult>{at},
                                         ArrayRef<OpFoldResult>{builder.getIndexAttr(reach)},
                                         ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
      vector = part;
    }
    mapping.map(op.getResult(), affine::AffineLoadOp::create(builder, op.getLoc(), tiles(op.getLoc(), vector),
                                                             place->tile, place->operands)
                                    .getResult());
    return success();
  }

  LogicalResult lower(dmir::PadBlocksOp op) {
    places[op.getResult()] = places.lookup(op.getInput());
    return success();
  }

  /// The value as an array of tiles, where no loop cut one out of it.
  Value arrayOf(Value operand, Location loc) {
    if (Value loaded = mapping.lookupOrNull(operand))
      return loaded;
    Place from = places.lookup(operand);
    if (!from.memref)
      return {};
    Value grid = tiles(loc, from.memref);
    auto type = cast<MemRefType>(grid.getType());
    SmallVector<AffineExpr> zeros(type.getRank(), builder.getAffineConstantExpr(0));
    auto map = AffineMap::get(0, 0, zeros, builder.getContext());
    auto array = VecExtType::get(builder.getContext(), type.getShape(), type.getElementType());
    Value loaded = affine_ext::LoadOp::create(builder, loc, array, grid, ValueRange(), AffineMapAttr::get(map));
    if (from.format) {
      auto tile = cast<VecExtType>(type.getElementType());
      auto quantised = VecExtType::get(builder.getContext(), tile.getShape(), from.format);
      loaded = affine_ext::CastOp::create(builder, loc,
                                          VecExtType::get(builder.getContext(), type.getShape(), quantised), loaded);
    }
    return loaded;
  }

  LogicalResult lower(dmir::MatMulOp op) {
    if (!insideNest(op))
      return op.emitError("is no product of tiles: run corsair-tile-products before");
    Value a = arrayOf(op.getLhs(), op.getLoc()), b = arrayOf(op.getRhs(), op.getLoc());
    if (!a || !b)
      return op.emitError("multiplies what has no tiles");
    ArrayRef<int64_t> left = cast<VecExtType>(a.getType()).getShape(), right = cast<VecExtType>(b.getType()).getShape();
    if (left.size() < 2 || right.size() < 2 || left.back() != right[right.size() - 2] || left[left.size() - 2] != 1 ||
        right.back() != 1)
      return op.emitError() << "multiplies " << a.getType() << " by " << b.getType()
                            << ", which are no row and no column of tiles; is the '" << kFormAttr
                            << "' of its weights theirs?";
    auto type = VecExtType::get(op.getContext(), {64, 64}, dmir::BlockFpType::getBfp32(op.getContext()));
    auto product = affine_ext::MatMulOp::create(builder, op.getLoc(), type, a, b, IntegerAttr());
    product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    mapping.map(op.getResult(), product.getResult());
    return success();
  }

  /// An op on tiles.
  LogicalResult lowerTile(Operation *op) {
    SmallVector<Value> inputs;
    for (Value operand : op->getOperands())
      inputs.push_back(mapping.lookupOrNull(operand));
    if (llvm::is_contained(inputs, Value()) || op->getNumResults() != 1 || op->getNumRegions())
      return op->emitError("'") << op->getName() << "' has no form on tiles";
    auto type = VecExtType::get(op->getContext(), shapeOf(op->getResult(0)), elementOf(op->getResult(0)));
    if (isa<dmir::CastOp>(op)) {
      mapping.map(op->getResult(0), affine_ext::CastOp::create(builder, op->getLoc(), type, inputs[0]).getResult());
      return success();
    }
    auto simd = lldmir::SimdOp::create(builder, op->getLoc(), type, op->getName().stripDialect(), inputs, ValueRange(),
                                       DictionaryAttr());
    mapping.map(op->getResult(0), simd.getResult(0));
    return success();
  }

  LogicalResult lower(tensor::InsertSliceOp op) {
    if (!insideNest(op)) { // a part that was written in place
      places[op.getResult()] = places.lookup(op.getDest());
      return op.hasUnitStride() ? success() : LogicalResult(op.emitError("leaves places between its elements"));
    }
    SmallVector<Value> operands;
    FailureOr<AffineMap> map = tileMap(op, op.getMixedOffsets(), mapping, operands);
    Value tile = mapping.lookupOrNull(op.getSource()), grid = memrefOf(op.getDest());
    if (failed(map))
      return failure();
    if (!tile || !grid || tile.getType() != cast<MemRefType>(grid.getType()).getElementType() || !op.hasUnitStride())
      return op.emitError("stores no tile of its grid");
    affine::AffineStoreOp::create(builder, op.getLoc(), tile, grid, *map, operands);
    places[op.getResult()] = places.lookup(op.getDest());
    return success();
  }

  llvm::DenseMap<std::tuple<Operation *, Value, Type, AffineMap>, Value>
      grids;                 ///< of a nest's buffers, and parts of them
  IRMapping mapping;         ///< of indices, and of what is on tiles
  Operation *nest = nullptr; ///< the outermost loop of the product that is being lowered
  corsair::FunctionChoice functions;
};

struct Bufferize : dmxc::impl::BufferizeBase<Bufferize> {
  void runOnOperation() override {
    if (!getOperation()->hasAttr(kQuadsAttr) || getOperation().isExternal())
      return;
    auto quads = getOperation()->getAttrOfType<IntegerAttr>(kQuadsAttr);
    if (!quads || quads.getInt() < 1 || quads.getInt() > lldmir::machineOf(&getContext()).quadCount()) {
      getOperation().emitError() << "has a '" << kQuadsAttr << "' that is no size of a team";
      return signalPassFailure();
    }
    if (failed(KernelBufferizer(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
