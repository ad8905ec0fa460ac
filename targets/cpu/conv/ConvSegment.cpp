//===- ConvSegment.cpp - the input that a span of output pixels reads ----------===//

#include "ConvSegment.h"

#include "targets/common/element/ElementExpr.h"
#include "targets/cpu/product/GemmTile.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <numeric>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// Longer windows (an audio filter's 256 taps) are a loop: code for each tap of each tile took minutes to compile.
constexpr int64_t kMostUnrolledTaps = 32;
/// About so many taps are one iteration of it.
constexpr int64_t kTapsOfIteration = 32;

PixelSpec::PixelSpec(dmir::ConvOp op) : groups(op.getGroups()), axes(windowsOf(op)) {
  ArrayRef<int64_t> weights = shapeOf(op.getWeights());
  batch = dmir::dimOf(op.getInput(), 0);
  inChannels = dmir::dimOf(op.getInput(), 1);
  bits = getElementTypeOrSelf(op.getResult().getType()).getIntOrFloatBitWidth() == 64 ? 64 : 32;
  groupIc = weights[1];
  groupOc = weights[0] / groups;
  for (const WindowAxis &axis : axes) {
    taps *= *axis.taps.known();
    isPointwise &= axis.isPointwise();
  }
  if (isPointwise) {
    isOneAxis = axes.size() > 1;
    Dim all = dmir::product(out());
    axes = {{all, all, 1}};
  }
  while (axes.size() > 1 && axes.back().in.is(1) && axes.back().taps.is(1) && axes.back().out.is(1))
    axes.pop_back();
  while (groups > 1 ? groupOc % channels != 0 : channels / 2 >= groupOc)
    channels /= 2;
}

SegmentCopy::SegmentCopy(CpuBuilder &b, dmir::ConvOp op, const PixelSpec &spec, Type accType)
    : b(b), op(op), s(spec), element(getElementTypeOrSelf(op.getInput().getType())), accType(accType),
      lanes(b.isa().lanes(accType.getIntOrFloatBitWidth())) {}

Value SegmentCopy::widened(Value raw) {
  return convertElements(b, {element, accType, isUnsignedElement(element)}, raw);
}

Value SegmentCopy::offset(Value row, int64_t tap) {
  int64_t distance = tap * last().dilation;
  Value from = b.add(b.mul(row, b.mulC(phase, s.stride())), b.mulC(phase, distance % s.stride()));
  return b.addC(from, distance / s.stride());
}

/// Taps of one iteration of the loop over many: an even number, after which all phases were read alike, or one that
/// divides the phases, so that none is read from its start again within an iteration. 0: there is no loop.
static int64_t tapsOfIteration(const PixelSpec &s) {
  int64_t dilation = s.axes.back().dilation, period = s.stride() / std::gcd(s.stride(), dilation);
  int64_t taps = period <= kTapsOfIteration ? llvm::alignTo(kTapsOfIteration, std::lcm(period, 2))
                 : dilation == 1            ? std::gcd(period, kTapsOfIteration)
                                            : 0;
  return taps >= kTapsOfIteration / 4 && s.kernel() > kMostUnrolledTaps && s.kernel() >= 2 * taps ? taps : 0;
}

SmallVector<Value> SegmentCopy::forTaps(Value row, ValueRange sums, TapBody body) {
  int64_t taps = tapsOfIteration(s), looped = taps ? s.kernel() / taps * taps : 0;
  SmallVector<Value> acc(sums);
  if (looped)
    acc = b.forLoop(b.idx(0), b.idx(looped), b.idx(taps), acc, [&](Value first, ValueRange carried) {
      SmallVector<Value> next(carried);
      Value distance = b.mulC(first, last().dilation), stride = b.idx(s.stride());
      Value ahead = b.add(b.mul(phase, b.rem(distance, stride)), b.floorDiv(distance, stride));
      for (int64_t tap = 0; tap < taps; ++tap)
        body(b.add(offset(row, tap), ahead), b.addC(first, tap), tap, next);
      return next;
    });
  for (int64_t tap = looped; tap < s.kernel(); ++tap)
    body(offset(row, tap), b.idx(tap), tap, acc);
  return acc;
}

void SegmentCopy::copy(Value target, Value first, ArrayRef<Value> leading, Value firstPixel, Value count) {
  auto whole = [&](Value n) { return b.mulC(b.ceilDiv(n, b.idx(lanes)), lanes); };
  pixel = firstPixel;
  phase = whole(b.addC(whole(count), s.overhang()));
  Value rowElements = b.mulC(phase, s.stride());
  auto nest = [&](auto &&self, size_t axis, Value row, Value inside, Value index) -> void {
    if (axis + 1 == s.axes.size()) {
      Value source = b.elementPtr(element, b.buffer(cast<BlockArgument>(op.getInput()).getArgNumber()),
                                  b.mul(row, b.idx(last().in)));
      Value width = arith::SelectOp::create(b, inside, b.idx(last().in), b.idx(0));
      return copyRow(source, width, b.elementPtr(accType, target, b.mul(index, rowElements)));
    }
    const WindowAxis &window = s.axes[axis];
    Value origin = window.origin(b, leading[axis]);
    b.forLoop(0, *window.taps.known(), 1, [&](Value tap) {
      Value at = b.add(origin, b.mulC(tap, window.dilation));
      Value below = b.cmp(arith::CmpIPredicate::ult, at, b.idx(window.in)); // a negative one is large
      self(self, axis + 1, b.add(b.mul(row, b.idx(window.in)), at), arith::AndIOp::create(b, inside, below),
           b.add(b.mulC(index, *window.taps.known()), tap));
    });
  };
  b.forLoop(0, s.groupIc, 1,
            [&](Value channel) { nest(nest, 0, b.add(first, channel), b.constantInt(b.getI1Type(), 1), channel); });
}

/// One row of `width` elements (0: all is padding) from the segment's first tap on, element i of it to phase
/// i % stride.
void SegmentCopy::copyRow(Value source, Value width, Value target) {
  int64_t stride = s.stride();
  Value origin = last().origin(b, pixel);
  b.forLoop(b.idx(0), phase, b.idx(lanes), [&](Value i) {
    Value position = b.add(origin, b.mulC(i, stride));
    auto copy = [&](llvm::function_ref<Value(Value)> run) {
      Value low = run(position);
      if (stride == 1)
        return b.store(low, target, i);
      Value high = run(b.addC(position, lanes));
      for (int64_t from : {0, 1}) {
        SmallVector<int64_t> order;
        for (int64_t lane = 0; lane < lanes; ++lane)
          order.push_back(from + 2 * lane);
        b.store(vector::ShuffleOp::create(b, low, high, order), target, b.add(b.mulC(phase, from), i));
      }
    };
    if (stride <= 2) {
      Value begins = b.cmp(arith::CmpIPredicate::sge, position, b.idx(0));
      Value ends = b.cmp(arith::CmpIPredicate::sle, b.addC(position, stride * lanes), width);
      return b.ifThen(
          arith::AndIOp::create(b, begins, ends),
          [&] { copy([&](Value at) { return widened(b.load(element, source, at, lanes)); }); },
          [&] { copy([&](Value at) { return runOf(source, at, width); }); });
    }
    b.forLoop(0, stride, 1, [&](Value k) {
      b.store(gathered(source, b.add(position, k), width), target, b.add(b.mul(phase, k), i));
    });
  });
}

/// Adjacent elements of a row from a position on; zeros outside of it.
Value SegmentCopy::runOf(Value source, Value position, Value width) {
  auto until = [&](Value limit) { return b.headMask(lanes, b.maxS(b.sub(limit, position), b.idx(0))); };
  Value on = arith::AndIOp::create(
      b, until(width),
      arith::XOrIOp::create(b, until(b.idx(0)), b.constantInt(VectorType::get({lanes}, b.getI1Type()), 1)));
  return widened(b.maskedLoad(element, source, position, on));
}

/// Elements of a row a stride apart; zeros outside of it.
Value SegmentCopy::gathered(Value source, Value position, Value width) {
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
