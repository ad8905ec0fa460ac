//===- FuseEpilogues.cpp - functions of a product's tiles ------------------===//
//
// Loops over tiles fill a buffer, and an elementwise op reads all of it. Over the same tiles that op is a nest of the
// same loops, so its body goes behind the store of each tile:
//
//   affine.store %h, %p[%i, %j]
//   %t = affine.load %p[%i, %j]  %r = affine.load %residual[%i, %j]
//   %g = lldmir.simd "add"(%t, %r)  affine.store %g, %y[%i, %j]
// corsair-bufferize gives each value a buffer of its own, and a reshape in between is a view: what is fused has the
// shape of the product's result.
//
//===----------------------------------------------------------------------===//
#include "../ElementFunctions.h"
#include "../Passes.h"
#include "ProductNest.h"

#include "dmxc/Dialect/DMIR/Model.h"
#include "targets/corsair/write/Operands.h"

#include "schemas/corsair/SimdFunctions.h"

namespace dmxc {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using affine::AffineForOp;
using corsair::DeviceTensor;

namespace {

/// What a function reads beside the tiles of the product: a buffer as it is looked at there.
struct Side {
  Value buffer;
  SmallVector<int64_t> shape, reshaped; ///< broadcast to the function's result, then as the product's
  int dim = -1;                         ///< of `reshaped`, of which each quad takes a part; -1: none
};

/// A function that may be fused.
struct Unit {
  lldmir::SimdOp op;
  SmallVector<int, 3> inputs; ///< functions before by number, -1 for the product's tiles, below -1 sides
  SmallVector<Side, 2> sides;
};

class Fuser {
public:
  Fuser(Nest nest, int64_t places) : nest(std::move(nest)), places(places) {}

  bool run() {
    collect();
    size_t count = units.size();
    while (count && !mayEndWith(count))
      --count;
    units.resize(count);
    if (nest.conv && count)
      fuseConvolution();
    else
      for (Unit &unit : units)
        fuse(unit);
    for (Unit &unit : units)
      unit.op.erase();
    return count;
  }

private:
  //--- which functions
  void collect() {
    made[nest.buffer] = -1;
    Operation *at = nest.root;
    while (lldmir::SimdOp next = reader(at)) {
      at = next;
      if (std::optional<Unit> unit = unitOf(next)) {
        made[next.getOuts()[0]] = static_cast<int>(units.size());
        units.push_back(std::move(*unit));
      }
    }
  }

  /// The first function behind an op that reads what is made.
  lldmir::SimdOp reader(Operation *behind) {
    lldmir::SimdOp first;
    for (auto [buffer, number] : made) {
      SmallVector<std::pair<Operation *, Value>> users;
      usersOf(buffer, users);
      for (auto [user, value] : users)
        if (auto simd = dyn_cast<lldmir::SimdOp>(user);
            simd && simd->getBlock() == nest.root->getBlock() && behind->isBeforeInBlock(simd) &&
            has<MemoryEffects::Read>(simd, value) && (!first || simd->isBeforeInBlock(first)))
          first = simd;
    }
    return first;
  }

  std::optional<Unit> unitOf(lldmir::SimdOp op) {
    Unit unit{op, {}, {}};
    const std::optional<ElementFunction> function = elementwise(op);
    auto deal = op->getAttrOfType<lldmir::DealAttr>(lldmir::kDealAttr);
    const bool isDealt = deal && deal.getDim() >= 0;
    if (!function || static_cast<int>(op.getInputs().size()) != dmx::corsair::operandCount(function->function) ||
        op.getOuts().size() != 1 || !isFresh(op) || isDealt != nest.isDealt() ||
        !llvm::all_of(op->getOperandTypes(), [](Type type) { return cast<MemRefType>(type).getElementType().isF16(); }))
      return std::nullopt;
    for (Value input : op.getInputs()) {
      if (auto number = made.find(rootOf(input)); number != made.end()) {
        if (!isAllOf(input, number->first, op))
          return std::nullopt;
        unit.inputs.push_back(number->second);
        continue;
      }
      std::optional<Side> side = sideOf(input, op, deal);
      if (!side)
        return std::nullopt;
      unit.inputs.push_back(-2 - static_cast<int>(unit.sides.size()));
      unit.sides.push_back(std::move(*side));
    }
    return unit;
  }

  /// Whether a function alone writes its buffer, which can be looked at in the product's shape.
  bool isFresh(lldmir::SimdOp op) {
    Value out = op.getOuts()[0];
    if (!out.getDefiningOp<memref::AllocOp>() || !reshapes(layoutOf(cast<MemRefType>(out.getType()))))
      return false;
    SmallVector<std::pair<Operation *, Value>> users;
    usersOf(out, users);
    return llvm::all_of(users, [&](auto use) {
      return use.first == op ||
             (op->isBeforeInBlock(topOf(use.first)) && !has<MemoryEffects::Write>(use.first, use.second));
    });
  }
  bool reshapes(const DeviceTensor &layout) {
    if (nest.conv)
      return liesAs(layout);
    return layout.shape == nest.type().getShape() ||
           (layout.elements() == nest.type().getNumElements() && layout.reshaped(nest.type().getShape()));
  }

  /// Whether a convolution walks over it as over its result.
  bool liesAs(const DeviceTensor &layout) { return layout.address.offset == 0 && layout.liesAs(layoutOf(nest.type())); }

  /// Whether an operand is a buffer with all its elements in their order.
  static bool isAllOf(Value input, Value buffer, lldmir::SimdOp op) {
    const auto type = cast<MemRefType>(input.getType()), whole = cast<MemRefType>(buffer.getType());
    if (type.getShape() != cast<MemRefType>(op.getOuts()[0].getType()).getShape() ||
        type.getNumElements() != whole.getNumElements())
      return false;
    const DeviceTensor layout = layoutOf(type);
    return input == buffer || (layout.address.offset == 0 && layout.isRowMajor() && layoutOf(whole).isRowMajor());
  }

  std::optional<Side> sideOf(Value input, lldmir::SimdOp op, lldmir::DealAttr deal) {
    const auto type = cast<MemRefType>(input.getType()), out = cast<MemRefType>(op.getOuts()[0].getType());
    if (!isThereBefore(input) || isWrittenUntil(op, rootOf(input)) || type.getRank() > out.getRank() ||
        ShapedType::isDynamic(layoutOf(type).address.offset))
      return std::nullopt;
    if (nest.conv && !liesAs(layoutOf(type)))
      return std::nullopt;
    Side side{input, SmallVector<int64_t>(out.getShape()), SmallVector<int64_t>(nest.type().getShape())};
    if (nest.quads && !takePart(side, type, deal))
      return std::nullopt;
    const std::optional<DeviceTensor> layout = layoutOf(type).broadcast(side.shape).reshaped(side.reshaped);
    const bool fits = layout && (nest.batch.empty() || goesOn(*layout) || nest.hasOwnWeights());
    return fits ? std::optional(side) : std::nullopt;
  }

  /// Of what all quads have along the dim that is dealt each computes with its part. False where there is no such dim
  /// of the product's result.
  bool takePart(Side &side, MemRefType type, lldmir::DealAttr deal) {
    const int64_t dim = deal.getDim(), own = dim - (static_cast<int64_t>(side.shape.size()) - type.getRank());
    if (own < 0 || type.getDimSize(own) == 1 || type.getDimSize(own) == side.shape[dim])
      return true;
    if (deal.getFolded() || type.getDimSize(own) != side.shape[dim] * deal.getQuads())
      return false;
    auto before = [](ArrayRef<int64_t> shape, size_t dim) { return ShapedType::getNumElements(shape.take_front(dim)); };
    for (size_t i = 0; i < side.reshaped.size(); ++i)
      if (side.reshaped[i] == side.shape[dim] && before(side.reshaped, i) == before(side.shape, dim)) {
        side.dim = static_cast<int>(i);
        side.shape[dim] *= deal.getQuads(), side.reshaped[i] *= deal.getQuads();
        return true;
      }
    return false;
  }

  /// Whether rows go on from matrix to matrix of a batch: products that share weights are joined.
  static bool goesOn(const DeviceTensor &layout) {
    for (size_t dim = 0; dim + 2 < layout.rank(); ++dim)
      if (layout.shape[dim] != 1 && layout.strides[dim] != layout.shape[dim + 1] * layout.strides[dim + 1])
        return false;
    return true;
  }

  bool isThereBefore(Value value) {
    Operation *op = value.getDefiningOp();
    return !op || op->isBeforeInBlock(nest.root) ||
           (isBufferView(op) && llvm::all_of(op->getOperands(), [&](Value from) { return isThereBefore(from); }));
  }
  bool isWrittenUntil(Operation *end, Value root) {
    SmallVector<std::pair<Operation *, Value>> users;
    usersOf(root, users);
    return llvm::any_of(users, [&](auto use) {
      Operation *top = topOf(use.first);
      return !top->isBeforeInBlock(nest.root) && top->isBeforeInBlock(end) &&
             has<MemoryEffects::Write>(use.first, use.second);
    });
  }

  /// Whether nothing but the last of so many functions makes what others need, with the tiles that there is room for.
  bool mayEndWith(size_t count) {
    SmallVector<SmallVector<int, 3>> inputs;
    llvm::SmallPtrSet<Operation *, 8> fused{nest.root};
    for (const Unit &unit : ArrayRef(units).take_front(count)) {
      inputs.push_back(unit.inputs);
      fused.insert(unit.op);
    }
    const SmallVector<int> needed = corsair::placesOf(inputs);
    if (*llvm::max_element(ArrayRef(needed).drop_back()) >= places)
      return false;
    return llvm::all_of(made, [&](auto each) {
      SmallVector<std::pair<Operation *, Value>> users;
      if (each.second + 1 < static_cast<int>(count)) // else it is the last one's, or not fused
        usersOf(each.first, users);
      return llvm::all_of(users, [&](auto use) { return fused.contains(topOf(use.first)); });
    });
  }

  //--- what becomes of them
  void hoist(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->isBeforeInBlock(nest.root))
      return;
    for (Value from : op->getOperands())
      hoist(from);
    op->moveBefore(nest.root);
  }

  void fuse(Unit &unit) {
    const Location loc = unit.op.getLoc();
    Value out = unit.op.getOuts()[0];
    hoist(out);
    Value stored = gridOf(loc, {out, SmallVector<int64_t>(cast<MemRefType>(out.getType()).getShape()),
                                SmallVector<int64_t>(nest.type().getShape())});
    SmallVector<Value> beside;
    for (const Side &side : unit.sides)
      beside.push_back(gridOf(loc, side));
    affine::AffineStoreOp store = nest.store;
    OpBuilder builder(store);
    builder.setInsertionPointAfter(last ? last : store.getOperation());
    auto load = [&](Value grid) -> Value {
      return affine::AffineLoadOp::create(builder, loc, grid, store.getAffineMap(), store.getMapOperands());
    };
    // What the nest made is at hand: a load of it would have to be forwarded past stores of other tiles.
    SmallVector<Value> tiles;
    for (int input : unit.inputs)
      tiles.push_back(input >= 0 ? tilesMade[input] : input == -1 ? store.getValueToStore() : load(beside[-2 - input]));
    auto made = lldmir::SimdOp::create(builder, loc, store.getValueToStore().getType(), unit.op.getFunction(), tiles,
                                       ValueRange(), unit.op.getParametersAttr());
    last = affine::AffineStoreOp::create(builder, loc, made.getResult(0), stored, store.getAffineMap(),
                                         store.getMapOperands());
    tilesMade.push_back(made.getResult(0));
  }

  void fuseConvolution() {
    OpBuilder builder(nest.root);
    lldmir::ConvOp old = nest.conv;
    Value out = units.back().op.getOuts()[0];
    hoist(out);
    SmallVector<Value> beside;
    SmallVector<Attribute> epilogue;
    for (Unit &unit : units) {
      SmallVector<int64_t> inputs;
      for (int input : unit.inputs)
        inputs.push_back(input >= -1 ? input : input - static_cast<int64_t>(beside.size()));
      for (const Side &side : unit.sides) {
        hoist(side.buffer);
        beside.push_back(side.buffer);
      }
      DictionaryAttr parameters = unit.op.getParametersAttr();
      epilogue.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("function", unit.op.getFunctionAttr()),
           builder.getNamedAttr("inputs", builder.getDenseI64ArrayAttr(inputs)),
           builder.getNamedAttr("node", builder.getStringAttr(dmir::nodeName(unit.op))),
           builder.getNamedAttr("parameters", parameters ? parameters : builder.getDictionaryAttr({}))}));
    }
    auto made =
        lldmir::ConvOp::create(builder, old.getLoc(), TypeRange(), old.getImage(), old.getWeights(), old.getBias(),
                               beside, out, old.getKernel(), old.getStrides(), old.getDilations(), old.getLow(),
                               old.getGroups(), builder.getArrayAttr(epilogue));
    made->setDiscardableAttrs(old->getDiscardableAttrDictionary());
    old.erase();
  }

  /// A buffer through the same views as the product's.
  Value gridOf(Location loc, const Side &side) {
    hoist(side.buffer);
    OpBuilder builder(nest.root);
    Value view = side.buffer;
    auto shapeOf = [](Value value) { return cast<MemRefType>(value.getType()).getShape(); };
    if (shapeOf(view) != ArrayRef(side.shape))
      view = broadcastView(builder, loc, view, side.shape);
    if (side.shape != side.reshaped)
      view = reshapedView(builder, loc, view, side.reshaped);
    if (side.dim >= 0) {
      builder.setInsertionPointToStart(nest.quads.getBody());
      SmallVector<int64_t> part(nest.type().getShape());
      SmallVector<OpFoldResult> offsets(part.size(), builder.getIndexAttr(0)),
          ones(part.size(), builder.getIndexAttr(1)), sizes = getAsIndexOpFoldResult(builder.getContext(), part);
      AffineMap map = AffineMap::get(1, 0, builder.getAffineDimExpr(0) * part[side.dim]);
      offsets[side.dim] = affine::AffineApplyOp::create(builder, loc, map, nest.quads.getInductionVar()).getResult();
      view = memref::SubViewOp::create(builder, loc, view, offsets, sizes, ones);
    }
    for (Operation *of : nest.views) {
      if (of->getBlock() == nest.root->getBlock())
        builder.setInsertionPoint(nest.root);
      else
        builder.setInsertionPointAfter(of);
      auto cut = dyn_cast<memref::SubViewOp>(of);
      if (!cut) {
        view = affine_ext::TilesOp::create(builder, loc, affine_ext::gridOf(cast<MemRefType>(view.getType())), view);
        continue;
      }
      auto type = memref::SubViewOp::inferRankReducedResultType(cut.getType().getShape(),
                                                                cast<MemRefType>(view.getType()), cut.getMixedOffsets(),
                                                                cut.getMixedSizes(), cut.getMixedStrides());
      view = memref::SubViewOp::create(builder, loc, cast<MemRefType>(type), view, cut.getMixedOffsets(),
                                       cut.getMixedSizes(), cut.getMixedStrides());
    }
    return view;
  }

  Nest nest;
  const int64_t places;             ///< for tiles
  llvm::MapVector<Value, int> made; ///< buffers of tiles: the product's is -1, those of functions by number
  std::vector<Unit> units;
  SmallVector<Value> tilesMade; ///< by fused functions
  Operation *last = nullptr;
};

struct FuseEpilogues : dmxc::impl::FuseEpiloguesBase<FuseEpilogues> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!function->hasAttr(kQuadsAttr) || function.isExternal() || !function.getBody().hasOneBlock())
      return;
    const hw::Machine &machine = lldmir::machineOf(&getContext());
    const int64_t places = corsair::placesOfTiles(machine);
    SmallVector<Operation *> products;
    for (Operation &op : function.getBody().front())
      if (places && isa<AffineForOp, lldmir::ConvOp>(op))
        products.push_back(&op);
    bool changed = false;
    for (Operation *product : products)
      if (Nest nest; nest.read(product) && nest.pays(machine))
        changed |= Fuser(nest, places).run();
    SmallVector<Operation *> views; // of what is read no more
    if (changed)
      function.walk([&](Operation *op) {
        if (isBufferView(op))
          views.push_back(op);
      });
    for (Operation *view : llvm::reverse(views))
      if (view->use_empty())
        view->erase();
  }
};

} // namespace
