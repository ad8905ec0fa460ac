//===- TileMatmul.cpp - products of tensors to loops over tiles -----------===//
//
//   affine.for rows, affine.for columns:
//     64 x K of the activations (R) by K x 64 of the weights (C), BFP32_1; + bias; cast; into the result
//
// Ragged operands are continued with zeros to whole tiles, which moves nothing (dmir.pad_blocks), and the result is cut
// to its size. A bias and a cast that only read the product are computed on its tiles.
//
//===----------------------------------------------------------------------===//
#include "../Passes.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace dmxc {
#define GEN_PASS_DEF_TILEMATMUL
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

int64_t roundUp(int64_t size, int64_t tile) { return (size + tile - 1) / tile * tile; }

/// What follows a product and is computed with it: product [+ bias] [-> cast].
struct Epilogue {
  dmir::AddOp add;
  Value bias; ///< N elements of BFP32_1, added to every row
  dmir::CastOp cast;
};

Operation *onlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

Epilogue epilogueOf(dmir::MatMulOp product) {
  Epilogue epilogue;
  Value value = product.getResult();
  int64_t columns = shapeOf(value).back();
  if (auto add = dyn_cast_or_null<dmir::AddOp>(onlyUser(value)); add && dmir::isBfp32(elementOf(value))) {
    Value other = add.getLhs() == value ? add.getRhs() : add.getLhs();
    // A vector of whole tiles: what is ragged would have to be padded for nothing.
    if (typeOf(other).getRank() == 1 && typeOf(other).getDimSize(0) == columns && columns % 64 == 0 &&
        add.getType() == value.getType() && other.getParentBlock() == product->getBlock()) {
      epilogue.add = add;
      epilogue.bias = other;
      value = add.getResult();
    }
  }
  if (auto cast = dyn_cast_or_null<dmir::CastOp>(onlyUser(value)))
    epilogue.cast = cast;
  return epilogue;
}

class Tiler {
public:
  explicit Tiler(dmir::MatMulOp op) : op(op), epilogue(epilogueOf(op)), builder(op), loc(op.getLoc()) {}

  LogicalResult run() {
    RankedTensorType result = typeOf(op.getResult());
    for (Value value : op->getOperands())
      if (!typeOf(value).hasStaticShape() || typeOf(value).getNumElements() == 0)
        return op.emitError() << "a product of " << value.getType() << " has no tiles: its shape must be static, with "
                              << "elements";
    Operation *last = op;
    if (epilogue.add)
      last = epilogue.add;
    if (epilogue.cast)
      last = epilogue.cast;
    builder.setInsertionPoint(last);
    lhs = padded(op.getLhs());
    rhs = padded(op.getRhs());
    SmallVector<int64_t> shape(result.getShape());
    shape[shape.size() - 2] = shapeOf(lhs)[typeOf(lhs).getRank() - 2];
    shape.back() = shapeOf(rhs).back();
    auto whole = RankedTensorType::get(shape, elementOf(last->getResult(0)));
    SmallVector<int64_t> trips(shape);
    trips[trips.size() - 2] /= 64;
    trips.back() /= 64;
    SmallVector<Value> indices;
    Value tiled = buildLoops(trips, dmir::UndefOp::create(builder, loc, whole), indices);
    last->getResult(0).replaceAllUsesWith(cut(tiled, result.getShape()));
    if (epilogue.cast)
      epilogue.cast.erase();
    if (epilogue.add)
      epilogue.add.erase();
    op.erase();
    return success();
  }

private:
  /// The operand continued to whole tiles in its last two dimensions.
  Value padded(Value value) {
    RankedTensorType type = typeOf(value);
    ArrayRef<int64_t> tile = affine_ext::tileOf(type).getShape();
    SmallVector<int64_t> shape(type.getShape());
    for (int64_t i = 0; i < 2; ++i)
      shape[shape.size() - 2 + i] = roundUp(shape[shape.size() - 2 + i], tile[i]);
    auto whole = RankedTensorType::get(shape, type.getElementType());
    return whole == type ? value : Value(dmir::PadBlocksOp::create(builder, loc, whole, value));
  }

  Value cut(Value value, ArrayRef<int64_t> shape) {
    if (shapeOf(value) == shape)
      return value;
    SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0)),
        strides(shape.size(), builder.getIndexAttr(1)), sizes = getAsIndexOpFoldResult(builder.getContext(), shape);
    return tensor::ExtractSliceOp::create(builder, loc, value, offsets, sizes, strides);
  }

  Value buildLoops(ArrayRef<int64_t> trips, Value carried, SmallVector<Value> &indices) {
    if (indices.size() == trips.size())
      return buildTile(carried, indices);
    auto loop = affine::AffineForOp::create(builder, loc, 0, trips[indices.size()], 1, ValueRange(carried),
                                            [&](OpBuilder &inner, Location, Value index, ValueRange arguments) {
                                              OpBuilder::InsertionGuard guard(builder);
                                              builder.setInsertionPointToEnd(inner.getInsertionBlock());
                                              indices.push_back(index);
                                              Value next = buildLoops(trips, arguments[0], indices);
                                              affine::AffineYieldOp::create(builder, loc, next);
                                            });
    return loop.getResult(0);
  }

  /// One tile of the result, put into `carried`.
  Value buildTile(Value carried, ArrayRef<Value> indices) {
    OpFoldResult row = offsetOf(indices[indices.size() - 2]), column = offsetOf(indices.back());
    OpFoldResult zero = builder.getIndexAttr(0);
    Value a = slice(lhs, indices, row, zero, 64, shapeOf(lhs).back());
    Value b = slice(rhs, indices, zero, column, shapeOf(rhs)[typeOf(rhs).getRank() - 2], 64);
    auto tileType = [&](Type element) { return RankedTensorType::get({64, 64}, element); };
    auto product =
        dmir::MatMulOp::create(builder, loc, tileType(dmir::BlockFpType::getBfp32(builder.getContext())), a, b);
    if (Attribute tiles = op->getAttr(dmir::kTreeTilesAttr))
      product->setAttr(dmir::kTreeTilesAttr, tiles);
    int64_t rows = shapeOf(op.getResult())[indices.size() - 2];
    if (rows < 64)
      product->setAttr(dmir::kRowsAttr, builder.getI64IntegerAttr(rows));
    Value tile = product.getResult();
    if (epilogue.add) {
      OpFoldResult size = builder.getIndexAttr(64), one = builder.getIndexAttr(1);
      Value bias = tensor::ExtractSliceOp::create(builder, loc, epilogue.bias, column, size, one);
      tile = dmir::AddOp::create(builder, loc, tile, bias);
    }
    Type element = elementOf(carried);
    if (elementOf(tile) != element)
      tile = dmir::CastOp::create(builder, loc, tileType(element), tile);
    SmallVector<OpFoldResult> offsets(indices.begin(), indices.end()), sizes(indices.size(), builder.getIndexAttr(1)),
        strides(sizes);
    offsets[offsets.size() - 2] = row;
    offsets.back() = column;
    sizes[sizes.size() - 2] = sizes.back() = builder.getIndexAttr(64);
    return tensor::InsertSliceOp::create(builder, loc, tile, carried, offsets, sizes, strides);
  }

  /// 64 * index.
  OpFoldResult offsetOf(Value index) {
    AffineExpr d = builder.getAffineDimExpr(0);
    return affine::AffineApplyOp::create(builder, loc, AffineMap::get(1, 0, d * 64), index).getResult();
  }

  /// A matrix out of an operand, whose leading dims may be broadcast.
  Value slice(Value value, ArrayRef<Value> indices, OpFoldResult row, OpFoldResult column, int64_t rows,
              int64_t columns) {
    RankedTensorType type = typeOf(value);
    auto matrix = RankedTensorType::get({rows, columns}, type.getElementType());
    if (type == matrix)
      return value;
    int64_t rank = type.getRank();
    SmallVector<OpFoldResult> offsets, sizes(rank - 2, builder.getIndexAttr(1)), strides(rank, builder.getIndexAttr(1));
    for (int64_t i = 0; i < rank - 2; ++i)
      offsets.push_back(type.getDimSize(i) == 1 ? OpFoldResult(builder.getIndexAttr(0))
                                                : OpFoldResult(indices[indices.size() - rank + i]));
    offsets.append({row, column});
    sizes.append({builder.getIndexAttr(rows), builder.getIndexAttr(columns)});
    return tensor::ExtractSliceOp::create(builder, loc, matrix, value, offsets, sizes, strides);
  }

  dmir::MatMulOp op;
  Epilogue epilogue;
  OpBuilder builder;
  Location loc;
  Value lhs, rhs;
};

struct TileMatmul : dmxc::impl::TileMatmulBase<TileMatmul> {
  void runOnOperation() override {
    SmallVector<dmir::MatMulOp> products;
    getOperation().walk([&](dmir::MatMulOp op) {
      // What lies in a loop is tiled already.
      if (dmir::blockFpOf(op.getLhs().getType()) && !op->getParentOfType<affine::AffineForOp>())
        products.push_back(op);
    });
    for (dmir::MatMulOp op : products)
      if (failed(Tiler(op).run()))
        return signalPassFailure();
  }
};

} // namespace
