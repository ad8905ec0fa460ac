//===- RuntimeSlice.cpp - Slice and Pad by numbers known at run time ----===//
//
// Sizes are those of the declared shape, or dims that the run makes; where the elements come from is computed, one
// gather an axis.
//
//===----------------------------------------------------------------------===//
#include "RuntimeSlice.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

Val number(Emitter &e, int64_t value) { return e.intScalar(DType::I64, value); }
Val clamped(Emitter &e, const Val &x, const Val &low, const Val &high) { return e.min(e.max(x, low), high); }

/// Numbers for some axes as numbers for all, [rank].
class AxisNumbers {
public:
  /// `count` numbers for the axes that operand `axes` names, or for the first ones where it is absent.
  AxisNumbers(NodeContext &c, int axes, Dim count) : c(c), rank(c.operand(0).rank()) {
    Emitter &e = c.e;
    Val named = e.reshape(e.iota(DType::I64, {count}, 0), {count, 1});
    if (axes >= 0 && c.has(axes)) {
      c.requireShape(mayEqual(c.operand(axes).elements(), count), "starts, pads and axes differ in length");
      c.namedAxes(axes, rank);
      named = e.reshape(c.cast64(axes), {count, 1});
      named = e.select(e.compare(Compare::lt, named, number(e, 0)), e.add(named, number(e, rank)), named);
    } else {
      c.requireShape(count.valueOr(0) <= rank, "there are more numbers than axes");
    }
    hit = e.cast(e.compare(Compare::eq, named, e.iota(DType::I64, {1, rank}, 1)), DType::I64);
    others = e.sub(number(e, 1), e.reduce(Reduction::sum, hit, {0}, false));
  }

  Val spread(const Val &values, const Val &otherwise) {
    Emitter &e = c.e;
    Val column = e.reshape(values, {values.elements(), 1});
    return e.add(e.reduce(Reduction::sum, e.mul(hit, column), {0}, false), e.mul(others, otherwise));
  }

private:
  NodeContext &c;
  int64_t rank;
  Val hit, others;
};

/// x gathered along an axis, or x itself where every element stays in place.
Val picked(Emitter &e, const Val &x, const Val &index, int64_t axis) {
  if (index.isConstant() && x.extent(axis).is(index.numElements())) {
    bool same = true;
    for (int64_t i = 0; i < index.numElements(); ++i)
      same &= index.constant().asInt(i) == i;
    if (same)
      return x;
  }
  return e.gather(x, index, axis);
}

Val at(Emitter &e, const Val &vector, int64_t axis) { return e.sliceAxis(vector, 0, axis, 1); }

/// Where a padded axis of `size` reads an axis of n elements; j counts from the first of them.
Val padSource(Emitter &e, PadMode mode, const Val &j, const Val &n) {
  Val last = e.max(e.sub(n, number(e, 1)), number(e, 0));
  if (mode == PadMode::wrap)
    return e.emit<ModOp>({j, e.max(n, number(e, 1))});
  if (mode != PadMode::reflect)
    return clamped(e, j, number(e, 0), last);
  Val period = e.mul(last, number(e, 2));
  Val phase = e.emit<ModOp>({j, e.max(period, number(e, 1))});
  return e.min(phase, e.sub(period, phase));
}

/// The result's dims, which `sizes` has: as declared, which is then required, or as the run brings them.
Dims resultDims(NodeContext &c, const Val &sizes, const std::optional<Shape> &declared) {
  if (!declared)
    return c.e.dimsOf(sizes);
  c.requireShape(static_cast<int64_t>(declared->size()) == c.operand(0).rank(), "the declared shape has another rank");
  c.requireAtRun(c.e.compare(Compare::eq, sizes, c.e.ints(*declared)));
  return Dims(*declared);
}

} // namespace

void importRuntimeSlice(NodeContext &c, const std::optional<Shape> &declared) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  Dim count = c.operand(1).elements();
  c.requireShape(mayEqual(c.operand(2).elements(), count) && (!c.has(4) || mayEqual(c.operand(4).elements(), count)),
                 "starts, ends, axes and steps differ in length");
  AxisNumbers numbers(c, 3, count);
  Val zero = number(e, 0), one = number(e, 1), dims = e.sizes(x.dims()), last = e.sub(dims, one);
  Val start = numbers.spread(c.cast64(1), zero), end = numbers.spread(c.cast64(2), dims), step = one;
  if (c.has(4)) // a step longer than any axis is as good as one of 2^47
    step = clamped(e, c.cast64(4), number(e, -(int64_t(1) << 47)), number(e, int64_t(1) << 47));
  step = c.has(4) ? numbers.spread(step, one) : e.broadcast(step, {x.rank()});
  auto fromEnd = [&](const Val &v) { return e.select(e.compare(Compare::lt, v, zero), e.add(v, dims), v); };
  Val backward = e.compare(Compare::lt, step, zero);
  Val low = e.select(backward, number(e, -1), zero), high = e.select(backward, last, dims);
  start = clamped(e, fromEnd(start), low, high);
  end = clamped(e, fromEnd(end), low, high);
  Val span = e.max(e.select(backward, e.sub(start, end), e.sub(end, start)), zero), length = e.emit<AbsOp>({step});
  Val sizes = e.div(e.add(span, e.sub(length, one)), e.max(length, one));
  c.requireAtRun(e.compare(Compare::ne, step, zero));
  Dims results = resultDims(c, sizes, declared);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    Dim size = results[axis];
    c.requireShape(size.valueOr(0) <= x.extent(axis).valueOr(INT64_MAX),
                   "the declared shape " + dimsString(results) + " is larger than the operand");
    Val index = e.add(at(e, start, axis), e.mul(e.iota(DType::I64, {size}, 0), at(e, step, axis)));
    x = size.is(0) ? e.sliceAxis(x, axis, 0, 0) : picked(e, x, index, axis);
  }
  c.result(x);
}

void importRuntimePad(NodeContext &c, const std::optional<Shape> &declared, const Val &fill, PadMode mode) {
  Emitter &e = c.e;
  Val x = c.operand(0), pads = c.cast64(1);
  Dim count = Dim::floorDiv(pads.elements(), 2);
  c.requireShape(pads.rank() == 1 && mayEqual(pads.extent(0), count * 2), "the pads do not fit the operand");
  AxisNumbers numbers(c, c.since() >= 18 ? 3 : -1, count);
  Val zero = number(e, 0), one = number(e, 1), dims = e.sizes(x.dims());
  Val before = numbers.spread(e.sliceAxis(pads, 0, 0, count), zero),
      after = numbers.spread(e.sliceAxis(pads, 0, count, count), zero);
  Dims results = resultDims(c, e.add(dims, e.add(before, after)), declared);
  // Negative pads cut off; what is left is then padded.
  Val cut = e.max(e.sub(zero, before), zero), low = e.max(before, zero), high = e.max(after, zero);
  Val left = e.sub(e.sub(dims, cut), e.max(e.sub(zero, after), zero));
  Val grows = e.compare(Compare::gt, e.add(low, high), zero);
  Val needed = mode == PadMode::reflect ? e.add(e.max(low, high), one) : one; // reflection repeats nothing
  c.requireAtRun(e.compare(Compare::ge, left, mode == PadMode::constant ? zero : e.select(grows, needed, zero)));
  Val inside; // where the operand's elements stand, for the constant mode
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    Dim size = results[axis], dim = x.extent(axis);
    if (size.is(0) || dim.is(0)) { // nothing to read: an empty axis can only be filled
      Dims shape = x.dims();
      shape[axis] = size;
      x = e.broadcast(fill, shape);
      continue;
    }
    Val j = e.sub(e.iota(DType::I64, {size}, 0), at(e, low, axis)), n = at(e, left, axis);
    Val index = clamped(e, e.add(padSource(e, mode, j, n), at(e, cut, axis)), zero, e.size(dim - 1));
    x = picked(e, x, index, axis);
    if (mode == PadMode::constant) {
      Dims line(x.rank(), 1);
      line[axis] = size;
      Val here = e.emit<AndOp>({e.compare(Compare::ge, j, zero), e.compare(Compare::lt, j, n)});
      here = e.reshape(here, line);
      inside = inside ? e.emit<AndOp>({inside, here}) : here;
    }
  }
  c.result(inside ? e.select(inside, x, fill) : x);
}

} // namespace dmxc::onnxfe
