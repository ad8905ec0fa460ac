//===- ConvBroadcast.cpp - one input element times many output channels --===//
//
// Loops: block of input channels > tap rows inside the input > channels of the
// block, with the taps along the row unrolled so that each touches exactly its
// valid pixels.
//
//===----------------------------------------------------------------------===//

#include "ConvEmitter.h"

using namespace dmxc::cpu;
using namespace mlir;

ConvEmitter::Values ConvEmitter::reduceBroadcast(const Item &item, const Tile &tile, Values acc) {
  // With one tap, blocks of channels are adjacent in the weights whatever their
  // size: take 16 at a time from a plain input as well.
  int64_t block = spec.taps() == 1 ? spec.blockElements() : weightBlock(spec);
  int64_t full = spec.groupIc() / block, rest = spec.groupIc() % block;
  Value low = item.passLow ? item.passLow : b.idx(0);
  Value high = item.passHigh ? item.passHigh : b.idx(full);
  if (t.words) {
    acc = wordBlocks(item, tile, low, high, block, acc);
    return rest ? wordBlocks(item, tile, b.idx(full), b.idx(full + 1), rest, acc) : acc;
  }
  acc =
      sumInStretches(b, registers(item, tile), low, high, 1,
                     stepsOfStretch(convStretch(spec.groupIc() * spec.taps()), block * spec.taps()), acc,
                     [&](Value index, ValueRange carried) {
                       return channelBlock(item, tile, b.mulC(index, block), block, llvm::to_vector_of<Value>(carried));
                     });
  if (rest)
    acc = channelBlock(item, tile, b.idx(full * block), rest, acc);
  return acc;
}

/// Adds the taps of input channels [first, first + channels) of the group.
ConvEmitter::Values ConvEmitter::channelBlock(const Item &item, const Tile &tile, Value first, int64_t channels,
                                              const Values &acc) {
  // First channels of blocks of 16 are 16*positions apart in both layouts.
  Value inBlock = b.mulC(first, inPositions());
  Value weightsBlock = b.mulC(first, spec.taps() * 16);
  int64_t rowElements = spec.kernel[2] * channels * 16;
  int64_t unroll = std::min(t.unroll, channels);
  return forTaps(item, acc, [&](Value kd, Value kh, Values sums) {
    Value tapRow = b.add(b.mulC(kd, spec.kernel[1]), kh);
    TapRow row{b.add(inBlock, inputRow(item, tile, kd, kh)), b.add(weightsBlock, b.mulC(tapRow, rowElements))};
    auto steps = [&](int64_t low, int64_t high, int64_t width) {
      sums = b.forLoop(b.idx(low), b.idx(high), b.idx(width), sums, [&](Value channel, ValueRange carried) {
        Values next = llvm::to_vector_of<Value>(carried);
        if (t.prefetch)
          prefetchWeights(item, tile, b.add(row.weights, b.mulC(channel, spec.kernel[2] * 16)),
                          width * spec.kernel[2] * 16);
        for (int64_t u = 0; u < width; ++u)
          tapStep(item, tile, row, b.addC(channel, u), channels, next);
        return next;
      });
    };
    int64_t main = channels / unroll * unroll;
    steps(0, main, unroll);
    steps(main, channels, 1);
    return sums;
  });
}

/// All taps of one row for one input channel of the block.
void ConvEmitter::tapStep(const Item &item, const Tile &tile, const TapRow &row, Value channel, int64_t blockChannels,
                          Values &acc) {
  RegisterTile regs = registers(item, tile);
  Value inChannel = b.add(row.input, b.mulC(channel, channelStride()));
  for (int64_t kw = 0; kw < spec.kernel[2]; ++kw) {
    const std::vector<int64_t> &valid = tile.span->valid[kw];
    if (valid.empty())
      continue;
    Value at = b.add(row.weights, b.mulC(b.addC(channel, kw * blockChannels), 16));
    // Pixels r and taps kw of equal sum read the same element. A pointer of its
    // own for each tap keeps LLVM from holding those elements in registers.
    int64_t first = columnOffset(tile, valid.front(), kw);
    Value pixels = b.opaque(b.elementPtr(spec.aType, item.input, b.addC(inChannel, first)));
    auto left = [&](int64_t r) {
      Value raw = b.load(spec.aType, pixels, b.idx(columnOffset(tile, r, kw) - first));
      Value x = convertElements(b, {spec.aType, spec.accType, spec.aUnsigned}, raw);
      Value splat = b.splat(callbacks.mapA ? callbacks.mapA(x) : x, regs.lanesOf(0));
      // Else LLVM would spread x again for the fewer lanes of the last vector.
      return regs.lanesOf(item.vectors - 1) < regs.lanesOf(0) ? b.held(splat) : splat;
    };
    auto add = [&](int64_t r, int64_t v, Value x, Value w) {
      Value &sum = acc[r * item.vectors + v];
      x = b.narrowed(x, regs.lanesOf(v));
      sum = spec.fours             ? dotFours(b, x, w, sum)
            : spec.dotsAt(b.isa()) ? dotPairs(b, x, w, sum)
            : spec.pairs           ? multiplyPairs(b, x, w, sum)
                                   : multiplyAdd(b, x, w, sum);
    };
    // The side with fewer vectors waits in registers for those of the other.
    Values held;
    if (item.vectors <= static_cast<int64_t>(valid.size())) {
      for (int64_t v = 0; v < item.vectors; ++v)
        held.push_back(weightVector(item, at, v, regs.lanesOf(v)));
      for (int64_t r : valid) {
        Value x = left(r);
        for (int64_t v = 0; v < item.vectors; ++v)
          add(r, v, x, held[v]);
      }
      continue;
    }
    for (int64_t r : valid)
      held.push_back(left(r));
    for (int64_t v = 0; v < item.vectors; ++v) {
      Value w = weightVector(item, at, v, regs.lanesOf(v));
      for (size_t i = 0; i < valid.size(); ++i)
        add(valid[i], v, held[i], w);
    }
  }
}

/// Fetches the next group's weights while this one's are used: over all tiles
/// of an image every line once. `progress` is the packed offset this tile has
/// reached, `elements` what the iteration consumes.
void ConvEmitter::prefetchWeights(const Item &item, const Tile &tile, Value progress, int64_t elements) {
  int64_t total = tiles * spec.out[0] * spec.out[1];
  int64_t panels = item.vectors * t.lanes / 16, group = t.columns() / 16;
  if (!panels || item.tailChannels || spec.oc <= t.columns())
    return;
  // What one sweep over the image's tiles goes through: all channels, or a
  // pass's.
  int64_t sweep = t.passes ? spec.blockElements() * spec.taps() * 16 : panelElements();
  Value start = t.passes ? b.mulC(item.passLow, sweep) : b.idx(0);
  Value done = b.mulC(b.add(b.mulC(item.row, tiles), tile.index), sweep);
  Value reached = b.add(done, b.sub(progress, start));
  Value offset = b.add(start, b.floorDiv(reached, b.idx(total)));
  int64_t lineElements = 512 / spec.bType.getIntOrFloatBitWidth();
  int64_t lines = ceilDivInt(elements, total * lineElements);
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t q = 0; q < lines; ++q)
      b.prefetch(spec.bType, item.weights, b.addC(offset, (group + p) * panelElements() + q * lineElements),
                 /*locality=*/2);
}
