//===- ConvOpenLanes.cpp - depthwise convolutions over images of open sizes ---===//
//
// Blocked input and result: lanes are the channels of a block, each with its own input. Pixels whose taps along the row
// all lie inside the image are done some at a time; those at its ends one by one, with the taps they have.
//
//===----------------------------------------------------------------------===//

#include "ConvSegment.h"
#include "Convolution.h"
#include "targets/cpu/product/GemmTile.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// Sums of a register tile: enough to hide the latency of an addition.
constexpr int64_t kPixels = 8;

class OpenLanes {
public:
  OpenLanes(CpuBuilder &b, const Convolution &conv, const PixelSpec &spec)
      : b(b), conv(conv), s(spec), weights(packedWeights(b, conv)), writer(b, conv), f32(conv.spec.accType),
        lanes(b.isa().lanes(32)) {}

  /// Pixels [lo, hi) of the row at `outer`: image, block of channels, leading positions.
  void run(ArrayRef<Value> outer, Value lo, Value hi);

private:
  void pixels(Value first, int64_t count);
  SmallVector<Value> reduce(Value first, int64_t count, Value panel);

  CpuBuilder &b;
  const Convolution &conv;
  const PixelSpec &s;
  Value weights;
  ConvWriter writer;
  Type f32;
  int64_t lanes;
  // Of the row.
  SmallVector<Value> leading;
  Value image, block, source, rowStart;
};

} // namespace

void OpenLanes::run(ArrayRef<Value> outer, Value lo, Value hi) {
  image = outer[0], block = outer[1];
  leading.assign(outer.begin() + 2, outer.end());
  Dim plane = 1;
  Value row = b.idx(0);
  for (const WindowAxis &axis : s.axes)
    plane *= axis.in;
  for (auto [i, at] : llvm::enumerate(leading))
    row = b.add(b.mulC(row, s.axes[i].out), at);
  rowStart = b.mulC(row, s.axes.back().out);
  Value number = b.add(b.mulC(image, Dim::ceilDiv(s.inChannels, 16)), block);
  source = b.elementPtr(f32, b.buffer(conv.inputBuffer), b.mulC(b.mulC(number, plane), 16));
  // Pixels with every tap of the row.
  auto [firstInside, lastInside] = s.axes.back().interior();
  Value begin = b.minS(b.maxS(lo, b.idx(firstInside)), hi);
  Value count = b.maxS(b.sub(b.minS(hi, b.idx(lastInside)), begin), b.idx(0));
  Value end = b.add(begin, b.mulC(b.floorDiv(count, b.idx(kPixels)), kPixels));
  b.forLoop(lo, begin, b.idx(1), [&](Value at) { pixels(at, 1); });
  b.forLoop(begin, end, b.idx(kPixels), [&](Value at) { pixels(at, kPixels); });
  b.forLoop(end, hi, b.idx(1), [&](Value at) { pixels(at, 1); });
}

void OpenLanes::pixels(Value first, int64_t count) {
  for (int64_t lane = 0; lane < 16; lane += lanes) {
    Value oc = b.addC(b.mulC(block, 16), lane);
    Value mask =
        s.outChannels() % 16 ? b.headMask(lanes, b.maxS(b.sub(b.idx(s.outChannels()), oc), b.idx(0))) : Value();
    SmallVector<Value> sums = reduce(first, count, b.idx(lane));
    for (int64_t i = 0; i < count; ++i)
      writer.write(image, oc, b.addC(b.add(rowStart, first), i), sums[i], mask);
  }
}

/// The sums of lanes from `lane` of the block on. One pixel has the taps it has, several have all of the row.
SmallVector<Value> OpenLanes::reduce(Value first, int64_t count, Value lane) {
  SmallVector<Value> at(leading);
  at.push_back(first);
  auto nest = [&](auto &&self, size_t i, Value row, Value tap, ValueRange sums) -> SmallVector<Value> {
    if (i == s.axes.size()) {
      SmallVector<Value> acc(sums);
      Value w = b.load(f32, weights, b.add(b.mulC(b.add(b.mulC(block, s.taps), tap), 16), lane), lanes);
      Value x = b.elementPtr(f32, source, b.add(b.mulC(row, 16), lane));
      for (int64_t p = 0; p < count; ++p)
        acc[p] = multiplyAdd(b, b.load(f32, x, b.idx(p * s.stride() * 16), lanes), w, acc[p]);
      return acc;
    }
    const WindowAxis &axis = s.axes[i];
    auto [low, high] = count > 1 && i + 1 == s.axes.size() ? std::pair(b.idx(0), b.idx(axis.taps))
                                                           : validTaps(b, axis, at[i], 0, axis.in);
    Value origin = axis.origin(b, at[i]);
    return b.forLoop(low, high, b.idx(1), sums, [&](Value k, ValueRange carried) {
      Value position = b.add(origin, b.mulC(k, axis.dilation));
      return self(self, i + 1, b.add(b.mulC(row, axis.in), position), b.add(b.mulC(tap, axis.taps), k), carried);
    });
  };
  return nest(nest, 0, b.idx(0), b.idx(0), zeroTile(b, {count, 1, lanes, f32}));
}

KernelPlan dmxc::cpu::planOpenLanes(const std::shared_ptr<Convolution> &conv, int64_t scratchBytes,
                                    const Choice &choice) {
  auto spec = std::make_shared<PixelSpec>(conv->op);
  SmallVector<Dim> dims{spec->batch, ceilDivInt(spec->outChannels(), 16)};
  dims.append(spec->out());
  WorkPlan work = choice.nominal.planWork(conv->body.block, dims, 0.5 * spec->taps + 1);
  KernelPlan plan("conv-open-depthwise", work);
  plan.scratch = scratchBytes;
  plan.emit = [conv, spec, work](KernelBuilder &b) {
    OpenLanes emitter(CpuBuilder::of(b), *conv, *spec);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) { emitter.run(outer, lo, hi); });
  };
  return plan;
}
