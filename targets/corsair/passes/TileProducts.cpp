//===- TileProducts.cpp - products of a kernel to loops over tiles --------===//
//
//   affine.for quads:                                    where the product is dealt: each has its rows or columns
//     affine.for batch dims:                             of two values, whose matrices are cut out of them
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
#include "Views.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "targets/corsair/decide/Constants.h"
#include "targets/corsair/decide/Spread.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace dmxc {
#define GEN_PASS_DEF_TILEPRODUCTS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

/// As which lldmir.deal a value of a kernel lies in its quads; null where each has all of it.
static Attribute dealOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return cast<func::FuncOp>(argument.getOwner()->getParentOp())
        .getArgAttr(argument.getArgNumber(), lldmir::kDealAttr);
  return value.getDefiningOp()->getAttr(lldmir::kDealAttr);
}

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
    element = elementOf(last->getResult(0));
    // By packed weights the rows of all matrices are those of one.
    const bool flat = isPacked(op.getRhs()) && !rowsLieApart(shape);
    if (failed(readDeal(shape, flat)) || failed(flatten(/*activations=*/flat)))
      return failure();
    Value value = sums ? sumsAlongK() : allMatrices();
    if (flat && shape.size() != 2)
      value = dmir::ReshapeOp::create(builder, loc, RankedTensorType::get(shape, elementOf(value)), value);
    auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    if (deal && !deal.isSums()) // which what is made of the value asks for
      value.getDefiningOp()->setAttr(lldmir::kDealAttr, deal);
    last->getResult(0).replaceAllUsesWith(value);
    // Readers first, and each once: the last may be the product itself.
    llvm::SmallSetVector<Operation *, 3> chain;
    for (Operation *each : {last, bias ? last->getOperand(0).getDefiningOp() : nullptr, op.getOperation()})
      if (each)
        chain.insert(each);
    for (Operation *each : chain)
      if (each->use_empty())
        each->erase();
    return success();
  }

private:
  template <typename OpTy> static OpTy onlyUser(Operation *op) {
    return op->getResult(0).hasOneUse() ? dyn_cast<OpTy>(*op->getResult(0).user_begin()) : OpTy();
  }

  static bool isPacked(Value weights) {
    auto argument = dyn_cast<BlockArgument>(weights);
    auto function = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    return function && corsair::isTiles(function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), kFormAttr));
  }

  /// Whether the rows of a quad's part are not one run of those of the result.
  bool rowsLieApart(ArrayRef<int64_t> shape) {
    auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    return deal && deal.getDim() > 0 && deal.getDim() + 1 < static_cast<int64_t>(shape.size()) &&
           ShapedType::getNumElements(shape.take_front(deal.getDim())) != 1;
  }

  /// What a quad has: of one matrix, or of those of a batch.
  LogicalResult readDeal(ArrayRef<int64_t> shape, bool flat) {
    const auto rank = static_cast<int64_t>(shape.size());
    if (!flat)
      batch.assign(shape.begin(), shape.end() - 2);
    rows = flat ? corsair::packedRows(shape) : shape[rank - 2];
    columns = shape.back(), depth = shapeOf(op.getLhs()).back();
    auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    sums = flat && deal && deal.isSums();
    if (sums && (deal.getQuads() != quads || quads < 2 || depth % quads))
      return op.emitError() << "cannot be dealt by '" << lldmir::kDealAttr << "' " << deal << ": it has " << depth
                            << " along K";
    if (sums)
      depth /= quads;
    if (!deal || deal.getDim() < 0)
      return readKept();
    const int64_t dim = deal.getDim();
    if (dim >= (flat ? rank : rank - 1) || shape[dim] % quads || deal.getQuads() != quads)
      return op.emitError() << "cannot be dealt by '" << lldmir::kDealAttr << "' " << deal << ": it gives "
                            << op.getType() << " to " << quads << " quads";
    dealt = dim + 1 == rank ? columnsDim() : flat ? rowsDim() : dim;
    (dealt == columnsDim() ? columns : dealt == rowsDim() ? rows : batch[dealt]) /= quads;
    return readKept();
  }

  /// What is multiplied of each round of columns, which are those that the weights are packed by.
  LogicalResult readKept() {
    Attribute given = op->getAttr(lldmir::kKeptAttr);
    if (!given)
      return success();
    round =
        plan.getSpread().getGroups() * (plan.getSpread().getShare() == "columns" ? plan.getSpread().getSlices() : 1);
    std::optional<corsair::Rounds> read =
        corsair::readRounds(given, llvm::divideCeil(tilesOf(columns), round), tilesOf(depth));
    if (!read || sums || !isPacked(op.getRhs()))
      return op.emitError() << "cannot be computed by '" << lldmir::kKeptAttr << "' " << given
                            << ": it needs different blocks of K for each round of " << 64 * round
                            << " columns, of a product by packed weights";
    kept = std::move(*read);
    return success();
  }
  int64_t rowsDim() const { return static_cast<int64_t>(batch.size()); }
  int64_t columnsDim() const { return rowsDim() + 1; }

  /// What each quad has of a value by its deal.
  corsair::Split splitOf(Value value) const {
    return corsair::splitOf(dyn_cast_or_null<lldmir::DealAttr>(dealOf(value)), shapeOf(value), quads);
  }

  /// Two dims for the activations, one for the bias.
  LogicalResult flatten(bool activations) {
    lhs = op.getLhs(), rhs = op.getRhs();
    const int64_t depth = shapeOf(lhs).back();
    if (activations && typeOf(lhs).getRank() > 2) {
      auto cast = lhs.getDefiningOp<dmir::CastOp>();
      if (!cast)
        return op.emitError("multiplies block_fp that no cast makes");
      const int64_t all = corsair::packedRows(shapeOf(lhs)); // the rows of the first K - 1 dims
      auto flat = [&](Type element) { return RankedTensorType::get({all, depth}, element); };
      auto values = dmir::ReshapeOp::create(builder, loc, flat(elementOf(cast.getInput())), cast.getInput());
      if (corsair::Split split = splitOf(cast.getInput()))
        if (std::optional<corsair::Split> rows = corsair::viewedSplit(values, split, static_cast<int>(quads)))
          values->setAttr(lldmir::kDealAttr, lldmir::DealAttr::get(builder.getContext(), rows->dim, quads));
      lhs = dmir::CastOp::create(builder, loc, flat(elementOf(lhs)), values);
    }
    if (!bias)
      return success();
    // The packed vector has zeros up to the last tile.
    if (auto cut = bias.getDefiningOp<tensor::ExtractSliceOp>()) {
      if (failed(checkSlice(cut, /*whole=*/true)))
        return failure();
      bias = cut.getSource();
    }
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
    SmallVector<int64_t> sizes(offsets.size() - typeOf(value).getRank(), 1); // a matrix of a batch
    llvm::append_range(sizes, shapeOf(value));
    return tensor::InsertSliceOp::create(builder, loc, value, into, offsets,
                                         getAsIndexOpFoldResult(builder.getContext(), sizes), ones);
  }
  Value undefined(ArrayRef<int64_t> shape) {
    return dmir::UndefOp::create(builder, loc, RankedTensorType::get(shape, element));
  }

  affine::AffineForOp loop(int64_t end, Value carried, llvm::function_ref<Value(Value, Value)> body, int64_t from = 0) {
    return affine::AffineForOp::create(builder, loc, from, end, 1, ValueRange(carried),
                                       [&](OpBuilder &inner, Location, Value counter, ValueRange arguments) {
                                         OpBuilder::InsertionGuard guard(builder);
                                         builder.setInsertionPointToEnd(inner.getInsertionBlock());
                                         Value next = body(counter, arguments[0]);
                                         affine::AffineYieldOp::create(builder, loc, next);
                                       });
  }

  /// Each quad multiplies by its rows of the weights; all send their sums to all, and everybody adds them up.
  Value sumsAlongK() {
    element = builder.getF32Type();
    auto made = loop(quads, undefined({quads, rows, columns}), [&](Value quad, Value carried) {
      Value a = sliced(lhs, {index(0), scaled(quad, depth)}, {rows, depth}),
            b = sliced(rhs, {scaled(quad, depth), index(0)}, {depth, columns});
      return inserted(product(a, b, Value()), carried, {OpFoldResult(quad), index(0), index(0)});
    });
    made->setAttr(kQuadsAttr, builder.getUnitAttr());
    Value parts = made.getResult(0);
    Attribute deal = lldmir::DealAttr::get(builder.getContext(), 0, quads);
    Value whole =
        lldmir::GatherOp::create(builder, loc, parts.getType(), parts, ValueRange(), builder.getArrayAttr(deal))
            .getResult(0);
    auto type = RankedTensorType::get({rows, columns}, builder.getF16Type());
    return lldmir::SumOp::create(builder, loc, type, whole, Value()).getResult();
  }

  Value allMatrices() {
    if (dealt < 0 && batch.empty())
      return matrix({}, Value());
    SmallVector<int64_t> shape(batch);
    shape.append({rows, columns});
    if (dealt >= 0)
      shape[dealt] *= quads;
    Value whole = undefined(shape);
    if (dealt < 0)
      return matrices({}, Value(), whole);
    auto made = loop(quads, whole, [&](Value quad, Value carried) { return matrices({}, quad, carried); });
    made->setAttr(kQuadsAttr, builder.getUnitAttr());
    return made.getResult(0);
  }

  /// Of the batch dims behind those that `counters` are of (null: the dim has one matrix).
  Value matrices(SmallVector<Value> counters, Value quad, Value carried) {
    if (counters.size() == batch.size())
      return inserted(matrix(counters, quad), carried, at(counters, quad, shapeOf(carried), true, true));
    const int64_t extent = batch[counters.size()];
    counters.push_back(Value());
    if (extent == 1)
      return matrices(counters, quad, carried);
    auto made = loop(extent, carried, [&](Value counter, Value inner) {
      counters.back() = counter;
      return matrices(counters, quad, inner);
    });
    made->setAttr(kBatchAttr, builder.getUnitAttr());
    return made.getResult(0);
  }

  /// Where a matrix begins in an operand, or in the result, of this shape, whose rows or columns are the result's.
  SmallVector<OpFoldResult> at(ArrayRef<Value> counters, Value quad, ArrayRef<int64_t> shape, bool byRows,
                               bool byColumns) {
    SmallVector<OpFoldResult> offsets;
    const size_t missing = batch.size() + 2 - shape.size();
    for (size_t dim = 0; dim + 2 < shape.size(); ++dim) {
      const bool own = dealt == static_cast<int64_t>(dim + missing);
      offsets.push_back(shape[dim] == 1 ? index(0)
                                        : sumOf(counters[dim + missing], own ? quad : Value(), batch[dim + missing]));
    }
    offsets.push_back(byRows && dealt == rowsDim() ? scaled(quad, rows) : index(0));
    offsets.push_back(byColumns && dealt == columnsDim() ? scaled(quad, columns) : index(0));
    return offsets;
  }

  /// counter + quad * part; null values are 0.
  OpFoldResult sumOf(Value counter, Value quad, int64_t part) {
    if (!quad)
      return counter ? OpFoldResult(counter) : index(0);
    if (!counter)
      return scaled(quad, part);
    AffineExpr sum = builder.getAffineDimExpr(0) + builder.getAffineDimExpr(1) * part;
    return affine::AffineApplyOp::create(builder, loc, AffineMap::get(2, 0, sum), ValueRange{counter, quad})
        .getResult();
  }

  /// A quad's part of a matrix of the result, or all of it.
  Value matrix(ArrayRef<Value> counters, Value quad) {
    auto cut = [&](Value value, bool byRows, ArrayRef<int64_t> shape) -> Value {
      if (shapeOf(value) == shape)
        return value;
      SmallVector<int64_t> sizes(typeOf(value).getRank() - 2, 1);
      llvm::append_range(sizes, shape);
      SmallVector<OpFoldResult> ones(sizes.size(), index(1));
      auto type = RankedTensorType::get(shape, elementOf(value));
      return tensor::ExtractSliceOp::create(builder, loc, type, value,
                                            at(counters, quad, shapeOf(value), byRows, !byRows),
                                            getAsIndexOpFoldResult(builder.getContext(), sizes), ones)
          .getResult();
    };
    Value a = cut(lhs, true, {rows, depth}), b = cut(rhs, false, {depth, columns});
    return product(a, b, quad);
  }

  Value product(Value a, Value b, Value quad) {
    const int64_t m = tilesOf(rows), n = tilesOf(columns), k = tilesOf(depth);
    a = padded(a, m * 64, k * 64), b = padded(b, k * 64, n * 64);
    if (!kept.empty())
      return sliced(roundsOfColumns(a, b, quad, m, n), {index(0), index(0)}, {rows, columns});
    const bool columnsOutside = corsair::Spread::ofSizes(rows, columns, depth).by(plan).isStationary();
    auto made = loop(columnsOutside ? n : m, undefined({m * 64, n * 64}), [&](Value outer, Value first) {
      auto inside = loop(columnsOutside ? m : n, first, [&](Value inner, Value second) {
        return tile(a, b, quad, columnsOutside ? inner : outer, columnsOutside ? outer : inner, second);
      });
      return inside.getResult(0);
    });
    return sliced(made.getResult(0), {index(0), index(0)}, {rows, columns});
  }

  /// In each row of tiles a loop for all columns whose rounds take the same blocks along K, one after the other: rows
  /// are complete one by one.
  Value roundsOfColumns(Value a, Value b, Value quad, int64_t m, int64_t n) {
    auto rowLoop = loop(m, undefined({m * 64, n * 64}), [&](Value row, Value carried) {
      for (size_t first = 0, end; first < kept.size(); first = end) {
        for (end = first + 1; end < kept.size() && kept[end] == kept[first];)
          ++end;
        blocks = kept[first];
        const int64_t from = static_cast<int64_t>(first) * round, to = std::min(n, static_cast<int64_t>(end) * round);
        auto inside =
            loop(to, carried, [&](Value column, Value inner) { return tile(a, b, quad, row, column, inner); }, from);
        carried = inside.getResult(0);
      }
      return carried;
    });
    return rowLoop.getResult(0);
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
    if (!kept.empty())
      value.getDefiningOp()->setAttr(lldmir::kBlocksAttr, builder.getDenseI64ArrayAttr(blocks));
    if (bias) {
      AffineExpr at = builder.getAffineDimExpr(0) * 64;
      SmallVector<Value> counters{column};
      if (dealt == columnsDim()) {
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
  SmallVector<int64_t> batch; ///< of matrices, of a quad's part
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t dealt = -1; ///< which dim of batch, rows and columns is
  bool sums = false;  ///< K is
  int64_t round = 0;  ///< tiles of columns of each of `kept`
  corsair::Rounds kept;
  SmallVector<int64_t> blocks; ///< of the loops that are being made
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
      if ((isa<tensor::ExtractSliceOp>(op) || isOperandForm(&op)) && op.use_empty())
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
      while (isOperandForm(value.getDefiningOp()))
        value = value.getDefiningOp()->getOperand(0);
      Attribute deal = dealOf(value);
      if (!isa_and_present<lldmir::DealAttr>(deal) || llvm::is_contained(parts, value))
        continue; // whole as it is, or so before
      parts.push_back(value);
      deals.push_back(deal);
    }
    op->removeAttr(lldmir::kGatherAttr);
    if (parts.empty())
      return success();
    auto made = lldmir::GatherOp::create(builder, op->getLoc(), TypeRange(ValueRange(parts)), parts, ValueRange(),
                                         builder.getArrayAttr(deals));
    for (auto [value, whole] : llvm::zip(parts, made.getResults()))
      replaceAfter(made, value, whole);
    return success();
  }

  /// Whether an op only says in which form a product loads a value: a cast to block_fp, a transpose of that.
  static bool isOperandForm(Operation *op) {
    return isa_and_present<dmir::CastOp, dmir::TransposeOp>(op) && dmir::blockFpOf(op->getResult(0).getType());
  }

  static bool isUsedAfter(Operation *made, Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return made->isBeforeInBlock(user) || (isOperandForm(user) && isUsedAfter(made, user));
    });
  }

  /// Later uses of a value, also of the forms of it that were made before.
  void replaceAfter(Operation *made, Value value, Value whole) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *user = use.getOwner();
      // What is returned as shares stays that, whoever else needs all of it: each quad stores its own.
      if (user == made ||
          (isa<func::ReturnOp>(user) && getOperation().getResultAttr(use.getOperandNumber(), lldmir::kDealAttr)))
        continue;
      if (made->isBeforeInBlock(user)) {
        use.set(whole);
      } else if (isOperandForm(user) && isUsedAfter(made, user)) {
        OpBuilder builder(made->getContext());
        builder.setInsertionPointAfterValue(whole);
        Operation *again = builder.clone(*user);
        again->setOperand(0, whole);
        replaceAfter(made, user->getResult(0), again->getResult(0));
      }
    }
  }
};

} // namespace
