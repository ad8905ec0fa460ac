//===- ConvOpen.cpp - blocked convolutions over images of open sizes ----------===//
//
// The register tiles of Conv.h (pixels times output channels, one input element for a vector of channels) where batch
// and spatial dims are known at run time. A work item is a span of output positions times some output channels. What
// its pixels read is gathered in scratch first, so that a tile's pixels are a constant distance apart whatever row they
// are in, and padding is zeros:
//   blocked input  [blocks of 16 input channels][taps][positions][16]; a span counts through all spatial axes
//   plain input    rows as SegmentCopy makes them; a span lies in one row
// A pointwise convolution reads full tiles in place. Where weights are few, which they are where images are large,
// spans of a blocked input lie in one row too: tiles whose taps are all inside the image read it in place, those at its
// borders copy what they read, [blocks][taps of the leading axes][columns][16]. Tiles are static: the last positions of
// a span take the smallest one that holds them, and what it computes beyond them is not stored.
//
// A blocked input of 4 x 5 pixels a..t, window 3 x 3, padding 1: one span of 20 positions, gathered for each of 9 taps.
//
//     image             outputs             scratch [tap][position], each cell 16 channels
//     a b c d e          0  1  2 [3  4      tap (0, 0)   0 0 0[0 0   0 a b c]d   0 f g h i   0 k l m n
//     f g h i j          5  6  7  8] 9      tap (0, 1)   0 0 0[0 0   a b c d]e   f g h i j   k l m n o
//     k l m n o         10 11 12 13 14      tap (1, 1)   a b c[d e   f g h i]j   k l m n o   p q r s t
//     p q r s t         15 16 17 18 19      ...
//
// The tile of 6 pixels from output 3 reads [..] of every tap: 6 cells in a row, though outputs 4 and 5 lie in two rows
// of the image. It adds 9 taps x 16 channels of products to 6 pixels x `vectors` of output channels, in registers. With
// tiles of 6, 20 = 6 + 6 + 6 + 2: the last two positions take a tile of 2. By row (few weights), a span ends with its
// row of outputs, and a tile whose taps are all inside the image reads three rows of it where they lie.
//
//===----------------------------------------------------------------------===//

#include "ConvOpen.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// Input channels in one iteration of the innermost loop.
constexpr int64_t kUnroll = 4;
/// Tiles for the pixels that are left.
constexpr int64_t kRestTiles[] = {1, 2, 4, 7, 10};
/// How many input channels ahead weights are fetched.
constexpr int64_t kPrefetchSteps = 64;
/// Columns of a tile's copy.
constexpr int64_t kRowColumns = 64;

OpenSpec::OpenSpec(dmir::ConvOp op, bool blocked) : PixelSpec(op), blocked(blocked) {
  const CacheShares &caches = IsaLevel::nominal().caches;
  byRow =
      blocked && !isPointwise && outChannels() * steps() * 4 <= caches.rowWeights && columns(kMaxPixels) <= kRowColumns;
  // Multiples of the most common tiles, 14 and 6 pixels.
  segment = 84;
  if (blocked && !isPointwise && inputBytes() > caches.spanInput)
    segment = 56;
  channels = groups == 1 ? std::min<int64_t>(128, llvm::alignTo(groupOc, 16)) : groupOc % 128 == 0 ? 128 : groupOc;
}

OpenConv::OpenConv(CpuBuilder &b, const Convolution &conv, const OpenSpec &spec, int64_t scratchOffset)
    : b(b), conv(conv), s(spec), weights(packedWeights(b, conv)), writer(b, conv),
      rows(b, conv.op, spec, conv.spec.accType), f32(conv.spec.accType) {
  lanes = b.isa().lanes(32);
  TileShape most = largestConvTile(b.isa(), f32, s.steps());
  tileRows = most.rows;
  vectors = most.vectors;
  while (vectors > 1 && (s.groups > 1 ? s.groupOc % (vectors * lanes) != 0 : vectors / 2 * lanes >= s.groupOc))
    vectors /= 2;
  RegisterTile full{tileRows, vectors, lanes, f32};
  full.chains = std::min(kMostChains, chainsThatFit(b.isa(), full));
  chains = s.steps() > convStretch(s.steps()) && !totalsFit(b.isa(), full) ? 1 : full.chains;
  input = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(scratchOffset));
  sums = b.elementPtr(b.getI8Type(), input, b.idx(static_cast<int64_t>(llvm::alignTo(s.inputBytes(), 64))));
}

void OpenConv::run(ArrayRef<Value> outer) {
  Value firstOc = b.mulC(outer[1], s.channels), first = b.mulC(outer.back(), s.segment);
  if (s.byRow)
    runRow(outer[0], firstOc, outer.drop_front(2).drop_back(), first);
  else if (s.blocked)
    runBlocked(outer[0], firstOc, first);
  else
    runPlain(outer[0], firstOc, outer.drop_front(2).drop_back(), first);
}

/// Finds the group's channels of an image in a blocked input.
void OpenConv::locate(Value image, Value firstOc) {
  Value block = s.groups == 1 ? b.idx(0) : b.mulC(b.floorDiv(firstOc, b.idx(s.groupOc)), s.groupIc / 16);
  Dim size = 1;
  for (const WindowAxis &axis : s.axes)
    size *= axis.in;
  plane = b.idx(size);
  Value channels = b.add(b.mulC(image, Dim::ceilDiv(s.inChannels, 16)), block);
  source = b.elementPtr(f32, b.buffer(conv.inputBuffer), b.mulC(b.mul(channels, plane), 16));
}

/// The number of an output row.
Value OpenConv::rowOf(ArrayRef<Value> leading) {
  Value row = b.idx(0);
  for (auto [i, at] : llvm::enumerate(leading))
    row = b.add(b.mulC(row, s.axes[i].out), at);
  return row;
}

void OpenConv::runBlocked(Value image, Value firstOc, Value first) {
  locate(image, firstOc);
  Value count = b.minS(b.sub(b.idx(s.positions()), first), b.idx(s.segment)), end = b.add(first, count);
  // In place, a tile that is not full would read beyond the image.
  Value from = s.isPointwise ? b.add(first, b.mulC(b.floorDiv(count, b.idx(tileRows)), tileRows)) : first;
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, from, end), [&] { gather(from, end, first); });
  if (s.isPointwise)
    source = b.elementPtr(f32, source, b.mulC(first, 16));
  forGroups(firstOc, [&](const Group &group) { tiles(group, image, first, count, s.isPointwise); });
}

void OpenConv::runPlain(Value image, Value firstOc, ArrayRef<Value> leading, Value first) {
  Value group = s.groups == 1 ? b.idx(0) : b.floorDiv(firstOc, b.idx(s.groupOc));
  Value channel = b.add(b.mulC(image, s.inChannels), b.mulC(group, s.groupIc));
  Value count = b.minS(b.sub(b.idx(s.axes.back().out), first), b.idx(s.segment));
  rows.copy(input, channel, leading, first, count);
  Value position = b.add(b.mulC(rowOf(leading), s.axes.back().out), first);
  forGroups(firstOc, [&](const Group &g) { tiles(g, image, position, count, false); });
}

void OpenConv::runRow(Value image, Value firstOc, ArrayRef<Value> leading, Value first) {
  locate(image, firstOc);
  const WindowAxis &last = s.axes.back();
  Value position = b.add(b.mulC(rowOf(leading), s.axes.back().out), first);
  // Of tap 0 of the leading axes: the row in the image, and whether all taps are inside.
  Value row = b.idx(0), inside = b.constantInt(b.getI1Type(), 1);
  auto both = [&](Value other) { inside = arith::AndIOp::create(b, inside, other); };
  for (auto [i, at] : llvm::enumerate(leading)) {
    const WindowAxis &axis = s.axes[i];
    Value origin = axis.origin(b, at);
    both(b.cmp(arith::CmpIPredicate::sge, origin, b.idx(0)));
    both(b.cmp(arith::CmpIPredicate::slt, b.add(origin, b.idx((axis.taps - 1) * axis.dilation)), b.idx(axis.in)));
    row = b.add(b.mulC(row, axis.in), origin);
  }
  Value rowInside = inside;
  Value count = b.minS(b.sub(b.idx(s.axes.back().out), first), b.idx(s.segment));
  cutInTiles(b, count, tileRows, kRestTiles, [&](int64_t pixels, Value at, Value left) {
    Value column = last.origin(b, b.add(first, at));
    inside = rowInside;
    both(b.cmp(arith::CmpIPredicate::sge, column, b.idx(0)));
    both(b.cmp(arith::CmpIPredicate::sle, b.addC(column, s.columns(pixels)), b.idx(last.in)));
    b.ifThen(inside, [] {}, [&] { copyTile(leading, column, pixels); });
    auto choose = [&](Value there, Value copied) -> Value { return arith::SelectOp::create(b, inside, there, copied); };
    Tile tile{pixels, at};
    tile.pixels = choose(b.elementPtr(f32, source, b.mulC(b.add(b.mulC(row, last.in), column), 16)), input);
    int64_t copied = s.columns(pixels) * 16;
    Value there = b.mulC(b.idx(last.in), 16);
    tile.tapStrides.resize(leading.size());
    for (size_t axis = leading.size(); axis-- > 0;) {
      tile.tapStrides[axis] = choose(b.mulC(there, s.axes[axis].dilation), b.idx(copied));
      there = b.mulC(there, s.axes[axis].in);
      copied *= *s.axes[axis].taps.known();
    }
    tile.blockStride = choose(b.mulC(plane, 16), b.idx(copied));
    forGroups(firstOc,
              [&](const Group &group) { store(group, image, b.add(position, at), left, pixels, reduce(group, tile)); });
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The vectors of an item's channels, those of the last one as far as they exist.
void OpenConv::forGroups(Value firstOc, llvm::function_ref<void(const Group &)> body) {
  int64_t columns = vectors * lanes, full = s.outChannels() / columns * columns, tail = s.outChannels() - full;
  auto groupAt = [&](Value oc, int64_t count, int64_t tailChannels) {
    Value at = b.add(b.mulC(b.floorDiv(oc, b.idx(16)), panelElements()), b.rem(oc, b.idx(16)));
    body({oc, b.elementPtr(f32, weights, at), count, tailChannels});
  };
  Value end = b.addC(firstOc, s.channels);
  b.forLoop(firstOc, b.minS(end, b.idx(full)), b.idx(columns), [&](Value oc) { groupAt(oc, vectors, 0); });
  if (tail)
    b.ifThen(b.cmp(arith::CmpIPredicate::sgt, end, b.idx(full)),
             [&] { groupAt(b.idx(full), ceilDivInt(tail, lanes), tail); });
}

/// All tiles of a span whose first position in the image is `position`; full ones in place if asked for.
void OpenConv::tiles(const Group &group, Value image, Value position, Value count, bool inPlace) {
  cutInTiles(b, count, tileRows, kRestTiles, [&](int64_t pixels, Value at, Value left) {
    store(group, image, b.add(position, at), left, pixels, reduce(group, {pixels, at, left || !inPlace}));
  });
}

SmallVector<Value> OpenConv::reduce(const Group &group, const Tile &tile) {
  RegisterTile regs = registers(group, tile);
  SmallVector<Value> zeros = zeroTile(b, regs);
  return sumChains(b, regs,
                   s.byRow     ? reduceRow(group, tile, zeros)
                   : s.blocked ? reduceBlocked(group, tile, zeros)
                               : reducePlain(group, tile, zeros));
}

/// Sums over [0, count), of `terms` terms each.
SmallVector<Value> OpenConv::inStretches(const Group &group, const Tile &tile, int64_t count, int64_t terms,
                                         ValueRange init,
                                         llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  RegisterTile regs = registers(group, tile);
  int64_t stretch = stepsOfStretch(convStretch(s.steps()) * regs.chains, terms);
  return sumInStretches(b, regs, b.idx(0), b.idx(count), 1, stretch, init, body);
}

/// `count` channels of a block, for one tap. `ahead`: how far the elements are that come next, where that is not close.
SmallVector<Value> OpenConv::channels(const Group &group, const Tile &tile, Value from, Value weight, int64_t count,
                                      Value ahead, ValueRange init) {
  SmallVector<Value> acc(init);
  int64_t distance = s.byRow ? s.stride() * 16 : 16;
  auto steps = [&](int64_t low, int64_t high, int64_t width) {
    acc = b.forLoop(b.idx(low), b.idx(high), b.idx(width), acc, [&](Value channel, ValueRange inner) {
      SmallVector<Value> next(inner);
      Value x = b.elementPtr(f32, from, channel), w = b.elementPtr(f32, weight, b.mulC(channel, 16));
      if (ahead && width == kUnroll) { // over a block each of the pixels' lines once
        Value line = b.elementPtr(f32, from, b.add(ahead, b.mulC(channel, 16)));
        for (int64_t u = 0; u < width; ++u)
          b.prefetch(f32, line, b.idx(u * 16), /*locality=*/3);
      }
      for (int64_t u = 0; u < width; ++u)
        step(group, registers(group, tile), b.elementPtr(f32, x, b.idx(u)), distance,
             b.elementPtr(f32, w, b.idx(u * 16)), u, next);
      return next;
    });
  };
  int64_t main = count / kUnroll * kUnroll;
  steps(0, main, kUnroll);
  steps(main, count, 1);
  return acc;
}

SmallVector<Value> OpenConv::reduceRow(const Group &group, const Tile &tile, ValueRange init) {
  // Taps from axis `axis` on of `count` channels.
  auto taps = [&](auto &&self, size_t axis, Value from, Value tap, Value weight, int64_t count,
                  ValueRange carried) -> SmallVector<Value> {
    if (axis == s.axes.size())
      return channels(group, tile, from, b.elementPtr(f32, weight, b.mulC(tap, count * 16)), count, {}, carried);
    const WindowAxis &window = s.axes[axis];
    Value stride = axis + 1 == s.axes.size() ? b.idx(window.dilation * 16) : tile.tapStrides[axis];
    return b.forLoop(b.idx(0), b.idx(window.taps), b.idx(1), carried, [&](Value k, ValueRange inner) {
      return self(self, axis + 1, b.elementPtr(f32, from, b.mul(k, stride)), b.add(b.mulC(tap, window.taps), k), weight,
                  count, inner);
    });
  };
  auto block = [&](Value index, int64_t count, ValueRange carried) {
    Value weight = b.elementPtr(f32, group.weights, b.mulC(index, s.taps * 256));
    return taps(taps, 0, b.elementPtr(f32, tile.pixels, b.mul(index, tile.blockStride)), b.idx(0), weight, count,
                carried);
  };
  int64_t full = s.groupIc / 16, rest = s.groupIc % 16;
  SmallVector<Value> acc = inStretches(group, tile, full, 16 * s.taps, init,
                                       [&](Value index, ValueRange carried) { return block(index, 16, carried); });
  return rest ? block(b.idx(full), rest, acc) : acc;
}

SmallVector<Value> OpenConv::reduceBlocked(const Group &group, const Tile &tile, ValueRange init) {
  Value pixels = b.elementPtr(f32, tile.gathered ? input : source, b.mulC(tile.at, 16));
  Value distance = tile.gathered ? b.idx(tapElements()) : b.mulC(plane, 16); // between blocks, or taps of one
  int64_t full = s.groupIc / 16 * s.taps, rest = s.groupIc % 16;
  SmallVector<Value> acc =
      inStretches(group, tile, full, 16, init, [&](Value index, ValueRange carried) -> SmallVector<Value> {
        Value from = b.elementPtr(f32, pixels, b.mul(index, distance));
        return channels(group, tile, from, b.elementPtr(f32, group.weights, b.mulC(index, 256)), 16, distance, carried);
      });
  if (!rest)
    return acc;
  Value last = b.elementPtr(f32, group.weights, b.idx(full * 256));
  return b.forLoop(b.idx(0), b.idx(s.taps), b.idx(1), acc, [&](Value tap, ValueRange carried) -> SmallVector<Value> {
    Value from = b.elementPtr(f32, pixels, b.mul(b.addC(tap, full), distance));
    return channels(group, tile, from, b.elementPtr(f32, last, b.mulC(tap, rest * 16)), rest, distance, carried);
  });
}

SmallVector<Value> OpenConv::reducePlain(const Group &group, const Tile &tile, ValueRange init) {
  return inStretches(group, tile, s.rows(), s.kernel(), init, [&](Value row, ValueRange carried) {
    Value weight = b.elementPtr(f32, group.weights, b.mulC(row, s.kernel() * 16));
    return rows.forTaps(row, carried, [&](Value offset, Value tap, int64_t number, MutableArrayRef<Value> acc) {
      Value from = b.elementPtr(f32, input, b.add(offset, tile.at));
      step(group, registers(group, tile), from, 1, b.elementPtr(f32, weight, b.mulC(tap, 16)), number, acc);
    });
  });
}

/// One input channel and tap: pixels `distance` elements apart. `term`: its number, which tells its chain.
void OpenConv::step(const Group &group, const RegisterTile &regs, Value pixels, int64_t distance, Value weight,
                    int64_t term, MutableArrayRef<Value> acc) {
  // A pointer of its own keeps LLVM from sharing loads between taps and running out of registers.
  pixels = b.opaque(pixels);
  SmallVector<Value> w;
  for (int64_t v = 0; v < group.vectors; ++v) {
    int64_t column = v * lanes;
    w.push_back(b.load(f32, weight, b.idx(column / 16 * panelElements() + column % 16), lanes));
    if (column % 16 == 0)
      b.prefetch(f32, weight, b.idx(column / 16 * panelElements() + kPrefetchSteps * 16), /*locality=*/2);
  }
  accumulateTile(
      b, regs, acc, [&](int64_t r) { return b.load(f32, pixels, b.idx(r * distance)); }, w, term % regs.chains);
}

/// Stores a tile's pixels, the first `count` of them where that is not null.
void OpenConv::store(const Group &group, Value image, Value position, Value count, int64_t rows, ArrayRef<Value> acc) {
  auto pixel = [&](Value at, llvm::function_ref<Value(int64_t)> value) {
    for (int64_t v = 0; v < group.vectors; ++v) {
      int64_t left = group.tailChannels - v * lanes;
      Value mask = group.tailChannels && left < lanes ? b.headMask(lanes, left) : Value();
      writer.write(image, b.addC(group.oc, v * lanes), at, value(v), mask);
    }
  };
  if (!count && !conv.spec.heavyEpilogue) {
    for (int64_t r = 0; r < rows; ++r)
      pixel(b.addC(position, r), [&](int64_t v) { return acc[r * group.vectors + v]; });
    return;
  }
  for (auto [i, value] : llvm::enumerate(acc))
    b.store(value, sums, b.idx(static_cast<int64_t>(i) * lanes));
  b.forLoop(b.idx(0), count ? count : b.idx(rows), b.idx(1), [&](Value r) {
    Value row = b.mulC(r, group.vectors * lanes);
    pixel(b.add(position, r), [&](int64_t v) { return b.load(f32, sums, b.addC(row, v * lanes), lanes); });
  });
}

static bool readsBlocks(dmir::ConvOp op) { return static_cast<bool>(dmir::layoutOf(op.getInput().getType())); }

bool dmxc::cpu::mayBlockOpenConv(dmir::ConvOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType()),
       weights = cast<RankedTensorType>(op.getWeights().getType());
  bool open = !input.hasStaticShape() || op.getDims();
  if (!open || !weights.getElementType().isF32() || !weights.hasStaticShape() || !weights.getNumElements())
    return false;
  if (input.isDynamicDim(1) || input.getRank() < 3)
    return false;
  OpenSpec spec(op, readsBlocks(op) || input.getDimSize(1) >= 16);
  if (spec.groups == 1)
    return spec.inputBytes() <= IsaLevel::nominal().caches.copiedInput;
  if (spec.groupIc == 1 && spec.groupOc == 1) // narrow ones keep the layout they are given
    return spec.blocked;
  return spec.groupIc % 16 == 0 && spec.groupOc % 16 == 0 &&
         spec.inputBytes() <= IsaLevel::nominal().caches.copiedInput;
}

bool dmxc::cpu::isOpenConv(dmir::ConvOp op) {
  return dmir::layoutOf(op.getResult().getType()) && mayBlockOpenConv(op) && (readsBlocks(op) || op.getGroups() == 1);
}

KernelPlan dmxc::cpu::planOpenConv(const std::shared_ptr<Convolution> &conv, int64_t scratchOffset,
                                   const Choice &choice) {
  auto spec = std::make_shared<OpenSpec>(conv->op, readsBlocks(conv->op));
  SmallVector<Dim> dims{spec->batch, ceilDivInt(spec->outChannels(), spec->channels)};
  if (spec->inRows())
    llvm::append_range(dims, ArrayRef(spec->out()).drop_back());
  dims.push_back(Dim::ceilDiv(spec->inRows() ? spec->axes.back().out : spec->positions(), spec->segment));
  dims.push_back(1); // a span is never cut
  WorkPlan work =
      choice.nominal.planWork(conv->body.block, dims, 0.02 * spec->segment * spec->channels * spec->steps() + 1);
  constexpr int64_t kMaxSums = 16 * 32 * 4;
  KernelPlan plan("conv-open", work);
  plan.scratch = scratchOffset + static_cast<int64_t>(llvm::alignTo(spec->inputBytes(), 64)) + kMaxSums;
  plan.emit = [conv, spec, work, scratchOffset](KernelBuilder &b) {
    OpenConv emitter(CpuBuilder::of(b), *conv, *spec, scratchOffset);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value, Value) { emitter.run(outer); });
  };
  return plan;
}
