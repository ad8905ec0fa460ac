//===- ConvPixels.cpp - convolutions over images of open sizes ----------------===//
//
// For a batch and spatial dims that a run brings, in row-major layout: lanes are adjacent pixels of an output row, and
// a register tile is some vectors of them times some output channels. The input that a span of pixels reads is copied
// to scratch first, with zeros for the padding and one row a tap, cut in phases where the stride is not 1: what the
// tiles load is contiguous and whatever the place. Weights are read as they are, an element for a whole vector.
//
//===----------------------------------------------------------------------===//

#include "ConvRegion.h"
#include "ConvSegment.h"
#include "targets/cpu/product/GemmTile.h"
#include "targets/cpu/product/MatmulRegion.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

class PixelConv {
public:
  PixelConv(CpuBuilder &b, const RegionBody &body, const PixelSpec &spec)
      : b(b), e(b, body.block), writer(e, body), op(cast<dmir::ConvOp>(body.root)), s(spec),
        element(getElementTypeOrSelf(op.getResult().getType())), accType(e.computed(element)),
        input(b, op, spec, accType) {
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

  void emitTile(Tile tile, Value firstChannel);
  SmallVector<Value> reduce(const Tile &tile);
  void store(const Tile &tile, ArrayRef<Value> acc);

  /// Whether no item has channels beyond the last one.
  bool allExist() const { return s.outChannels() % s.channels == 0; }
  Value pointer(Value tensor) { return b.buffer(cast<BlockArgument>(tensor).getArgNumber()); }

  CpuBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  dmir::ConvOp op;
  const PixelSpec &s;
  Type element, accType;
  SegmentCopy input;
  int64_t lanes, sums, most;
  size_t rank;
  std::optional<unsigned> joined; ///< carries a position through all spatial axes, where the epilogue allows that
  // Of the item and its segment.
  Value image;
  SmallVector<Value> leading;
  Value pixel, count; ///< the first one of the segment, and how many there are
};

void PixelConv::run(ArrayRef<Value> outer, Value lo, Value hi) {
  image = outer[0];
  leading.assign(outer.begin() + 2, outer.end());
  Value oc = b.mulC(outer[1], s.channels);
  Value group = s.groups == 1 ? b.idx(0) : b.floorDiv(oc, b.idx(s.groupOc));
  Value firstInput = b.add(b.mul(image, b.idx(s.inChannels)), b.mulC(group, s.groupIc));
  b.forLoop(lo, hi, b.idx(s.segment), [&](Value first) {
    pixel = first;
    count = b.minS(b.sub(hi, first), b.idx(s.segment));
    input.copy(b.scratch(), firstInput, leading, pixel, count);
    // Tiles of about equal width: a narrow one at the end would be slow.
    Value vectors = b.ceilDiv(count, b.idx(lanes)), tiles = b.ceilDiv(vectors, b.idx(most));
    Value step = b.mulC(b.ceilDiv(vectors, tiles), lanes);
    b.forLoop(b.idx(0), count, step, [&](Value at) {
      Value left = b.minS(b.sub(count, at), step);
      auto fewest = [&](auto &&self, int64_t vectors) -> void {
        if (vectors == most)
          return emitTile({at, vectors}, oc);
        Value fits = b.cmp(arith::CmpIPredicate::sle, left, b.idx(vectors * lanes));
        b.ifThen(fits, [&] { emitTile({at, vectors}, oc); }, [&] { self(self, vectors + 1); });
      };
      fewest(fewest, 1);
    });
  });
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
      part.weights.push_back(b.mulC(allExist() ? oc : b.minS(oc, b.idx(s.outChannels() - 1)), s.groupIc * s.taps));
    }
    store(part, reduce(part));
  });
}

SmallVector<Value> PixelConv::reduce(const Tile &tile) {
  Value weights = pointer(op.getWeights());
  RegisterTile registers{tile.rows, tile.vectors, lanes, accType};
  auto step = [&](Value row, ValueRange carried) {
    Value weight = b.mulC(row, s.kernel());
    return input.forTaps(row, carried, [&](Value offset, Value tap, int64_t, MutableArrayRef<Value> acc) {
      Value at = b.add(offset, tile.at);
      SmallVector<Value> x;
      for (int64_t v = 0; v < tile.vectors; ++v)
        x.push_back(b.load(accType, b.scratch(), b.addC(at, v * lanes), lanes));
      for (int64_t r = 0; r < tile.rows; ++r) {
        Value w = b.splat(input.widened(b.load(element, weights, b.add(tile.weights[r], b.add(weight, tap)))), lanes);
        for (int64_t v = 0; v < tile.vectors; ++v)
          acc[r * tile.vectors + v] = multiplyAdd(b, x[v], w, acc[r * tile.vectors + v]);
      }
    });
  };
  return sumInStretches(b, registers, b.idx(0), b.idx(s.rows()), 1,
                        stepsOfStretch(convStretch(s.rows() * s.kernel()), s.kernel()), zeroTile(b, registers), step);
}

void PixelConv::store(const Tile &tile, ArrayRef<Value> acc) {
  auto write = [&](int64_t r, int64_t v) {
    Value at = b.addC(tile.at, v * lanes);
    bool single = s.axes.back().out.is(1); // the writer wants a scalar where the axis has one element
    ElementExpr::Lanes scope(e, single ? 1 : lanes, single ? Value() : b.headMask(lanes, b.sub(count, at)));
    e.forget();
    Value sum = acc[r * tile.vectors + v];
    Value narrow = fromAccumulator(e, single ? Value(vector::ExtractOp::create(b, sum, 0)) : sum, element);
    e.bind(op.getResult(), [narrow](ArrayRef<Index>) { return narrow; });
    Indices index(rank, e.at(0));
    index[0] = e.at(image);
    index[1] = e.at(b.addC(tile.oc, r));
    for (auto [i, value] : llvm::enumerate(leading))
      index[i + 2] = e.at(value);
    Index rest = single ? e.at(b.add(pixel, at)) : e.at(b.add(pixel, at), 1, 1);
    if (s.isOneAxis && !joined)
      for (size_t axis = rank - 1; axis > 2; --axis)
        std::tie(rest, index[axis]) = e.divRem(rest, Dim::max(dmir::dimOf(op.getResult(), axis), 1));
    index[s.isOneAxis ? joined.value_or(2) : s.axes.size() + 1] = rest;
    writer.write(index);
  };
  for (int64_t r = 0; r < tile.rows; ++r) {
    auto vectors = [&] {
      for (int64_t v = 0; v < (s.axes.back().out.is(1) ? 1 : tile.vectors); ++v)
        write(r, v);
    };
    if (allExist())
      vectors();
    else
      b.ifThen(b.cmp(arith::CmpIPredicate::slt, b.addC(tile.oc, r), b.idx(s.outChannels())), vectors);
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
         PixelSpec(op).scratchBytes() <= IsaLevel::nominal().caches.copiedInput;
}

bool dmxc::cpu::prefersPixels(const RegionBody &body) {
  auto op = cast<dmir::ConvOp>(body.root);
  if (!isPixelConv(body) || op.getGroups() != 1)
    return false;
  PixelSpec spec(op);
  return spec.groupOc < 8 && spec.axes.back().out.valueOr(0) >= 8;
}

KernelPlan dmxc::cpu::planPixelConv(const RegionBody &body, const Choice &choice) {
  auto spec = std::make_shared<PixelSpec>(cast<dmir::ConvOp>(body.root));
  SmallVector<Dim> dims{spec->batch, ceilDivInt(spec->groupOc * spec->groups, spec->channels)};
  dims.append(spec->out());
  WorkPlan work = choice.nominal.planWork(body.block, dims, 0.03 * spec->channels * spec->groupIc * spec->taps + 1);
  KernelPlan plan("conv-pixels", work);
  plan.scratch = spec->scratchBytes();
  plan.emit = [body, spec, work](KernelBuilder &b) {
    PixelConv conv(CpuBuilder::of(b), body, *spec);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) { conv.run(outer, lo, hi); });
  };
  return plan;
}
