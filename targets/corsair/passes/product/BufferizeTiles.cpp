//===- BufferizeTiles.cpp - tensors to memrefs of tiles -------------------===//
#include "../Passes.h"

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dmxc {
#define GEN_PASS_DEF_BUFFERIZETILES
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

namespace {

/// Rebuilds a function's body on memrefs. In loops over tiles, slices become loads of tiles and insertions stores.
class Bufferizer {
public:
  explicit Bufferizer(func::FuncOp function) : function(function), builder(function.getContext()) {}

  LogicalResult run() {
    if (!function.getBody().hasOneBlock())
      return function.emitError("has several blocks; tiles are placed in straight-line code and affine loops");
    Block &old = function.getBody().front();
    FailureOr<SmallVector<Type>> inputs = convert(function.getArgumentTypes()),
                                 results = convert(function.getResultTypes());
    if (failed(inputs) || failed(results))
      return failure();
    auto *fresh = new Block();
    function.getBody().push_back(fresh);
    for (auto [argument, type] : llvm::zip(old.getArguments(), *inputs))
      values.map(argument, fresh->addArgument(type, argument.getLoc()));
    builder.setInsertionPointToEnd(fresh);
    for (Operation &op : old)
      if (failed(convert(op)))
        return failure();
    // Offsets have become indices of tiles.
    SmallVector<affine::AffineApplyOp> offsets;
    fresh->walk([&](affine::AffineApplyOp apply) { offsets.push_back(apply); });
    for (affine::AffineApplyOp apply : llvm::reverse(offsets))
      if (apply.use_empty())
        apply.erase();
    old.dropAllReferences();
    old.dropAllDefinedValueUses();
    old.erase();
    function.setType(FunctionType::get(function.getContext(), *inputs, *results));
    return success();
  }

private:
  FailureOr<SmallVector<Type>> convert(TypeRange types) {
    SmallVector<Type> converted;
    for (Type type : types) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (tensor && (!tensor.hasStaticShape() || tensor.getNumElements() == 0 || tensor.getEncoding()))
        return function.emitError() << "tiles need static shapes with elements and no layout, not " << type;
      converted.push_back(tensor ? Type(affine_ext::tiledMemRef(tensor)) : type);
    }
    return converted;
  }

  LogicalResult convert(Operation &op) {
    if (failed(convert(op.getResultTypes())) || failed(convert(op.getOperandTypes())))
      return failure();
    return TypeSwitch<Operation *, LogicalResult>(&op)
        .Case<dmir::ConstantOp, dmir::UndefOp, dmir::PadBlocksOp, dmir::MatMulOp, affine::AffineForOp,
              affine::AffineYieldOp, tensor::ExtractSliceOp, tensor::InsertSliceOp>(
            [&](auto typed) { return lower(typed); })
        .Case<affine::AffineApplyOp, func::ReturnOp>([&](Operation *same) {
          builder.clone(*same, values);
          return success();
        })
        .Default([&](Operation *other) { return lowerUnit(other); });
  }

  LogicalResult lower(dmir::ConstantOp op) {
    values.map(op.getResult(), affine_ext::ConstantOp::create(builder, op.getLoc(),
                                                              affine_ext::tiledMemRef(op.getType()), op.getValue()));
    return success();
  }

  LogicalResult lower(dmir::UndefOp op) {
    values.map(op.getResult(), allocate(op.getLoc(), op.getType()));
    return success();
  }

  Value allocate(Location loc, Type tensor) {
    return memref::AllocOp::create(builder, loc, affine_ext::tiledMemRef(cast<RankedTensorType>(tensor)));
  }

  /// Within whole tiles the padding is there already.
  LogicalResult lower(dmir::PadBlocksOp op) {
    Value input = values.lookup(op.getInput());
    if (input.getType() != affine_ext::tiledMemRef(typeOf(op.getResult())))
      return lowerUnit(op);
    values.map(op.getResult(), input);
    return success();
  }

  //===--- loops -------------------------------------------------------------------===//

  /// A tensor that a loop carries is written in place.
  LogicalResult lower(affine::AffineForOp op) {
    auto loop = affine::AffineForOp::create(builder, op.getLoc(), op.getLowerBoundOperands(), op.getLowerBoundMap(),
                                            op.getUpperBoundOperands(), op.getUpperBoundMap(), op.getStepAsInt());
    for (auto [index, operand] : llvm::enumerate(loop.getControlOperands()))
      loop->setOperand(index, values.lookup(operand));
    values.map(op.getInductionVar(), loop.getInductionVar());
    for (auto [carried, init, result] : llvm::zip(op.getRegionIterArgs(), op.getInits(), op.getResults())) {
      auto argument = dyn_cast<BlockArgument>(init);
      bool carriedOn = argument && isa<affine::AffineForOp>(argument.getOwner()->getParentOp());
      if (!init.hasOneUse() || (!carriedOn && !init.getDefiningOp<dmir::UndefOp>()))
        return op.emitError("carries a tensor that others may read; only a dmir.undef of its own is written in place");
      values.map(carried, values.lookup(init));
      values.map(result, values.lookup(init));
    }
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    for (Operation &inner : *op.getBody())
      if (failed(convert(inner)))
        return failure();
    auto yield = cast<affine::AffineYieldOp>(op.getBody()->getTerminator());
    for (auto [carried, yielded] : llvm::zip(op.getRegionIterArgs(), yield.getOperands()))
      if (values.lookup(carried) != values.lookup(yielded))
        return op.emitError("yields another tensor than the one it carries with tiles inserted");
    return success();
  }

  /// The carried tensor was stored to; the loop yields nothing.
  LogicalResult lower(affine::AffineYieldOp) { return success(); }

  /// The index of the tile that starts at an offset: offset / extent, or nullopt where it lies inside a tile.
  std::optional<AffineExpr> tileIndex(OpFoldResult offset, int64_t extent, SmallVectorImpl<Value> &operands) {
    if (std::optional<int64_t> constant = getConstantIntValue(offset))
      return *constant % extent ? std::nullopt : std::optional(builder.getAffineConstantExpr(*constant / extent));
    Value value = cast<Value>(offset);
    AffineExpr expression = builder.getAffineDimExpr(operands.size());
    auto apply = value.getDefiningOp<affine::AffineApplyOp>();
    if (apply && apply.getAffineMap().getNumDims() == 1 && apply.getAffineMap().getNumSymbols() == 0) {
      expression = apply.getAffineMap().getResult(0).shiftDims(1, operands.size());
      value = apply.getMapOperands()[0];
    }
    if (extent > 1 && !expression.isMultipleOf(extent))
      return std::nullopt;
    operands.push_back(values.lookup(value));
    return extent > 1 ? expression.floorDiv(extent) : expression;
  }

  /// Where the tiles of a slice lie: the affine index of the first, and how many along each dimension.
  struct Window {
    AffineMap map;
    SmallVector<Value> operands;
    SmallVector<int64_t> counts;
  };
  FailureOr<Window> windowOf(OffsetSizeAndStrideOpInterface op, RankedTensorType whole) {
    Window window;
    VecExtType tile = affine_ext::tileOf(whole);
    int64_t lead = whole.getRank() - tile.getRank();
    SmallVector<AffineExpr> indices;
    for (int64_t i = 0; i < whole.getRank(); ++i) {
      int64_t extent = i < lead ? 1 : tile.getShape()[i - lead];
      std::optional<AffineExpr> index = tileIndex(op.getMixedOffsets()[i], extent, window.operands);
      std::optional<int64_t> size = getConstantIntValue(op.getMixedSizes()[i]);
      bool whole1 = size && (*size % extent == 0 || *size == whole.getDimSize(i));
      if (!index || !whole1 || getConstantIntValue(op.getMixedStrides()[i]) != 1)
        return op->emitOpError("does not cut ") << whole << " at whole tiles in dimension " << i;
      indices.push_back(*index);
      window.counts.push_back((*size + extent - 1) / extent);
    }
    window.map = AffineMap::get(window.operands.size(), 0, indices, builder.getContext());
    return window;
  }

  LogicalResult lower(tensor::ExtractSliceOp op) {
    auto offsets = op.getMixedOffsets();
    bool fromStart = llvm::all_of(offsets, [](OpFoldResult offset) { return isConstantIntValue(offset, 0); });
    Value source = values.lookup(op.getSource());
    // A ragged result cut out of its whole tiles is those tiles.
    if (fromStart && source.getType() == affine_ext::tiledMemRef(op.getType())) {
      values.map(op.getResult(), source);
      return success();
    }
    FailureOr<Window> window = windowOf(op, op.getSourceType());
    if (failed(window))
      return failure();
    Type tile = cast<MemRefType>(source.getType()).getElementType();
    if (llvm::all_of(window->counts, [](int64_t count) { return count == 1; })) {
      values.map(op.getResult(),
                 affine::AffineLoadOp::create(builder, op.getLoc(), source, window->map, window->operands).getResult());
      return success();
    }
    auto type = VecExtType::get(op.getContext(), window->counts, tile);
    values.map(op.getResult(), affine_ext::LoadOp::create(builder, op.getLoc(), type, source, window->operands,
                                                          AffineMapAttr::get(window->map)));
    return success();
  }

  /// Insertion writes in place, so that the tensor inserted into must be nobody else's: one that a loop carries, or
  /// that began as dmir.undef.
  static bool mayWriteTo(Value target) {
    auto argument = dyn_cast<BlockArgument>(target);
    bool fresh = argument ? isa<affine::AffineForOp>(argument.getOwner()->getParentOp())
                          : isa<dmir::UndefOp, tensor::InsertSliceOp, affine::AffineForOp>(target.getDefiningOp());
    return fresh && target.hasOneUse();
  }

  LogicalResult lower(tensor::InsertSliceOp op) {
    if (!mayWriteTo(op.getDest()))
      return op.emitOpError("inserts into a tensor that others may read; tiles are written in place");
    FailureOr<Window> window = windowOf(op, op.getDestType());
    if (failed(window))
      return failure();
    Value tile = values.lookup(op.getSource()), target = values.lookup(op.getDest());
    if (tile.getType() != cast<MemRefType>(target.getType()).getElementType())
      return op.emitOpError("inserts more than one tile, which no store does");
    affine::AffineStoreOp::create(builder, op.getLoc(), tile, target, window->map, window->operands);
    values.map(op.getResult(), target);
    return success();
  }

  //===--- tiles -------------------------------------------------------------------===//

  /// A tile, or the whole of a memref of tiles, as a 2-D array of tiles.
  Value nested(Value value, Location loc) {
    if (auto memref = dyn_cast<MemRefType>(value.getType())) {
      auto zeros = AffineMap::get(0, 0, SmallVector<AffineExpr>(memref.getRank(), builder.getAffineConstantExpr(0)),
                                  builder.getContext());
      auto type = VecExtType::get(builder.getContext(), memref.getShape(), memref.getElementType());
      return affine_ext::LoadOp::create(builder, loc, type, value, ValueRange(), AffineMapAttr::get(zeros));
    }
    return value;
  }

  LogicalResult lower(dmir::MatMulOp op) {
    // One tile along k was loaded as a tile; the product takes arrays.
    Value lhs = nested(reload(op.getLhs()), op.getLoc()), rhs = nested(reload(op.getRhs()), op.getLoc());
    auto isArray = [](Value value) {
      auto type = dyn_cast<VecExtType>(value.getType());
      return type && type.isNested();
    };
    if (!dmir::blockFpOf(op.getLhs().getType()) || !isArray(lhs) || !isArray(rhs))
      return op.emitError("is no product of tiles of block_fp: run corsair-tile-matmul before");
    auto tile = VecExtType::get(op.getContext(), {64, 64}, dmir::BlockFpType::getBfp32(op.getContext()));
    if (shapeOf(op.getResult()) != tile.getShape() || !dmir::isBfp32(elementOf(op.getResult())))
      return op.emitError("is not the product of one tile in BFP32_1: run corsair-tile-matmul before");
    IntegerAttr rows = op->getAttrOfType<IntegerAttr>(dmir::kRowsAttr);
    auto product = affine_ext::MatMulOp::create(builder, op.getLoc(), tile, lhs, rhs, rows);
    if (Attribute tiles = op->getAttr(dmir::kTreeTilesAttr))
      product->setAttr(dmir::kTreeTilesAttr, tiles);
    values.map(op.getResult(), product);
    return success();
  }

  /// An operand that affine.load brought as a single tile, loaded as an array of 1x1 tiles.
  Value reload(Value operand) {
    Value value = values.lookup(operand);
    auto load = value.getDefiningOp<affine::AffineLoadOp>();
    if (!load)
      return value;
    auto memref = load.getMemRefType();
    auto type =
        VecExtType::get(builder.getContext(), SmallVector<int64_t>(memref.getRank(), 1), memref.getElementType());
    auto array = affine_ext::LoadOp::create(builder, load.getLoc(), type, load.getMemRef(), load.getMapOperands(),
                                            AffineMapAttr::get(load.getAffineMap()));
    if (value.use_empty())
      load.erase();
    values.map(operand, array.getResult());
    return array;
  }

  /// An op of DMIR as a function of the SIMD unit or the reshape engine: of tiles in a loop, else of memrefs.
  LogicalResult lowerUnit(Operation *op) {
    if (op->getName().getDialectNamespace() != "dmir" || isa<dmir::RegionOp>(op) || op->getNumRegions())
      return op->emitError("'") << op->getName() << "' has no form on tiles";
    SmallVector<Value> inputs;
    for (Value operand : op->getOperands())
      inputs.push_back(values.lookup(operand));
    Location loc = op->getLoc();
    if (isa<dmir::CastOp>(op) && isa<VecExtType>(inputs[0].getType())) {
      auto from = cast<VecExtType>(inputs[0].getType());
      auto to = VecExtType::get(op->getContext(), from.getShape(), elementOf(op->getResult(0)));
      values.map(op->getResult(0), affine_ext::CastOp::create(builder, loc, to, inputs[0]));
      return success();
    }
    StringRef name = op->getName().stripDialect();
    if (llvm::any_of(inputs, [](Value input) { return isa<VecExtType>(input.getType()); })) {
      SmallVector<Type> results;
      for (Value result : op->getResults())
        results.push_back(VecExtType::get(op->getContext(), shapeOf(result), elementOf(result)));
      auto simd = lldmir::SimdOp::create(builder, loc, results, name, inputs, ValueRange(), parametersOf(op));
      values.map(op->getResults(), simd.getResults());
      return success();
    }
    SmallVector<Value> outs;
    for (Value result : op->getResults())
      outs.push_back(allocate(loc, result.getType()));
    values.map(op->getResults(), outs);
    // Between R and C a transpose is another name for the same bytes.
    if (isa<dmir::TransposeOp>(op) && dmir::blockFpOf(op->getResult(0).getType()))
      name = "retype";
    if (op->hasTrait<dmir::DataMovement>())
      lldmir::ReshapeOp::create(builder, loc, TypeRange(), name, inputs, outs, parametersOf(op));
    else
      lldmir::SimdOp::create(builder, loc, TypeRange(), name, inputs, outs, parametersOf(op));
    return success();
  }

  /// The op's attributes, and the types of its tensors, which tiles no longer say.
  DictionaryAttr parametersOf(Operation *op) {
    NamedAttrList attributes(op->getAttrDictionary());
    SmallVector<Attribute> types;
    for (Type type : op->getOperandTypes())
      types.push_back(TypeAttr::get(type));
    for (Type type : op->getResultTypes())
      types.push_back(TypeAttr::get(type));
    attributes.set("types", builder.getArrayAttr(types));
    return attributes.getDictionary(op->getContext());
  }

  func::FuncOp function;
  OpBuilder builder;
  IRMapping values;
};

struct BufferizeTiles : dmxc::impl::BufferizeTilesBase<BufferizeTiles> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    if (failed(Bufferizer(getOperation()).run()))
      signalPassFailure();
  }
};

} // namespace
