//===- BandRows.cpp - scores, softmax and values in one loop over bands ---===//
//
// Of a softmax that partition marked (lldmir.bands) the loops over tiles that make its scores, the ops between, and the
// loops that weigh values by it become the body of one loop, which takes 64 rows at a time:
//
//   affine.for %h {lldmir.batch} { affine.for %band {lldmir.bands} {
//     %scores = memref.alloc : 64 x columns       loops over their tiles, of 64 rows of the queries
//     lldmir.simd ..                              strip to strip; a mask counts rows from the band's first on
//     loops over the tiles of 64 rows of the result
//   } }
//
//===----------------------------------------------------------------------===//
#include "KernelFunctions.h"
#include "Passes.h"
#include "Views.h"
#include "writer/TileLoops.h"

#include "targets/corsair/decide/scores/Bands.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

namespace dmxc {
#define GEN_PASS_DEF_BANDROWS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine::AffineForOp;
using corsair::kBandRows;

namespace {

/// The last loop in a loop; null where there is none.
AffineForOp innerOf(AffineForOp loop) {
  AffineForOp inner;
  for (auto each : loop.getBody()->getOps<AffineForOp>())
    inner = each;
  return inner;
}

/// Loops over a batch, and in the last of them the loops over the tiles of one product.
struct BatchedLoops {
  SmallVector<AffineForOp> batch;
  TileLoops loops;
  AffineForOp tiles; ///< the outermost of them

  LogicalResult read(AffineForOp root) {
    AffineForOp loop = root;
    while (loop && loop->hasAttr(kBatchAttr)) {
      batch.push_back(loop);
      loop = innerOf(loop);
    }
    tiles = loop;
    if (!loop)
      return root.emitError("has no product whose rows could be computed band by band");
    if (!loops.follow(loop))
      return loops.at->emitError() << loops.problem;
    if (!loops.epilogues.empty())
      return loops.epilogues.front().back().op->emitError(
          "is computed of the tiles of a product whose rows come band by band");
    const auto grid = cast<MemRefType>(loops.out.getType());
    if (loops.terms.size() != 1 || !loops.isInOrder() ||
        static_cast<int64_t>(loops.tiles.size()) != grid.getNumElements())
      return root.emitError("is no product whose rows could be computed band by band: its tiles are sums of different "
                            "terms, or not all of its result's");
    return success();
  }
  Operation *root() { return batch.empty() ? tiles.getOperation() : batch.front().getOperation(); }
};

class Bander {
public:
  explicit Bander(lldmir::SimdOp softmax) : softmax(softmax), builder(softmax) {}

  LogicalResult run() {
    if (failed(find()))
      return failure();
    if (folded && rows % (2 * kBandRows))
      return softmax.emitError() << "has bands of two halves, but " << rows << " rows";
    for (bool lower : {false, true})
      if (!lower || folded)
        loops(lower);
    erase();
    return success();
  }

private:
  Location loc() { return softmax.getLoc(); }
  MemRefType typeOf(Value value) { return cast<MemRefType>(value.getType()); }

  /// The loops over the bands; of folded rows over those of one half.
  void loops(bool ofLowerHalf) {
    builder.setInsertionPoint(weighted.root());
    batch.clear(), strips.clear();
    lower = ofLowerHalf, row = Value();
    for (AffineForOp loop : scores.batch) {
      auto made = AffineForOp::create(builder, loc(), 0, loop.getConstantUpperBound());
      made->setAttr(kBatchAttr, builder.getUnitAttr());
      batch.push_back(made.getInductionVar());
      builder.setInsertionPointToStart(made.getBody());
    }
    auto bands = AffineForOp::create(builder, loc(), 0, (folded ? rows / 2 : rows) / kBandRows);
    bands->setAttr(lldmir::kBandsAttr, builder.getUnitAttr());
    band = bands.getInductionVar();
    builder.setInsertionPointToStart(bands.getBody());
    product(scores, Value(), stripFor(scoresBuffer));
    for (lldmir::SimdOp unit : units)
      vectorOp(unit);
    product(weighted, strips.lookup(softmax.getOuts()[0]), Value());
  }

  //--- what belongs together
  /// The op of the kernel's body that writes a buffer.
  Operation *writerOf(Value buffer) {
    for (Operation *user : buffer.getUsers()) {
      if (auto simd = dyn_cast<lldmir::SimdOp>(user)) {
        if (llvm::is_contained(simd.getOuts(), buffer))
          return simd;
      } else if (Operation *writer = storeInto(user)) {
        return topOf(writer);
      }
    }
    return nullptr;
  }
  /// What stores tiles into a view.
  static Operation *storeInto(Operation *view) {
    if (isa<affine::AffineStoreOp>(view))
      return view;
    if (!isBufferView(view) && !isa<affine_ext::TilesOp>(view))
      return nullptr;
    for (Operation *user : view->getUsers())
      if (Operation *store = storeInto(user))
        return store;
    return nullptr;
  }

  LogicalResult find() {
    if (softmax.getInputs().size() != 1 || softmax.getOuts().size() != 1)
      return softmax.emitError("has bands, but is of no one buffer");
    const MemRefType type = typeOf(softmax.getInputs()[0]);
    if (type.getRank() < 2)
      return softmax.emitError("has bands, but no rows");
    rows = type.getDimSize(type.getRank() - 2), columns = type.getShape().back();
    folded = softmax.getBound(lldmir::kFolded);
    if (rows % kBandRows)
      return softmax.emitError() << "has bands of " << kBandRows << " rows, but " << rows << " rows";
    units = {softmax};
    for (Value value = softmax.getInputs()[0];;) {
      Operation *writer = writerOf(value);
      if (auto loop = dyn_cast_or_null<AffineForOp>(writer)) {
        scoresBuffer = value;
        if (failed(scores.read(loop)))
          return failure();
        break;
      }
      auto simd = dyn_cast_or_null<lldmir::SimdOp>(writer);
      value = Value();
      for (Value input : simd ? simd.getInputs() : ValueRange())
        if (typeOf(input) == type && writerOf(input))
          value = input;
      if (!value)
        return softmax.emitError("has bands, but what it reads is not made of a product's rows alone");
      units.insert(units.begin(), simd);
    }
    AffineForOp reader;
    for (Operation *user : softmax.getOuts()[0].getUsers())
      if (user != softmax)
        reader = readerOf(user);
    if (!reader)
      return softmax.emitError("has bands, but no product weighs values by it");
    if (failed(weighted.read(reader)))
      return failure();
    bool same = scores.batch.size() == weighted.batch.size();
    for (auto [a, b] : llvm::zip(scores.batch, weighted.batch))
      same &= a.getConstantUpperBound() == b.getConstantUpperBound();
    return same && !scores.loops.bias && !weighted.loops.bias
               ? success()
               : softmax.emitError("has bands, but the products around it are of other batches");
  }

  AffineForOp readerOf(Operation *user) {
    Operation *top = topOf(user);
    if (auto loop = dyn_cast<AffineForOp>(top))
      return loop;
    for (Operation *next : user->getUsers())
      if (AffineForOp loop = readerOf(next))
        return loop;
    return {};
  }

  //--- what a band has of it
  OpFoldResult firstRow() {
    if (!row)
      row = affine::AffineApplyOp::create(
          builder, loc(), AffineMap::get(1, 0, builder.getAffineDimExpr(0) * kBandRows + (lower ? rows / 2 : 0)), band);
    return row;
  }
  /// A band of the rows of a matrix.
  Value rowsOf(Value matrix) {
    const MemRefType type = typeOf(matrix);
    OpFoldResult one = builder.getIndexAttr(1);
    return memref::SubViewOp::create(
        builder, loc(), matrix, ArrayRef<OpFoldResult>{firstRow(), builder.getIndexAttr(0)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(kBandRows), builder.getIndexAttr(type.getDimSize(1))},
        ArrayRef<OpFoldResult>{one, one});
  }
  /// A band's rows of a buffer of the dims of the scores, or of some of them: a matrix, or what has fewer dims.
  Value partOf(Value buffer) {
    const MemRefType type = typeOf(buffer);
    const int64_t rank = type.getRank(), all = typeOf(softmax.getInputs()[0]).getRank();
    SmallVector<OpFoldResult> offsets, sizes, ones(rank, builder.getIndexAttr(1));
    SmallVector<int64_t> shape;
    ArrayRef<int64_t> whole = typeOf(softmax.getInputs()[0]).getShape();
    size_t counter = 0;
    for (int64_t dim = 0; dim < all; ++dim) {
      const int64_t own = dim - (all - rank);
      const bool isBatch = dim + 2 < all, loops = isBatch && whole[dim] != 1;
      const size_t number = counter;
      counter += loops;
      if (own < 0)
        continue;
      const int64_t extent = type.getDimSize(own);
      const bool moves = extent != 1 && (loops || dim + 2 == all);
      offsets.push_back(!moves    ? OpFoldResult(builder.getIndexAttr(0))
                        : isBatch ? OpFoldResult(batch[number])
                                  : firstRow());
      const int64_t size = isBatch ? 1 : dim + 2 == all ? std::min(extent, kBandRows) : extent;
      sizes.push_back(builder.getIndexAttr(size));
      if (!isBatch)
        shape.push_back(size);
    }
    auto reduced = memref::SubViewOp::inferRankReducedResultType(shape, type, offsets, sizes, ones);
    return memref::SubViewOp::create(builder, loc(), cast<MemRefType>(reduced), buffer, offsets, sizes, ones);
  }
  Value stripFor(Value buffer) {
    // Weights of longer rows are too small for f16; they lie nowhere but here.
    const bool isWide = buffer == softmax.getOuts()[0] && columns > corsair::kMostHalfWeights;
    const Type element = isWide ? builder.getF32Type() : typeOf(buffer).getElementType();
    Value &strip = strips[buffer];
    if (!strip)
      strip = memref::AllocOp::create(
          builder, loc(),
          MemRefType::get({kBandRows, columns}, element, MemRefLayoutAttrInterface(), typeOf(buffer).getMemorySpace()));
    return strip;
  }
  Value tiles(Value matrix) {
    return affine_ext::TilesOp::create(builder, loc(), affine_ext::gridOf(typeOf(matrix)), matrix);
  }

  /// A view again where it is made in a loop over a batch.
  Value again(Value value, IRMapping &mapping) {
    if (Value made = mapping.lookupOrNull(value))
      return made;
    Operation *op = value.getDefiningOp();
    if (!op || isa<gpu::GPUFuncOp>(op->getParentOp()))
      return value;
    for (Value operand : op->getOperands())
      (void)again(operand, mapping);
    return builder.clone(*op, mapping)->getResult(0);
  }

  /// The loops of a product, of a band's rows: `left` or `out` is the strip that it reads or fills.
  void product(BatchedLoops &from, Value left, Value out) {
    IRMapping mapping;
    for (auto [loop, counter] : llvm::zip(from.batch, batch))
      mapping.map(loop.getInductionVar(), counter);
    const TileLoops &loops = from.loops;
    auto grid = [&](Value tilesOf, Value strip) {
      return tiles(strip ? strip : rowsOf(again(tilesOf.getDefiningOp<affine_ext::TilesOp>().getOperand(), mapping)));
    };
    Value a = grid(loops.left, left), b = again(loops.right, mapping), to = grid(loops.out, out);
    // Rows outside, of one tile; columns inside.
    auto outer = AffineForOp::create(builder, loc(), 0, 1);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(outer.getBody());
    auto inner = AffineForOp::create(builder, loc(), 0, typeOf(to).getDimSize(1));
    builder.setInsertionPointToStart(inner.getBody());
    Value row = outer.getInductionVar(), column = inner.getInductionVar(), sum;
    lldmir::MatMulOp like = loops.products.front();
    const AffineExpr counter = builder.getAffineDimExpr(0);
    auto at = [&](int64_t number) { return builder.getAffineConstantExpr(number); };
    for (const corsair::Addition &addition : loops.terms.front().additions) {
      SmallVector<Value> activations, weights;
      for (int64_t i = 0; i < addition.count(); ++i)
        activations.push_back(tile(like, like.getActivations()[0], a, {counter, at(addition.activations[i])}, row));
      for (int64_t i = 0; i < addition.count(); ++i)
        weights.push_back(tile(like, like.getWeights()[0], b, {at(addition.first + i), counter}, column));
      sum = lldmir::MatMulOp::create(builder, like.getLoc(), like.getType(), activations, weights, addition.imc,
                                     addition.ppr, like.getSpreadAttr(), sum, IntegerAttr());
    }
    sum = cast(like.getLoc(), sum, typeOf(to).getElementType());
    affine::AffineStoreOp::create(builder, like.getLoc(), sum, to, ValueRange{row, column});
  }
  /// A tile of a grid, at a place by a counter, in the format of an operand.
  Value tile(lldmir::MatMulOp like, Value operand, Value grid, ArrayRef<AffineExpr> place, Value counter) {
    const AffineMap map = AffineMap::get(1, 0, place, builder.getContext());
    return cast(like.getLoc(), affine::AffineLoadOp::create(builder, like.getLoc(), grid, map, counter),
                operand.getType());
  }
  Value cast(Location loc, Value tile, Type to) {
    return tile.getType() == to
               ? tile
               : lldmir::SimdOp::create(builder, loc, to, "cast", tile, ValueRange(), DictionaryAttr()).getResult(0);
  }

  void vectorOp(lldmir::SimdOp unit) {
    SmallVector<Value> inputs;
    for (Value input : unit.getInputs())
      inputs.push_back(strips.contains(input) ? strips[input] : partOf(input));
    Value first;
    if (unit.masks()) {
      AffineExpr at = builder.getAffineDimExpr(0) * kBandRows;
      SmallVector<Value> operands{band};
      if (unit.getRow()) {
        const AffineExpr given = builder.getAffineDimExpr(1);
        at = lower ? at - given + (folded.getInt() - rows / 2) : at + given;
        operands.push_back(unit.getRow());
      }
      first = affine::AffineApplyOp::create(builder, loc(), AffineMap::get(operands.size(), 0, at), operands);
    }
    NamedAttrList parameters(unit.getParametersAttr());
    for (StringRef key : {lldmir::kBandsAttr, lldmir::kFolded})
      parameters.erase(key);
    if (parameters.get("axis"))
      parameters.set("axis", builder.getI64IntegerAttr(1));
    if (parameters.get("axes"))
      parameters.set("axes", builder.getDenseI64ArrayAttr({1}));
    auto made = lldmir::SimdOp::create(builder, unit.getLoc(), TypeRange(), unit.getFunction(), inputs,
                                       stripFor(unit.getOuts()[0]), parameters.getDictionary(builder.getContext()));
    if (first)
      made.getRowMutable().assign(first);
  }

  void erase() {
    SmallVector<Value> buffers{scoresBuffer};
    for (lldmir::SimdOp unit : units)
      buffers.push_back(unit.getOuts()[0]);
    weighted.root()->erase();
    for (lldmir::SimdOp unit : llvm::reverse(units))
      unit.erase();
    scores.root()->erase();
    for (Value buffer : buffers)
      eraseUnread(buffer);
  }
  static void eraseUnread(Value buffer) {
    for (Operation *user : llvm::make_early_inc_range(buffer.getUsers()))
      if (isBufferView(user) || isa<affine_ext::TilesOp>(user))
        eraseUnread(user->getResult(0));
    if (Operation *op = buffer.getDefiningOp(); op && buffer.use_empty())
      op->erase();
  }

  lldmir::SimdOp softmax;
  OpBuilder builder;
  int64_t rows = 0, columns = 0;
  IntegerAttr folded; ///< rows of all quads, of which each has two parts; null: one part
  bool lower = false; ///< the part that is written
  BatchedLoops scores, weighted;
  Value scoresBuffer;
  SmallVector<lldmir::SimdOp> units;
  SmallVector<Value> batch; ///< counters
  Value band, row;
  llvm::DenseMap<Value, Value> strips; ///< of the buffers that they take the place of
};

struct BandRows : dmxc::impl::BandRowsBase<BandRows> {
  void runOnOperation() override {
    SmallVector<lldmir::SimdOp> all;
    getOperation().walk([&](lldmir::SimdOp op) {
      if (op.getParametersAttr() && op.getParametersAttr().contains(lldmir::kBandsAttr))
        all.push_back(op);
    });
    for (lldmir::SimdOp softmax : all)
      if (!isa<gpu::GPUFuncOp>(softmax->getParentOp()) || failed(Bander(softmax).run()))
        return signalPassFailure();
  }
};

} // namespace
