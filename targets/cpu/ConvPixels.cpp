//===- ConvPixels.cpp - convolutions over images of open sizes ----------------===//
//
// For a batch and spatial dims that a run brings, in row-major layout: lanes are adjacent pixels of an output row, and
// a register tile is some vectors of them times some output channels. Weights are read as they are, an element for a
// whole vector. Tiles whose taps all lie inside the input load plainly; those at the ends of a row load under masks,
// which give zeros for the padding.
//
//===----------------------------------------------------------------------===//

#include "ConvRegion.h"
#include "GemmTile.h"
#include "MatmulRegion.h"
#include "Pool.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// What a convolution over open sizes computes. Where all kernel dims, strides and pads are trivial, the spatial axes
/// are one axis.
struct PixelSpec {
  explicit PixelSpec(dmir::ConvOp op);

  Dim batch, inChannels;
  int64_t groupIc, groupOc, groups, taps = 1;
  SmallVector<WindowAxis> axes;
  SmallVector<Dim> out; ///< one a spatial axis
  /// Output channels of a work item, all of one group; the last item may have fewer where there is one group.
  int64_t channels = 8;
};

PixelSpec::PixelSpec(dmir::ConvOp op) : groups(op.getGroups()) {
  SmallVector<Dim> in = dmir::dimsOf(op.getInput()), result = dmir::dimsOf(op.getResult());
  ArrayRef<int64_t> weights = cast<RankedTensorType>(op.getWeights().getType()).getShape();
  SmallVector<Dim> low = dmir::mixDims(op.getLow(), op.getDims());
  batch = in[0];
  inChannels = in[1];
  groupIc = weights[1];
  groupOc = weights[0] / groups;
  bool pointwise = true;
  for (size_t i = 0; i + 2 < in.size(); ++i) {
    axes.push_back({in[i + 2], weights[i + 2], op.getStrides()[i], op.getDilations()[i], low[i], 0, 0});
    out.push_back(result[i + 2]);
    taps *= weights[i + 2];
    pointwise &= weights[i + 2] == 1 && op.getStrides()[i] == 1 && low[i].is(0) && in[i + 2] == result[i + 2];
  }
  if (pointwise) {
    out = {dmir::product(out)};
    axes = {{out[0], 1, 1, 1, 0, 0, 0}};
  }
  while (groups > 1 ? groupOc % channels != 0 : channels / 2 >= groupOc)
    channels /= 2;
}

class PixelConv {
public:
  PixelConv(KernelBuilder &b, const RegionBody &body, const PixelSpec &spec)
      : b(b), e(b, body.block), writer(e, body), op(cast<dmir::ConvOp>(body.root)), s(spec),
        element(getElementTypeOrSelf(op.getResult().getType())) {
    accType = e.computed(element);
    lanes = b.isa().lanes(accType.getIntOrFloatBitWidth());
    sums = b.isa().vectorRegisters - 4;
    // With a stride of 2, vectors for two taps wait in registers.
    most = last().stride == 2 ? 2 : s.channels == 1 ? 4 : 3;
    rank = cast<RankedTensorType>(op.getResult().getType()).getRank();
    if (writer.acceptsJoined())
      joined = joinedAxis(writer.values(), op->getResult(0), 2, rank - 1);
  }

  /// Pixels [lo, hi) of the row at `outer`: image, number of the item's channels, leading spatial positions.
  void run(ArrayRef<Value> outer, Value lo, Value hi);

private:
  struct Tile {
    Value pixel, end; ///< the first one, and one past the last of the row
    int64_t vectors, rows;
    bool masked;
    Value oc;                        ///< its first output channel
    SmallVector<Value> weights = {}; ///< offset of the first weight of each channel
  };

  void emitTile(Tile tile);
  SmallVector<Value> reduce(const Tile &tile);
  void addTaps(const Tile &tile, Value row, Value weight, SmallVectorImpl<Value> &acc);
  void addTap(const Tile &tile, ArrayRef<Value> x, Value weight, SmallVectorImpl<Value> &acc);
  Value pixels(const Tile &tile, Value row, int64_t vector, int64_t tap, SmallVectorImpl<Value> *between);
  Value runOf(Value row, Value position, bool masked);
  void store(const Tile &tile, ArrayRef<Value> acc);
  /// The input position of a pixel for tap 0.
  Value positionOf(Value pixel) { return b.sub(b.mulC(pixel, last().stride), b.idx(last().low)); }
  const WindowAxis &last() const { return s.axes.back(); }
  Value planeSize() {
    Dim size = 1;
    for (const WindowAxis &axis : s.axes)
      size *= axis.in;
    return b.idx(size);
  }
  int64_t channelCount() const { return s.groupOc * s.groups; }
  /// Whether no item has channels beyond the last one.
  bool allExist() const { return channelCount() % s.channels == 0; }
  Value pointer(Value tensor) { return b.buffer(cast<BlockArgument>(tensor).getArgNumber()); }

  KernelBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  dmir::ConvOp op;
  const PixelSpec &s;
  Type element, accType;
  int64_t lanes, sums, most;
  size_t rank;
  std::optional<unsigned> joined; ///< carries a position through all spatial axes, where the epilogue allows that
  // Of the item.
  Value image, input; ///< pointer to the first channel of the group
  SmallVector<Value> leading;
};

void PixelConv::run(ArrayRef<Value> outer, Value lo, Value hi) {
  image = outer[0];
  leading.assign(outer.begin() + 2, outer.end());
  Value oc = b.mulC(outer[1], s.channels);
  Value firstChannel = s.groups == 1 ? b.idx(0) : b.mulC(b.floorDiv(oc, b.idx(s.groupOc)), s.groupIc);
  Value channel = b.add(b.mul(image, b.idx(s.inChannels)), firstChannel);
  input = b.elementPtr(element, pointer(op.getInput()), b.mul(channel, planeSize()));
  // Pixels from which on, and up to which, a whole tile reads inside the input.
  int64_t span = most * lanes, stride = last().stride;
  int64_t reach = (span - 1) * stride + (*last().window.known() - 1) * last().dilation + (stride == 2);
  Value first = b.ceilDiv(b.maxS(b.idx(last().low), b.idx(0)), b.idx(stride));
  Value room = b.sub(b.idx(last().in + last().low), b.idx(reach + 1)); // >= pixel * stride
  b.forLoop(lo, hi, b.idx(span), [&](Value pixel) {
    auto tile = [&](int64_t vectors, bool masked) { emitTile({pixel, hi, vectors, 1, masked, oc}); };
    Value left = b.sub(hi, pixel);
    auto below = [&](Value x, Value y) { return b.cmp(arith::CmpIPredicate::sle, x, y); };
    Value inside = arith::AndIOp::create(b, below(first, pixel), below(b.mulC(pixel, stride), room));
    inside = arith::AndIOp::create(b, inside, below(b.idx(span), left));
    auto ends = [&](auto &&self, int64_t vectors) -> void {
      if (vectors == most)
        return tile(vectors, true);
      b.ifThen(
          below(left, b.idx(vectors * lanes)), [&] { tile(vectors, true); }, [&] { self(self, vectors + 1); });
    };
    b.ifThen(
        inside, [&] { tile(most, false); }, [&] { ends(ends, 1); });
  });
}

/// All channels of the item for a tile of pixels, as many at a time as there are registers.
void PixelConv::emitTile(Tile tile) {
  for (tile.rows = s.channels; tile.rows > 1 && tile.rows * tile.vectors > sums;)
    tile.rows /= 2;
  Value first = tile.oc;
  b.forLoop(b.idx(0), b.idx(s.channels), b.idx(tile.rows), [&](Value row) {
    Tile part = tile;
    part.oc = b.add(first, row);
    for (int64_t r = 0; r < part.rows; ++r) {
      Value oc = b.addC(part.oc, r);
      part.weights.push_back(b.mulC(allExist() ? oc : b.minS(oc, b.idx(channelCount() - 1)), s.groupIc * s.taps));
    }
    store(part, reduce(part));
  });
}

SmallVector<Value> PixelConv::reduce(const Tile &tile) {
  Value plane = planeSize();
  RegisterTile registers{tile.rows, tile.vectors, lanes, accType};
  auto nest = [&](auto &&self, size_t axis, Value row, Value tap, ValueRange carried) -> SmallVector<Value> {
    if (axis + 1 == s.axes.size()) {
      SmallVector<Value> acc(carried);
      addTaps(tile, b.mul(row, b.idx(last().in)), b.mulC(tap, *last().window.known()), acc);
      return acc;
    }
    const WindowAxis &window = s.axes[axis];
    auto [lo, hi] = validTaps(b, window, leading[axis], 0, window.in);
    Value origin = b.sub(b.mulC(leading[axis], window.stride), b.idx(window.low));
    return b.forLoop(lo, hi, b.idx(1), carried, [&](Value k, ValueRange inner) {
      Value at = b.add(b.mul(row, b.idx(window.in)), b.add(origin, b.mulC(k, window.dilation)));
      return self(self, axis + 1, at, b.add(b.mulC(tap, *window.window.known()), k), inner);
    });
  };
  Value whole = input;
  SmallVector<Value> acc =
      b.forLoop(b.idx(0), b.idx(s.groupIc), b.idx(1), zeroTile(b, registers), [&](Value channel, ValueRange carried) {
        input = b.elementPtr(element, whole, b.mul(channel, plane));
        return nest(nest, 0, b.idx(0), channel, carried);
      });
  input = whole;
  return acc;
}

/// The taps along a row: `row` is its offset in the input channel, `weight` that of the first tap's weight.
void PixelConv::addTaps(const Tile &tile, Value row, Value weight, SmallVectorImpl<Value> &acc) {
  int64_t taps = *last().window.known(), pairs = last().stride == 2 && last().dilation == 1 ? taps / 2 : 0;
  for (int64_t tap = 0; tap < taps;) {
    // With a stride of 2, the elements between those of a tap are the next tap's.
    int64_t count = tap / 2 < pairs ? 2 : 1;
    SmallVector<Value> x, next;
    for (int64_t v = 0; v < tile.vectors; ++v)
      x.push_back(pixels(tile, row, v, tap, count == 2 ? &next : nullptr));
    addTap(tile, x, b.addC(weight, tap), acc);
    if (count == 2)
      addTap(tile, next, b.addC(weight, tap + 1), acc);
    tap += count;
  }
}

void PixelConv::addTap(const Tile &tile, ArrayRef<Value> x, Value weight, SmallVectorImpl<Value> &acc) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value raw = b.load(element, pointer(op.getWeights()), b.add(tile.weights[r], weight));
    Value w = b.splat(convertElements(b, {element, accType, isUnsignedElement(element)}, raw), lanes);
    for (int64_t v = 0; v < tile.vectors; ++v)
      acc[r * tile.vectors + v] = multiplyAdd(b, x[v], w, acc[r * tile.vectors + v]);
  }
}

/// The input under one tap of a vector of pixels; with a stride of 2, the elements between go to `between`.
Value PixelConv::pixels(const Tile &tile, Value row, int64_t vector, int64_t tap, SmallVectorImpl<Value> *between) {
  int64_t stride = last().stride;
  Value position = b.addC(positionOf(b.addC(tile.pixel, vector * lanes)), tap * last().dilation);
  if (stride == 1)
    return runOf(row, position, tile.masked);
  SmallVector<Value> elements;
  if (stride == 2) {
    Value low = runOf(row, position, tile.masked), high = runOf(row, b.addC(position, lanes), tile.masked);
    auto every = [&](int64_t from) -> Value {
      SmallVector<int64_t> order;
      for (int64_t lane = 0; lane < lanes; ++lane)
        order.push_back(from + 2 * lane);
      return vector::ShuffleOp::create(b, low, high, order);
    };
    if (between)
      between->push_back(every(1));
    return every(0);
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = b.addC(position, lane * stride), inside;
    if (tile.masked) { // a place outside reads the nearest one inside
      Value clamped = b.maxS(b.minS(at, b.idx(last().in - 1)), b.idx(0));
      inside = b.cmp(arith::CmpIPredicate::eq, at, clamped);
      at = clamped;
    }
    Value x =
        convertElements(b, {element, accType, isUnsignedElement(element)}, b.load(element, input, b.add(row, at)));
    elements.push_back(inside ? arith::SelectOp::create(b, inside, x, b.constantInt(accType, 0)).getResult() : x);
  }
  return vector::FromElementsOp::create(b, VectorType::get({lanes}, accType), elements);
}

/// Adjacent input elements from a position in a row on; zeros outside of the row.
Value PixelConv::runOf(Value row, Value position, bool masked) {
  Value at = b.add(row, position), raw;
  if (masked) {
    auto count = [&](Value limit) { return b.maxS(b.sub(limit, position), b.idx(0)); };
    Value before = b.headMask(lanes, count(b.idx(0))), until = b.headMask(lanes, count(b.idx(last().in)));
    Value on = arith::XOrIOp::create(b, before, until); // `before` is part of `until`
    raw = b.maskedLoad(element, input, at, on);
  } else {
    raw = b.load(element, input, at, lanes);
  }
  return convertElements(b, {element, accType, isUnsignedElement(element)}, raw);
}

void PixelConv::store(const Tile &tile, ArrayRef<Value> acc) {
  auto write = [&](int64_t r, int64_t v) {
    Value pixel = b.addC(tile.pixel, v * lanes);
    ElementExpr::Lanes scope(e, lanes, tile.masked ? b.headMask(lanes, b.sub(tile.end, pixel)) : Value());
    e.forget();
    Value narrow = fromAccumulator(e, acc[r * tile.vectors + v], element);
    e.bind(op.getResult(), [narrow](ArrayRef<Index>) { return narrow; });
    Indices index(rank, e.at(0));
    index[0] = e.at(image);
    index[1] = e.at(b.addC(tile.oc, r));
    for (auto [i, value] : llvm::enumerate(leading))
      index[i + 2] = e.at(value);
    Index rest = e.at(pixel, 1, 1);
    if (s.axes.size() + 2 < rank && !joined)
      for (size_t axis = rank - 1; axis > 2; --axis)
        std::tie(rest, index[axis]) = e.divRem(rest, Dim::max(dmir::dimOf(op.getResult(), axis), 1));
    index[s.axes.size() + 2 == rank ? rank - 1 : joined.value_or(2)] = rest;
    writer.write(index);
  };
  for (int64_t r = 0; r < tile.rows; ++r) {
    auto vectors = [&] {
      for (int64_t v = 0; v < tile.vectors; ++v)
        write(r, v);
    };
    if (allExist())
      vectors();
    else
      b.ifThen(b.cmp(arith::CmpIPredicate::slt, b.addC(tile.oc, r), b.idx(channelCount())), vectors);
  }
}

} // namespace

bool dmxc::cpu::isPixelConv(const RegionBody &body) {
  auto op = cast<dmir::ConvOp>(body.root);
  auto weights = cast<RankedTensorType>(op.getWeights().getType());
  Type element = weights.getElementType();
  bool wide =
      element.getIntOrFloatBitWidth() >= 16 && (mlir::isa<FloatType>(element) || element.getIntOrFloatBitWidth() >= 32);
  bool plain = !dmir::layoutOf(op.getInput().getType()) && !dmir::layoutOf(op.getResult().getType());
  return wide && plain && weights.hasStaticShape() && weights.getNumElements() > 0 &&
         mlir::isa<BlockArgument>(op.getInput()) && mlir::isa<BlockArgument>(op.getWeights());
}

KernelPlan dmxc::cpu::planPixelConv(const RegionBody &body) {
  auto spec = std::make_shared<PixelSpec>(cast<dmir::ConvOp>(body.root));
  SmallVector<Dim> dims{spec->batch, ceilDivInt(spec->groupOc * spec->groups, spec->channels)};
  dims.append(spec->out);
  WorkPlan work = planWork(body.block, dims, 0.03 * spec->channels * spec->groupIc * spec->taps + 1);
  KernelPlan plan;
  plan.algorithm = "conv-pixels";
  plan.work = work.items;
  plan.grain = work.grain;
  plan.emit = [body, spec, work](KernelBuilder &b) {
    PixelConv conv(b, body, *spec);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) { conv.run(outer, lo, hi); });
  };
  return plan;
}
