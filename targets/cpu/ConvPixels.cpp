//===- ConvPixels.cpp - convolutions over images of open sizes ----------------===//
//
// For a batch and spatial dims that a run brings, in row-major layout: lanes are adjacent pixels of an output row, and
// a register tile is some vectors of them times some output channels. The input that a run of pixels reads is copied to
// scratch first, with zeros for the padding and one row a tap, cut in phases where the stride is not 1: what the tiles
// load is contiguous and whatever the place. Weights are read as they are, an element for a whole vector.
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

/// Pixels whose input is copied at a time; a multiple of all lane counts.
constexpr int64_t kSegment = 48;
constexpr int64_t kMaxScratch = int64_t(4) << 20;

/// What a convolution over open sizes computes. Where all kernel dims, strides and pads are trivial, the spatial axes
/// are one axis.
struct PixelSpec {
  explicit PixelSpec(dmir::ConvOp op);

  Dim batch, inChannels;
  int64_t groupIc, groupOc, groups, taps = 1;
  unsigned bits; ///< of a sum
  SmallVector<WindowAxis> axes;
  SmallVector<Dim> out; ///< one a spatial axis
  /// Output channels of a work item, all of one group; the last item may have fewer where there is one group.
  int64_t channels = 32;

  int64_t kernel() const { return *axes.back().window.known(); }
  int64_t stride() const { return axes.back().stride; }
  /// Rows of input that a pixel reads.
  int64_t rows() const { return groupIc * (taps / kernel()); }
  /// By how much a phase of a row is longer than the pixels it is for.
  int64_t overhang() const { return (kernel() - 1) * axes.back().dilation / stride(); }
  int64_t scratchBytes() const {
    return rows() * stride() * static_cast<int64_t>(llvm::alignTo(kSegment + overhang(), 16)) * bits / 8;
  }
};

PixelSpec::PixelSpec(dmir::ConvOp op) : groups(op.getGroups()) {
  SmallVector<Dim> in = dmir::dimsOf(op.getInput()), result = dmir::dimsOf(op.getResult());
  ArrayRef<int64_t> weights = cast<RankedTensorType>(op.getWeights().getType()).getShape();
  SmallVector<Dim> low = dmir::mixDims(op.getLow(), op.getDims());
  batch = in[0];
  inChannels = in[1];
  bits = getElementTypeOrSelf(op.getResult().getType()).getIntOrFloatBitWidth() == 64 ? 64 : 32;
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
    most = s.channels == 1 ? 4 : 3;
    rank = cast<RankedTensorType>(op.getResult().getType()).getRank();
    if (writer.acceptsJoined())
      joined = joinedAxis(writer.values(), op->getResult(0), 2, rank - 1);
  }

  /// Pixels [lo, hi) of the row at `outer`: image, number of the item's channels, leading spatial positions.
  void run(ArrayRef<Value> outer, Value lo, Value hi);

private:
  struct Tile {
    Value at; ///< its first pixel, counted from the segment's
    int64_t vectors, rows = 1;
    Value oc = {};                   ///< its first output channel
    SmallVector<Value> weights = {}; ///< offset of the first weight of each channel
  };

  void copySegment();
  void copyRow(Value source, Value width, Value target);
  Value runOf(Value source, Value position, Value width);
  Value gathered(Value source, Value position, Value width);
  void emitTile(Tile tile, Value firstChannel);
  SmallVector<Value> reduce(const Tile &tile);
  void store(const Tile &tile, ArrayRef<Value> acc);

  const WindowAxis &last() const { return s.axes.back(); }
  int64_t channelCount() const { return s.groupOc * s.groups; }
  /// Whether no item has channels beyond the last one.
  bool allExist() const { return channelCount() % s.channels == 0; }
  Value pointer(Value tensor) { return b.buffer(cast<BlockArgument>(tensor).getArgNumber()); }
  Value widened(Value raw) { return convertElements(b, {element, accType, isUnsignedElement(element)}, raw); }

  KernelBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  dmir::ConvOp op;
  const PixelSpec &s;
  Type element, accType;
  int64_t lanes, sums, most;
  size_t rank;
  std::optional<unsigned> joined; ///< carries a position through all spatial axes, where the epilogue allows that
  // Of the item and its segment.
  Value image, firstInput; ///< number of the group's first channel in all images
  SmallVector<Value> leading;
  Value pixel, count; ///< the first one of the segment, and how many there are
  Value phase;        ///< elements of one phase of a copied row
};

void PixelConv::run(ArrayRef<Value> outer, Value lo, Value hi) {
  image = outer[0];
  leading.assign(outer.begin() + 2, outer.end());
  Value oc = b.mulC(outer[1], s.channels);
  Value group = s.groups == 1 ? b.idx(0) : b.floorDiv(oc, b.idx(s.groupOc));
  firstInput = b.add(b.mul(image, b.idx(s.inChannels)), b.mulC(group, s.groupIc));
  b.forLoop(lo, hi, b.idx(kSegment), [&](Value first) {
    pixel = first;
    count = b.minS(b.sub(hi, first), b.idx(kSegment));
    auto whole = [&](Value n) { return b.mulC(b.ceilDiv(n, b.idx(lanes)), lanes); };
    phase = whole(b.addC(whole(count), s.overhang()));
    copySegment();
    b.forLoop(b.idx(0), count, b.idx(most * lanes), [&](Value at) {
      Value left = b.sub(count, at);
      auto fewest = [&](auto &&self, int64_t vectors) -> void {
        if (vectors == most)
          return emitTile({at, vectors}, oc);
        Value fits = b.cmp(arith::CmpIPredicate::sle, left, b.idx(vectors * lanes));
        b.ifThen(
            fits,
            [&] {
              emitTile({at, vectors}, oc);
            },
            [&] { self(self, vectors + 1); });
      };
      fewest(fewest, 1);
    });
  });
}

//===----------------------------------------------------------------------===//
// The input of a segment
//===----------------------------------------------------------------------===//

/// Copies the rows of all channels and leading taps, [channel][taps..][phase][pixels].
void PixelConv::copySegment() {
  Value rowElements = b.mulC(phase, s.stride());
  auto nest = [&](auto &&self, size_t axis, Value row, Value inside, Value index) -> void {
    if (axis + 1 == s.axes.size()) {
      Value source = b.elementPtr(element, pointer(op.getInput()), b.mul(row, b.idx(last().in)));
      Value width = arith::SelectOp::create(b, inside, b.idx(last().in), b.idx(0));
      return copyRow(source, width, b.elementPtr(accType, b.scratch(), b.mul(index, rowElements)));
    }
    const WindowAxis &window = s.axes[axis];
    Value origin = b.sub(b.mulC(leading[axis], window.stride), b.idx(window.low));
    b.forLoop(0, *window.window.known(), 1, [&](Value tap) {
      Value at = b.add(origin, b.mulC(tap, window.dilation));
      Value below = b.cmp(arith::CmpIPredicate::ult, at, b.idx(window.in)); // a negative one is large
      self(self, axis + 1, b.add(b.mul(row, b.idx(window.in)), at), arith::AndIOp::create(b, inside, below),
           b.add(b.mulC(index, *window.window.known()), tap));
    });
  };
  b.forLoop(0, s.groupIc, 1, [&](Value channel) {
    nest(nest, 0, b.add(firstInput, channel), b.constantInt(b.getI1Type(), 1), channel);
  });
}

/// One row of `width` elements (0: all is padding) from the segment's first tap on, element i of it to phase
/// i % stride.
void PixelConv::copyRow(Value source, Value width, Value target) {
  int64_t stride = s.stride();
  Value origin = b.sub(b.mulC(pixel, stride), b.idx(last().low));
  b.forLoop(b.idx(0), phase, b.idx(lanes), [&](Value i) {
    Value position = b.add(origin, b.mulC(i, stride));
    if (stride == 1)
      return b.store(runOf(source, position, width), target, i);
    if (stride == 2) {
      Value low = runOf(source, position, width), high = runOf(source, b.addC(position, lanes), width);
      for (int64_t from : {0, 1}) {
        SmallVector<int64_t> order;
        for (int64_t lane = 0; lane < lanes; ++lane)
          order.push_back(from + 2 * lane);
        b.store(vector::ShuffleOp::create(b, low, high, order), target, b.add(b.mulC(phase, from), i));
      }
      return;
    }
    b.forLoop(0, stride, 1, [&](Value k) {
      b.store(gathered(source, b.add(position, k), width), target, b.add(b.mul(phase, k), i));
    });
  });
}

/// Adjacent elements of a row from a position on; zeros outside of it.
Value PixelConv::runOf(Value source, Value position, Value width) {
  auto until = [&](Value limit) { return b.headMask(lanes, b.maxS(b.sub(limit, position), b.idx(0))); };
  Value on = arith::AndIOp::create(
      b, until(width),
      arith::XOrIOp::create(b, until(b.idx(0)), b.constantInt(VectorType::get({lanes}, b.getI1Type()), 1)));
  return widened(b.maskedLoad(element, source, position, on));
}

/// Elements of a row a stride apart; zeros outside of it.
Value PixelConv::gathered(Value source, Value position, Value width) {
  SmallVector<Value> elements;
  auto one = VectorType::get({1}, b.getI1Type());
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = b.addC(position, lane * s.stride());
    Value inside = b.cmp(arith::CmpIPredicate::ult, at, width);
    Value x = b.maskedLoad(element, source, at, vector::BroadcastOp::create(b, one, inside));
    elements.push_back(widened(vector::ExtractOp::create(b, x, 0)));
  }
  return vector::FromElementsOp::create(b, VectorType::get({lanes}, accType), elements);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// All channels of the item for some pixels, as many at a time as there are registers.
void PixelConv::emitTile(Tile tile, Value firstChannel) {
  for (tile.rows = s.channels; tile.rows > 1 && tile.rows * tile.vectors > sums;)
    tile.rows /= 2;
  b.forLoop(b.idx(0), b.idx(s.channels), b.idx(tile.rows), [&](Value row) {
    Tile part = tile;
    part.oc = b.add(firstChannel, row);
    for (int64_t r = 0; r < part.rows; ++r) {
      Value oc = b.addC(part.oc, r);
      part.weights.push_back(b.mulC(allExist() ? oc : b.minS(oc, b.idx(channelCount() - 1)), s.groupIc * s.taps));
    }
    store(part, reduce(part));
  });
}

SmallVector<Value> PixelConv::reduce(const Tile &tile) {
  Value rowElements = b.mulC(phase, s.stride()), weights = pointer(op.getWeights());
  RegisterTile registers{tile.rows, tile.vectors, lanes, accType};
  return b.forLoop(b.idx(0), b.idx(s.rows()), b.idx(1), zeroTile(b, registers), [&](Value row, ValueRange carried) {
    SmallVector<Value> acc(carried);
    Value from = b.add(b.mul(row, rowElements), tile.at), weight = b.mulC(row, s.kernel());
    for (int64_t tap = 0; tap < s.kernel(); ++tap) {
      int64_t distance = tap * last().dilation;
      Value at = b.addC(b.add(from, b.mulC(phase, distance % s.stride())), distance / s.stride());
      SmallVector<Value> x;
      for (int64_t v = 0; v < tile.vectors; ++v)
        x.push_back(b.load(accType, b.scratch(), b.addC(at, v * lanes), lanes));
      for (int64_t r = 0; r < tile.rows; ++r) {
        Value w = b.splat(widened(b.load(element, weights, b.add(tile.weights[r], b.addC(weight, tap)))), lanes);
        for (int64_t v = 0; v < tile.vectors; ++v)
          acc[r * tile.vectors + v] = multiplyAdd(b, x[v], w, acc[r * tile.vectors + v]);
      }
    }
    return acc;
  });
}

void PixelConv::store(const Tile &tile, ArrayRef<Value> acc) {
  auto write = [&](int64_t r, int64_t v) {
    Value at = b.addC(tile.at, v * lanes);
    ElementExpr::Lanes scope(e, lanes, b.headMask(lanes, b.sub(count, at)));
    e.forget();
    Value narrow = fromAccumulator(e, acc[r * tile.vectors + v], element);
    e.bind(op.getResult(), [narrow](ArrayRef<Index>) { return narrow; });
    Indices index(rank, e.at(0));
    index[0] = e.at(image);
    index[1] = e.at(b.addC(tile.oc, r));
    for (auto [i, value] : llvm::enumerate(leading))
      index[i + 2] = e.at(value);
    Index rest = e.at(b.add(pixel, at), 1, 1);
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
         mlir::isa<BlockArgument>(op.getInput()) && mlir::isa<BlockArgument>(op.getWeights()) &&
         PixelSpec(op).scratchBytes() <= kMaxScratch;
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
  plan.scratch = spec->scratchBytes();
  plan.emit = [body, spec, work](KernelBuilder &b) {
    PixelConv conv(b, body, *spec);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) { conv.run(outer, lo, hi); });
  };
  return plan;
}
