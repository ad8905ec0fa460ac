//===- ConvLanes.cpp - lanes with their own input channel ----------------===//
//
// Depthwise convolution, and groups that are not whole blocks of 16 channels.
//
//===----------------------------------------------------------------------===//

#include "ConvEmitter.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc::cpu;
using namespace mlir;

/// How the lanes of one vector of output channels read channel j of their
/// groups.
struct ConvEmitter::LaneInput {
  enum Kind {
    Adjacent, ///< lanes lie in one block of the input: a vector load, then a
              ///< shuffle
    Splat,    ///< all lanes are of one group: an element for all
    Gather    ///< anything else: element by element
  } kind;
  /// Element offset in the image of channel 0 of the (first, only) lane's
  /// group, or of the first lane's own channel when Adjacent. For Gather:
  /// channels, a lane each.
  Values offsets;
};

/// Element offset in an image of a channel.
Value ConvEmitter::channelOffset(Value channel) {
  if (!blocked())
    return b.mulC(channel, inPositions());
  Value block = b.floorDiv(channel, b.idx(16));
  return b.add(b.mulC(block, inPositions() * 16), b.rem(channel, b.idx(16)));
}

ConvEmitter::LaneInput ConvEmitter::laneInput(const Item &item, int64_t v) {
  int64_t in = spec.groupIc(), out = spec.groupOc();
  Value first = b.addC(item.oc, v * t.lanes);
  auto firstChannel = [&](Value oc) { return b.mulC(b.floorDiv(oc, b.idx(out)), in); };
  if (blocked() && in == out && t.lanes % out == 0)
    return {LaneInput::Adjacent, {channelOffset(first)}};
  if (out % t.lanes == 0)
    return {LaneInput::Splat, {firstChannel(first)}};
  LaneInput gather{LaneInput::Gather, {}};
  for (int64_t lane = 0; lane < t.lanes; ++lane) {
    Value oc = b.minS(b.addC(first, lane), b.idx(spec.oc - 1));
    gather.offsets.push_back(firstChannel(oc));
  }
  return gather;
}

/// Channel j of every lane's group, at `position` elements into a channel. For
/// Adjacent inputs j is a constant.
Value ConvEmitter::loadLanes(const LaneInput &in, Value base, Value position, Value j) {
  ElementConversion conversion{spec.aType, spec.accType, spec.aUnsigned};
  auto mapped = [&](Value raw) {
    Value x = convertElements(b, conversion, raw);
    return callbacks.mapA ? callbacks.mapA(x) : x;
  };
  if (in.kind == LaneInput::Adjacent) {
    Value x = mapped(b.load(spec.aType, base, b.add(in.offsets[0], position), t.lanes));
    if (spec.groupIc() == 1)
      return x;
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < t.lanes; ++lane)
      order.push_back(lane / spec.groupOc() * spec.groupIc() + *CpuBuilder::constantOf(j));
    return vector::ShuffleOp::create(b, x, x, order);
  }
  auto element = [&](Value channel) {
    Value at = b.add(channelOffset(b.add(channel, j)), position);
    return mapped(b.load(spec.aType, base, at));
  };
  if (in.kind == LaneInput::Splat)
    return b.splat(element(in.offsets[0]), t.lanes);
  SmallVector<Value> elements;
  for (Value channel : in.offsets)
    elements.push_back(element(channel));
  auto type = VectorType::get({t.lanes}, spec.accType);
  return vector::FromElementsOp::create(b, type, elements);
}

ConvEmitter::Values ConvEmitter::reduceLanes(const Item &item, const Tile &tile, const Values &acc) {
  SmallVector<LaneInput> inputs;
  bool adjacent = true;
  for (int64_t v = 0; v < item.vectors; ++v) {
    inputs.push_back(laneInput(item, v));
    adjacent &= inputs.back().kind == LaneInput::Adjacent;
  }
  auto taps = [&](Value kd, Value kh, Value j, Values &sums) {
    Value tapRow = b.add(b.mulC(kd, spec.kernel[1]), kh);
    Value position = inputRow(item, tile, kd, kh);
    Value at = b.mulC(b.add(b.mulC(j, spec.taps()), b.mulC(tapRow, spec.kernel[2])), 16);
    if (joinsTaps()) {
      for (int64_t v = 0; v < item.vectors; ++v)
        tapPairs(item, tile, v, b.add(inputs[v].offsets[0], position), at, sums);
      return;
    }
    for (int64_t kw = 0; kw < spec.kernel[2]; ++kw)
      for (int64_t v = 0; v < item.vectors; ++v) {
        // As in tapStep: no sharing of loads between taps, see opaque.
        Value base = b.opaque(item.input);
        Value w = weightVector(item, b.addC(at, kw * 16), v, t.lanes);
        for (int64_t r : tile.span->valid[kw]) {
          Value x = loadLanes(inputs[v], base, b.addC(position, columnOffset(tile, r, kw)), j);
          Value &sum = sums[r * item.vectors + v];
          sum = multiplyAdd(b, x, w, sum);
        }
      }
  };
  if (adjacent) // the shuffles need a constant j
    return forTaps(item, acc, [&](Value kd, Value kh, Values sums) {
      for (int64_t j = 0; j < spec.groupIc(); ++j)
        taps(kd, kh, b.idx(j), sums);
      return sums;
    });
  return b.forLoop(b.idx(0), b.idx(spec.groupIc()), b.idx(1), acc, [&](Value j, ValueRange carried) {
    return forTaps(item, llvm::to_vector_of<Value>(carried), [&](Value kd, Value kh, Values sums) {
      taps(kd, kh, j, sums);
      return sums;
    });
  });
}
