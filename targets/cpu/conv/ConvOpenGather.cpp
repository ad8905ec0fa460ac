//===- ConvOpenGather.cpp - the input of blocked convolutions of open sizes ---===//

#include "ConvOpen.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// Copies what positions [from, to) read; `first` is the span's first one.
void OpenConv::gather(Value from, Value to, Value first) {
  Value width = b.idx(Dim::max(s.axes.back().out, 1));
  b.forLoop(b.floorDiv(from, width), b.ceilDiv(to, width), b.idx(1), [&](Value row) {
    Value rowStart = b.mul(row, width), low = b.maxS(from, rowStart), high = b.minS(to, b.add(rowStart, width));
    SmallVector<Value> leading(s.axes.size() - 1);
    Value rest = row;
    for (size_t axis = leading.size(); axis-- > 0;) {
      leading[axis] = axis ? b.rem(rest, b.idx(Dim::max(s.axes[axis].out, 1))) : rest;
      rest = axis ? b.floorDiv(rest, b.idx(Dim::max(s.axes[axis].out, 1))) : rest;
    }
    Value target = b.elementPtr(f32, input, b.mulC(b.sub(low, first), 16));
    forLeadingTaps(leading, [&](Value inputRow, Value inside, Value tap) {
      const WindowAxis &window = s.axes.back();
      Value present = arith::SelectOp::create(b, inside, b.idx(window.in), b.idx(0));
      Value origin = window.origin(b, b.sub(low, rowStart));
      b.forLoop(0, s.kernel(), 1, [&](Value k) {
        Value to = b.elementPtr(f32, target, b.mulC(b.add(b.mulC(tap, s.kernel()), k), tapElements()));
        gatherRow(inputRow, present, b.add(origin, b.mulC(k, window.dilation)), window.stride, b.sub(high, low), to,
                  s.taps * tapElements());
      });
    });
  });
}

/// Elements `stride` apart of a row of `width` elements (0: all is padding), `count` of them from `start` on, of all
/// channels; zeros for what is outside.
void OpenConv::gatherRow(Value row, Value width, Value start, int64_t stride, Value count, Value target,
                         int64_t blockElements) {
  auto below = [&](Value limit) { // how many lie below it
    return b.minS(b.ceilDiv(b.maxS(b.sub(limit, start), b.idx(0)), b.idx(stride)), count);
  };
  Value low = below(b.idx(0)), high = b.maxS(low, below(width));
  Value at = b.add(b.mul(row, b.idx(s.axes.back().in)), start);
  b.forLoop(0, s.blocks(), 1, [&](Value block) {
    Value from = b.elementPtr(f32, source, b.mulC(b.add(b.mul(block, plane), at), 16));
    Value to = b.elementPtr(f32, target, b.mulC(block, blockElements));
    auto pixels = [&](Value first, Value last, llvm::function_ref<Value(Value, int64_t)> value) {
      b.forLoop(first, last, b.idx(1), [&](Value i) {
        for (int64_t lane = 0; lane < 16; lane += lanes)
          b.store(value(i, lane), to, b.addC(b.mulC(i, 16), lane));
      });
    };
    auto zero = [&](Value, int64_t) { return b.constant(b.laneType(f32, lanes), 0); };
    pixels(b.idx(0), low, zero);
    pixels(low, high,
           [&](Value i, int64_t lane) { return b.load(f32, from, b.addC(b.mulC(i, stride * 16), lane), lanes); });
    pixels(high, count, zero);
  });
}

/// The taps of the leading axes at output position `leading`: the input row of each, whether it is inside, and the
/// tap's number.
void OpenConv::forLeadingTaps(ArrayRef<Value> leading, llvm::function_ref<void(Value, Value, Value)> body) {
  auto nest = [&](auto &&self, size_t axis, Value row, Value inside, Value tap) -> void {
    if (axis == leading.size())
      return body(row, inside, tap);
    const WindowAxis &window = s.axes[axis];
    Value origin = window.origin(b, leading[axis]);
    b.forLoop(0, *window.taps.known(), 1, [&](Value k) {
      Value at = b.add(origin, b.mulC(k, window.dilation));
      Value below = b.cmp(arith::CmpIPredicate::ult, at, b.idx(window.in)); // a negative one is large
      self(self, axis + 1, b.add(b.mulC(row, window.in), at), arith::AndIOp::create(b, inside, below),
           b.add(b.mulC(tap, *window.taps.known()), k));
    });
  };
  nest(nest, 0, b.idx(0), b.constantInt(b.getI1Type(), 1), b.idx(0));
}

/// The columns that a tile reads from `column` on, for all taps of the leading axes.
void OpenConv::copyTile(ArrayRef<Value> leading, Value column, int64_t pixels) {
  int64_t columns = s.columns(pixels);
  forLeadingTaps(leading, [&](Value row, Value inside, Value tap) {
    Value width = arith::SelectOp::create(b, inside, b.idx(s.axes.back().in), b.idx(0));
    Value target = b.elementPtr(f32, input, b.mulC(tap, columns * 16));
    gatherRow(row, width, column, 1, b.idx(columns), target, s.leadingTaps() * columns * 16);
  });
}
