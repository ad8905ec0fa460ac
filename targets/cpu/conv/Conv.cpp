//===- Conv.cpp - convolution kernels ------------------------------------===//

#include "ConvEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Work items
//===----------------------------------------------------------------------===//

ConvEmitter::ConvEmitter(CpuBuilder &b, const ConvKernel &original, const ConvTiles &tiles, Value input, Value weights,
                         const ConvCallbacks &callbacks, Value n, int64_t scratchOffset)
    : b(b), spec(normalized(original)), t(tiles), input(input), weights(weights), callbacks(callbacks) {
  images = spec.n < 0 ? n : b.idx(spec.n);
  scratch = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(scratchOffset));
  words = b.elementPtr(b.getI8Type(), scratch, b.idx(convSumBytes(spec, t)));
  spans = planRow(spec, t.rows);
  this->tiles = tilesOfRow(spec, t.rows);
}

void ConvEmitter::emit() {
  Value parts = b.idx(ceilDivInt(tiles, t.tilesPerItem));
  Value rows = b.idx(t.passes ? 1 : spec.out[0] * spec.out[1]);
  int64_t fullGroups = spec.oc / t.columns(), tail = spec.oc % t.columns();
  b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value index) {
    Item item;
    item.part = b.rem(index, parts);
    Value rest = b.floorDiv(index, parts);
    item.row = b.rem(rest, rows);
    rest = b.floorDiv(rest, rows);
    item.image = b.rem(rest, images);
    Value group = b.floorDiv(rest, images);
    item.oc = b.mulC(group, t.columns());
    if (t.words)
      widenWeights(item.oc);
    auto full = [&] { emitItem(t.vectors, 0, item); };
    auto last = [&] { emitItem(ceilDivInt(tail, t.lanes), tail, item); };
    if (!tail)
      return full();
    if (!fullGroups)
      return last();
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, group, b.idx(fullGroups)), full, last);
  });
}

/// Taps of spatial dim `dim` that lie inside the input when tap 0 is at
/// `origin`.
void ConvEmitter::clip(int64_t dim, Value origin, Value &low, Value &high) {
  int64_t taps = spec.kernel[dim], dilation = spec.dilation[dim];
  int64_t last = (spec.out[dim] - 1) * spec.stride[dim] - spec.pad[dim] + (taps - 1) * dilation;
  low = b.idx(0);
  high = b.idx(taps);
  if (spec.pad[dim] > 0)
    low = b.ceilDiv(b.maxS(b.idx(0), b.sub(b.idx(0), origin)), b.idx(dilation));
  if (last >= spec.in[dim]) {
    Value room = b.maxS(b.idx(0), b.sub(b.idx(spec.in[dim]), origin));
    high = b.minS(high, b.ceilDiv(room, b.idx(dilation)));
  }
}

void ConvEmitter::locateRow(Item &item) {
  Value od = b.floorDiv(item.row, b.idx(spec.out[1]));
  Value oh = b.rem(item.row, b.idx(spec.out[1]));
  item.depth = b.addC(b.mulC(od, spec.stride[0]), -spec.pad[0]);
  item.height = b.addC(b.mulC(oh, spec.stride[1]), -spec.pad[1]);
  clip(0, item.depth, item.kdLow, item.kdHigh);
  clip(1, item.height, item.khLow, item.khHigh);
}

void ConvEmitter::locateChannels(Item &item) {
  int64_t imageChannels = blocked() ? ceilDivInt(spec.ic, spec.blockElements()) * spec.blockElements() : spec.ic;
  Value offset = b.mulC(item.image, imageChannels * inPositions());
  if (t.mode == ConvMode::Broadcast && spec.groups > 1) {
    Value channel = b.mulC(b.floorDiv(item.oc, b.idx(spec.groupOc())), spec.groupIc());
    offset = b.add(offset, b.mulC(channel, inPositions()));
  }
  item.input = b.elementPtr(spec.aType, input, offset);
  if (t.words) {
    item.weights = b.elementPtr(spec.bType, words, b.rem(item.oc, b.idx(kPanelColumns)));
    return;
  }
  Value panel = b.floorDiv(item.oc, b.idx(16));
  Value at = b.add(b.mulC(panel, panelElements()), b.rem(item.oc, b.idx(16)));
  item.weights = b.elementPtr(spec.bType, weights, at);
}

void ConvEmitter::emitItem(int64_t vectors, int64_t tailChannels, Item item) {
  item.vectors = vectors;
  item.tailChannels = tailChannels;
  locateChannels(item);
  if (t.passes)
    return emitPasses(item);
  locateRow(item);
  emitRow(item);
}

/// All rows of an image, 16 input channels at a time: their weights stay in L1.
void ConvEmitter::emitPasses(Item &item) {
  int64_t rows = spec.out[0] * spec.out[1], columns = t.columns();
  Type vectorType = b.laneType(spec.accType, t.lanes);
  b.forLoop(0, spec.outPositions() * columns / t.lanes, 1,
            [&](Value i) { b.store(b.constant(vectorType, 0), scratch, b.mulC(i, t.lanes)); });
  b.forLoop(0, spec.groupIc() / spec.blockElements(), 1, [&](Value block) {
    item.passLow = block;
    item.passHigh = b.addC(block, 1);
    b.forLoop(0, rows, 1, [&](Value row) {
      item.row = row;
      locateRow(item);
      emitRow(item);
    });
  });
  b.forLoop(0, spec.outPositions(), 1, [&](Value position) {
    for (int64_t v = 0; v < item.vectors; ++v) {
      Value at = b.addC(b.mulC(position, columns), v * t.lanes);
      callbacks.store(item.image, b.addC(item.oc, v * t.lanes), position, b.load(spec.accType, scratch, at, t.lanes),
                      mask(item, v));
    }
  });
}

void ConvEmitter::emitRow(Item item) {
  Value low = b.mulC(item.part, t.tilesPerItem);
  Value high = b.minS(b.addC(low, t.tilesPerItem), b.idx(tiles));
  if (turns())
    item.firstPixel = firstPixelOf(low);
  for (const TileSpan &span : spans) {
    Value first = b.maxS(low, b.idx(span.firstTile));
    Value last = b.minS(high, b.idx(span.firstTile + span.count));
    b.forLoop(first, last, b.idx(1), [&](Value tileIndex) {
      Value inSpan = b.addC(tileIndex, -span.firstTile);
      Value step = b.mulC(inSpan, span.pixels);
      Value anchor = b.addC(b.mulC(step, spec.stride[2]), span.anchor);
      emitTile(item, {&span, tileIndex, b.addC(step, span.firstPixel), anchor});
    });
  }
  if (turns())
    storeTurned(item, item.firstPixel, firstPixelOf(high));
}

void ConvEmitter::emitTile(const Item &item, const Tile &tile) {
  int64_t most = t.vectorsAtOnce(tile.span->pixels);
  for (int64_t v = 0; v < item.vectors; v += most) {
    Item part = partOf(item, v, std::min(most, item.vectors - v));
    Values acc = t.passes ? loadPartials(part, tile) : zeroTile(b, registers(part, tile));
    acc = t.mode == ConvMode::Broadcast ? reduceBroadcast(part, tile, acc) : reduceLanes(part, tile, acc);
    for (Value &x : acc)
      x = b.widened(x, t.lanes);
    storeTile(part, tile, acc);
  }
}

/// A last vector of which half the channels exist is half as wide: where vectors of 512 bits are two of 256 to the
/// processor, it costs half.
RegisterTile ConvEmitter::registers(const Item &item, const Tile &tile) const {
  RegisterTile regs{tile.span->pixels, item.vectors, t.lanes, spec.accType, spec.fours};
  bool half = item.tailChannels && item.tailChannels <= item.vectors * t.lanes - t.lanes / 2;
  bool can = t.mode == ConvMode::Broadcast && !t.passes && !callbacks.mapB && b.isa().vectorBytes == 64;
  if (half && can && mlir::isa<FloatType>(spec.accType))
    regs.lastLanes = t.lanes / 2;
  return regs;
}

/// Some of an item's vectors of channels, as an item of their own.
ConvEmitter::Item ConvEmitter::partOf(const Item &item, int64_t firstVector, int64_t vectors) {
  Item part = item;
  int64_t column = firstVector * t.lanes;
  int64_t at = column / 16 * panelElements() + column % 16;
  part.oc = b.addC(item.oc, column);
  part.weights = b.elementPtr(spec.bType, item.weights, b.idx(at));
  part.vectors = vectors;
  part.firstVector = firstVector;
  if (item.tailChannels)
    part.tailChannels = item.tailChannels - column;
  return part;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value ConvEmitter::mask(const Item &item, int64_t v) {
  int64_t left = item.tailChannels - v * t.lanes;
  return item.tailChannels && left < t.lanes ? b.headMask(t.lanes, left) : Value();
}

void ConvEmitter::storeTile(const Item &item, const Tile &tile, const Values &acc) {
  if (t.passes || turns()) {
    for (int64_t r = 0; r < tile.span->pixels; ++r)
      for (int64_t v = 0; v < item.vectors; ++v)
        b.store(acc[r * item.vectors + v], scratch, partialOffset(item, tile, r, v));
    return;
  }
  Value position = b.add(b.mulC(item.row, spec.out[2]), tile.pixel);
  auto storePixel = [&](Value at, llvm::function_ref<Value(int64_t)> value) {
    for (int64_t v = 0; v < item.vectors; ++v)
      callbacks.store(item.image, b.addC(item.oc, v * t.lanes), at, value(v), mask(item, v));
  };
  if (!spec.heavyEpilogue) {
    for (int64_t r = 0; r < tile.span->pixels; ++r)
      storePixel(b.addC(position, r), [&](int64_t v) { return acc[r * item.vectors + v]; });
    return;
  }
  for (int64_t i = 0; i < static_cast<int64_t>(acc.size()); ++i)
    b.store(acc[i], scratch, b.idx(i * t.lanes));
  b.forLoop(0, tile.span->pixels, 1, [&](Value r) {
    Value row = b.mulC(r, item.vectors * t.lanes);
    storePixel(b.add(position, r),
               [&](int64_t v) { return b.load(spec.accType, scratch, b.addC(row, v * t.lanes), t.lanes); });
  });
}

/// The tiles of a row are balanced: the first ones have a pixel more (planRow).
Value ConvEmitter::firstPixelOf(Value tile) {
  int64_t low = spec.out[2] / tiles;
  return b.add(b.mulC(tile, low), b.minS(tile, b.idx(spec.out[2] - low * tiles)));
}

/// Pixels [first, last) of the item's row, channel by channel: as many of both at a time as a vector has lanes.
void ConvEmitter::storeTurned(const Item &item, Value first, Value last) {
  Value block = b.elementPtr(spec.accType, scratch, b.idx((pixelsOfItem(t, spec) + t.lanes) * t.columns()));
  Value row = b.mulC(item.row, spec.out[2]);
  b.forLoop(first, last, b.idx(t.lanes), [&](Value pixel) {
    b.forLoop(0, item.vectors, 1, [&](Value v) {
      Value from = b.add(b.mulC(b.sub(pixel, first), t.columns()), b.mulC(v, t.lanes));
      Values pixels;
      for (int64_t i = 0; i < t.lanes; ++i)
        pixels.push_back(b.load(spec.accType, scratch, b.addC(from, i * t.columns()), t.lanes));
      for (auto [i, channel] : llvm::enumerate(b.transposed(pixels)))
        b.store(channel, block, b.idx(static_cast<int64_t>(i) * t.lanes));
      Value channels = b.idx(t.lanes), oc = b.add(item.oc, b.mulC(v, t.lanes)), left = b.sub(last, pixel);
      if (item.tailChannels)
        channels = b.minS(channels, b.sub(b.idx(item.tailChannels), b.mulC(v, t.lanes)));
      auto store = [&](Value mask) {
        b.forLoop(b.idx(0), channels, b.idx(1), [&](Value i) {
          Value value = b.load(spec.accType, block, b.mulC(i, t.lanes), t.lanes);
          callbacks.storePixels(item.image, b.add(oc, i), b.add(row, pixel), value, mask);
        });
      };
      b.ifThen(
          b.cmp(arith::CmpIPredicate::sge, left, b.idx(t.lanes)), [&] { store({}); },
          [&] { store(b.headMask(t.lanes, left)); });
    });
  });
}

/// Where sums wait in scratch: those of all pixels of an image, or those of an item that are turned.
Value ConvEmitter::partialOffset(const Item &item, const Tile &tile, int64_t r, int64_t v) {
  Value position = turns() ? b.sub(tile.pixel, item.firstPixel) : b.add(b.mulC(item.row, spec.out[2]), tile.pixel);
  return b.addC(b.mulC(b.addC(position, r), t.columns()), (item.firstVector + v) * t.lanes);
}

ConvEmitter::Values ConvEmitter::loadPartials(const Item &item, const Tile &tile) {
  Values acc;
  for (int64_t r = 0; r < tile.span->pixels; ++r)
    for (int64_t v = 0; v < item.vectors; ++v)
      acc.push_back(b.load(spec.accType, scratch, partialOffset(item, tile, r, v), t.lanes));
  return acc;
}

//===----------------------------------------------------------------------===//
// What both reductions share
//===----------------------------------------------------------------------===//

ConvEmitter::Values ConvEmitter::forTaps(const Item &item, const Values &acc, TapFn fn) {
  return b.forLoop(item.kdLow, item.kdHigh, b.idx(1), acc, [&](Value kd, ValueRange outer) {
    return b.forLoop(item.khLow, item.khHigh, b.idx(1), outer,
                     [&](Value kh, ValueRange inner) { return fn(kd, kh, llvm::to_vector_of<Value>(inner)); });
  });
}

/// Element offset, in one channel, of the tile's anchor in the row of a tap.
Value ConvEmitter::inputRow(const Item &item, const Tile &tile, Value kd, Value kh) {
  Value id = b.add(item.depth, b.mulC(kd, spec.dilation[0]));
  Value ih = b.add(item.height, b.mulC(kh, spec.dilation[1]));
  Value line = b.add(b.mulC(id, spec.in[1]), ih);
  return b.mulC(b.add(b.mulC(line, spec.in[2]), tile.anchor), columnStride());
}

int64_t ConvEmitter::columnOffset(const Tile &tile, int64_t r, int64_t kw) const {
  int64_t column = r * spec.stride[2] + kw * spec.dilation[2];
  return (column - tile.span->shift) * columnStride();
}

/// Vector v of the item's channels, or its first lanes, at a packed offset of its first panel.
Value ConvEmitter::weightVector(const Item &item, Value offset, int64_t v, int64_t lanes) {
  int64_t column = v * t.lanes;
  Value at = b.addC(offset, column / 16 * panelElements() + column % 16);
  Value raw = b.load(spec.bType, item.weights, at, lanes);
  Value x = convertElements(b, {spec.bType, spec.accType, spec.bUnsigned}, raw);
  return callbacks.mapB ? callbacks.mapB(x, b.addC(item.oc, column)) : x;
}

void dmxc::cpu::emitConv(CpuBuilder &b, const ConvKernel &spec, const ConvTiles &tiles, Value input, Value weights,
                         const ConvCallbacks &callbacks, Value n, int64_t scratchOffset) {
  ConvEmitter(b, spec, tiles, input, weights, callbacks, n, scratchOffset).emit();
}
