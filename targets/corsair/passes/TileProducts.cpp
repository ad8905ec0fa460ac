//===- TileProducts.cpp - products of a kernel to loops over tiles --------===//
//
//   affine.for quads:                                    where the product is dealt: each has its rows or columns
//     affine.for rows, affine.for columns:               or columns outside, where weights stay while rows pass
//       64 x K of the activations (R) by K x 64 of the weights (C), BFP32_1; + bias; cast; into the part of the result
//
// Ragged operands are continued with zeros to whole tiles, which moves nothing, and a part is cut to its size. What an
// op needs as a whole is gathered before it.
//
//===----------------------------------------------------------------------===//
#include "KernelFunctions.h"
#include "Passes.h"
#include "TileGrids.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/emit/MatmulPlan.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace dmxc {
#define GEN_PASS_DEF_TILEPRODUCTS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// One product of a kernel, with the bias and the cast that follow it.
class ProductTiler {
public:
  ProductTiler(dmir::MatMulOp op, int64_t quads) : op(op), quads(quads), loc(op.getLoc()), builder(op), last(op) {}

  LogicalResult run() {
    plan = op->getAttrOfType<lldmir::PlanAttr>(lldmir::kPlanAttr);
    if (!plan)
      return op.emitError() << "has no '" << lldmir::kPlanAttr << "'";
    if (auto add = onlyUser<dmir::AddOp>(op); add && add->hasAttr(lldmir::kBiasAttr)) {
      bias = add.getLhs() == op.getResult() ? add.getRhs() : add.getLhs();
      last = add;
    }
    if (auto cast = onlyUser<dmir::CastOp>(last); cast && dmir::isBfp32(elementOf(cast.getInput())))
      last = cast;
    builder.setInsertionPoint(last);
    ArrayRef<int64_t> shape = shapeOf(op.getResult());
    rows = corsair::packedRows(shape), columns = shape.back(), depth = shapeOf(op.getLhs()).back();
    if (failed(readDeal(shape)) || failed(flatten()))
      return failure();
    element = elementOf(last->getResult(0));
    Value value = part == Part::All ? onePart(Value()) : allParts();
    if (shape.size() != 2)
      value = dmir::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, element), value);
    if (Attribute deal = op->getAttr(lldmir::kDealAttr)) // which what is made of the value asks for
      value.getDefiningOp()->setAttr(lldmir::kDealAttr, deal);
    last->getResult(0).replaceAllUsesWith(value);
    Operation *chain[] = {last, bias ? last->getOperand(0).getDefiningOp() : nullptr, op};
    SmallPtrSet<Operation *, 3> erased;
    for (Operation *dead : {chain[0], chain[1], chain[2]})
      if (dead && dead->use_empty() && erased.insert(dead).second)
        dead->erase();
    return success();
  }

private:
  enum class Part { All, Rows, Columns };

  template <typename OpTy> static OpTy onlyUser(Operation *op) {
    return op->getResult(0).hasOneUse() ? dyn_cast<OpTy>(*op->getResult(0).user_begin()) : OpTy();
  }

  LogicalResult readDeal(ArrayRef<int64_t> shape) {
    auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    if (!deal || deal.getDim() < 0)
      return success();
    const auto rank = static_cast<int64_t>(shape.size());
    if (deal.getDim() >= rank || shape[deal.getDim()] % quads || deal.getQuads() != quads)
      return op.emitError() << "cannot be dealt by '" << lldmir::kDealAttr << "' " << deal << ": it gives "
                            << op.getType() << " to " << quads << " quads";
    part = deal.getDim() + 1 == rank ? Part::Columns : Part::Rows;
    (part == Part::Columns ? columns : rows) /= quads;
    return success();
  }

  /// Two dims for the activations, one for the bias.
  LogicalResult flatten() {
    lhs = op.getLhs(), rhs = op.getRhs();
    if (typeOf(lhs).getRank() > 2) {
      auto cast = lhs.getDefiningOp<dmir::CastOp>();
      if (!cast)
        return op.emitError("multiplies block_fp that no cast makes");
      const int64_t all = corsair::packedRows(shapeOf(lhs)); // the rows of the first K - 1 dims
      auto flat = [&](Type element) { return RankedTensorType::get({all, depth}, element); };
      Value values = dmir::ReshapeOp::create(builder, loc, flat(elementOf(cast.getInput())), cast.getInput());
      lhs = dmir::CastOp::create(builder, loc, flat(elementOf(lhs)), values);
    }
    if (!bias)
      return success();
    // The packed vector has zeros up to the last tile.
    if (auto cut = bias.getDefiningOp<tensor::ExtractSliceOp>())
      bias = cut.getSource();
    if (typeOf(bias).getRank() != 1)
      return op.emitError("adds a bias that is no packed vector");
    return success();
  }

  OpFoldResult index(int64_t value) { return builder.getIndexAttr(value); }
  OpFoldResult scaled(Value counter, int64_t by) {
    if (!counter)
      return index(0);
    return affine::AffineApplyOp::create(builder, loc, AffineMap::get(1, 0, builder.getAffineDimExpr(0) * by), counter)
        .getResult();
  }
  Value sliced(Value value, ArrayRef<OpFoldResult> offsets, ArrayRef<int64_t> sizes) {
    if (shapeOf(value) == sizes)
      return value;
    SmallVector<OpFoldResult> ones(sizes.size(), index(1));
    auto type = RankedTensorType::get(sizes, elementOf(value));
    return tensor::ExtractSliceOp::create(builder, loc, type, value, offsets,
                                          getAsIndexOpFoldResult(builder.getContext(), sizes), ones);
  }
  /// 64 numbers of the packed vector.
  Value biasAt(OpFoldResult first) {
    auto type = RankedTensorType::get({64}, elementOf(bias));
    return tensor::ExtractSliceOp::create(builder, loc, type, bias, ArrayRef<OpFoldResult>{first},
                                          ArrayRef<OpFoldResult>{index(64)}, ArrayRef<OpFoldResult>{index(1)});
  }
  Value inserted(Value value, Value into, ArrayRef<OpFoldResult> offsets) {
    SmallVector<OpFoldResult> ones(offsets.size(), index(1));
    return tensor::InsertSliceOp::create(builder, loc, value, into, offsets,
                                         getAsIndexOpFoldResult(builder.getContext(), shapeOf(value)), ones);
  }
  Value undefined(ArrayRef<int64_t> shape) {
    return dmir::UndefOp::create(builder, loc, RankedTensorType::get(shape, element));
  }

  affine::AffineForOp loop(int64_t trips, Value carried, llvm::function_ref<Value(Value, Value)> body) {
    return affine::AffineForOp::create(builder, loc, 0, trips, 1, ValueRange(carried),
                                       [&](OpBuilder &inner, Location, Value counter, ValueRange arguments) {
                                         OpBuilder::InsertionGuard guard(builder);
                                         builder.setInsertionPointToEnd(inner.getInsertionBlock());
                                         Value next = body(counter, arguments[0]);
                                         affine::AffineYieldOp::create(builder, loc, next);
                                       });
  }

  Value allParts() {
    const bool byRows = part == Part::Rows;
    Value whole = undefined({byRows ? rows * quads : rows, byRows ? columns : columns * quads});
    auto made = loop(quads, whole, [&](Value quad, Value carried) {
      Value value = onePart(quad);
      OpFoldResult at = scaled(quad, byRows ? rows : columns);
      return inserted(value, carried, {byRows ? at : index(0), byRows ? index(0) : at});
    });
    made->setAttr(kQuadsAttr, builder.getUnitAttr());
    return made.getResult(0);
  }

  /// A quad's part of the result, or all of it.
  Value onePart(Value quad) {
    Value a = lhs, b = rhs;
    if (part == Part::Rows)
      a = sliced(a, {scaled(quad, rows), index(0)}, {rows, depth});
    if (part == Part::Columns)
      b = sliced(b, {index(0), scaled(quad, columns)}, {depth, columns});
    const int64_t m = tilesOf(rows), n = tilesOf(columns), k = tilesOf(depth);
    a = padded(a, m * 64, k * 64), b = padded(b, k * 64, n * 64);
    const bool columnsOutside =
        corsair::MatmulPlan::passesRows(plan.getNumImc(), k, rows, plan.getShare() == "rows" ? plan.getSlices() : 1);
    auto made = loop(columnsOutside ? n : m, undefined({m * 64, n * 64}), [&](Value outer, Value first) {
      auto inside = loop(columnsOutside ? m : n, first, [&](Value inner, Value second) {
        return tile(a, b, quad, columnsOutside ? inner : outer, columnsOutside ? outer : inner, second);
      });
      return inside.getResult(0);
    });
    return sliced(made.getResult(0), {index(0), index(0)}, {rows, columns});
  }

  Value padded(Value value, int64_t first, int64_t second) {
    auto whole = RankedTensorType::get({first, second}, elementOf(value));
    return whole == value.getType() ? value : Value(dmir::PadBlocksOp::create(builder, loc, whole, value));
  }

  Value tile(Value a, Value b, Value quad, Value row, Value column, Value carried) {
    OpFoldResult down = scaled(row, 64), right = scaled(column, 64);
    Value left = sliced(a, {down, index(0)}, {64, shapeOf(a)[1]});
    Value weights = sliced(b, {index(0), right}, {shapeOf(b)[0], 64});
    auto type = [&](Type of) { return RankedTensorType::get({64, 64}, of); };
    Type sums = dmir::BlockFpType::getBfp32(builder.getContext());
    Value value = dmir::MatMulOp::create(builder, loc, type(sums), left, weights);
    value.getDefiningOp()->setAttr(lldmir::kPlanAttr, plan);
    if (bias) {
      AffineExpr at = builder.getAffineDimExpr(0) * 64;
      SmallVector<Value> counters{column};
      if (part == Part::Columns) {
        at = at + builder.getAffineDimExpr(1) * columns;
        counters.push_back(quad);
      }
      OpFoldResult first =
          affine::AffineApplyOp::create(builder, loc, AffineMap::get(counters.size(), 0, at), counters).getResult();
      value = dmir::AddOp::create(builder, loc, type(sums), value, biasAt(first));
    }
    if (element != sums)
      value = dmir::CastOp::create(builder, loc, type(element), value);
    return inserted(value, carried, {down, right});
  }

  dmir::MatMulOp op;
  const int64_t quads;
  Location loc;
  OpBuilder builder;
  Operation *last; ///< of product, addition and cast
  lldmir::PlanAttr plan;
  Part part = Part::All;
  int64_t rows = 0, columns = 0, depth = 0; ///< of a quad's part
  Value lhs, rhs, bias;
  Type element;
};

struct TileProducts : dmxc::impl::TileProductsBase<TileProducts> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto quads = function->getAttrOfType<IntegerAttr>(kQuadsAttr);
    if (!quads || function.isExternal())
      return;
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      if (op.hasAttr(lldmir::kGatherAttr) && failed(gather(&op)))
        return signalPassFailure();
    SmallVector<dmir::MatMulOp> products;
    for (auto op : function.getOps<dmir::MatMulOp>())
      products.push_back(op);
    for (dmir::MatMulOp op : products)
      if (failed(ProductTiler(op, quads.getInt()).run()))
        return signalPassFailure();
    // Casts of operands whose products cast themselves.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isa<dmir::CastOp, tensor::ExtractSliceOp>(op) && op.use_empty())
        op.erase();
  }

  /// All parts of operands to all quads before an op; what comes after it has them too.
  LogicalResult gather(Operation *op) {
    auto numbers = op->getAttrOfType<DenseI64ArrayAttr>(lldmir::kGatherAttr);
    OpBuilder builder(op);
    SmallVector<Value> parts;
    SmallVector<Attribute> deals;
    for (int64_t number : numbers ? numbers.asArrayRef() : ArrayRef<int64_t>()) {
      if (number < 0 || number >= static_cast<int64_t>(op->getNumOperands()))
        return op->emitError() << "has no operand " << number << " to gather";
      Value value = op->getOperand(number);
      if (auto cast = value.getDefiningOp<dmir::CastOp>(); cast && dmir::blockFpOf(value.getType()))
        value = cast.getInput();
      Attribute deal = dealOf(value);
      if (!isa_and_present<lldmir::DealAttr>(deal))
        return op->emitError() << "gathers operand " << number << ", of which no quad has a part";
      parts.push_back(value);
      deals.push_back(deal);
    }
    op->removeAttr(lldmir::kGatherAttr);
    auto made = lldmir::GatherOp::create(builder, op->getLoc(), TypeRange(ValueRange(parts)), parts,
                                         builder.getArrayAttr(deals));
    for (auto [value, whole] : llvm::zip(parts, made.getResults()))
      if (failed(replaceAfter(made, value, whole)))
        return failure();
    return success();
  }

  Attribute dealOf(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return getOperation().getArgAttr(argument.getArgNumber(), lldmir::kDealAttr);
    return value.getDefiningOp()->getAttr(lldmir::kDealAttr);
  }

  /// Later uses of a value, also those by a cast before that is used later.
  LogicalResult replaceAfter(lldmir::GatherOp made, Value value, Value whole) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      if (user == made)
        continue;
      if (made->isBeforeInBlock(user)) {
        use.set(whole);
        continue;
      }
      auto cast = dyn_cast<dmir::CastOp>(user);
      if (!cast || !dmir::blockFpOf(cast.getType()))
        continue;
      Value again;
      for (OpOperand &later : llvm::make_early_inc_range(cast->getUses()))
        if (made->isBeforeInBlock(later.getOwner())) {
          if (!again) {
            OpBuilder builder(made->getContext());
            builder.setInsertionPointAfter(made);
            again = dmir::CastOp::create(builder, cast.getLoc(), cast.getType(), whole);
          }
          later.set(again);
        }
    }
    return success();
  }
};

} // namespace
