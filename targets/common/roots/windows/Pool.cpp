//===- Pool.cpp - pooling -----------------------------------------------------===//
//
// A window is a loop over the taps that lie inside the input, so padding costs no test an element.
// Lanes along a spatial axis are used where every lane has all taps of that axis.
//
//===----------------------------------------------------------------------===//

#include "Window.h"
#include "targets/common/roots/KernelTable.h"
#include "targets/common/roots/Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

/// How dmir.pool and dmir.arg_max_pool are computed: lanes along the channels of a block where the
/// result is blocked, else along the innermost spatial axis.
struct PoolPlan {
  int64_t block = 0; ///< channels in a block; 0: row-major
  WorkPlan work;
};

class PoolEmitter {
public:
  using Carried = SmallVector<Value>;

  PoolEmitter(KernelBuilder &b, const RegionBody &body, const PoolPlan &plan)
      : b(b), body(body), plan(plan), e(b, body.block), writer(e, body), root(body.root),
        input(body.root->getOperand(0)), element(getElementTypeOrSelf(input.getType())), axes(windowsOfPool(root)) {
    isFloat = mlir::isa<FloatType>(element);
    isUnsigned = isUnsignedElement(element);
  }

  void emit();

private:
  /// Loops over the taps inside the input in row-major order.
  Carried overTaps(ArrayRef<Value> at, ValueRange init,
                   llvm::function_ref<Carried(ArrayRef<Value>, ValueRange)> bodyFn);
  Value readInput(ArrayRef<Value> at, ArrayRef<Value> taps);
  Value accumulate(dmir::Pooling kind, ArrayRef<Value> at);
  Value floatMaximum(ArrayRef<Value> at, Value start);
  Value divided(Value sum, ArrayRef<Value> at);
  Value argMax(dmir::ArgMaxPoolOp op, ArrayRef<Value> at);
  void window(ArrayRef<Value> at);
  void emitBlocked();
  void emitPlain();
  std::pair<Dim, Dim> interior(size_t axis) const;
  void blockedWindow(ArrayRef<Value> at);

  KernelBuilder &b;
  const RegionBody &body;
  const PoolPlan &plan;
  ElementExpr e;
  ResultWriter writer;
  Operation *root;
  Value input;
  Type element;
  SmallVector<WindowAxis> axes;
  bool isFloat, isUnsigned;
  Index batch, channel;     ///< of the current window
  bool laneSpatial = false; ///< lanes run along the last spatial axis
  bool everyTap = false;    ///< all taps of the current window are inside the input
};

PoolEmitter::Carried PoolEmitter::overTaps(ArrayRef<Value> at, ValueRange init,
                                           llvm::function_ref<Carried(ArrayRef<Value>, ValueRange)> bodyFn) {
  SmallVector<Value> taps;
  auto nest = [&](auto &&self, ValueRange carried) -> Carried {
    size_t axis = taps.size();
    if (axis == axes.size())
      return bodyFn(taps, carried);
    bool whole = everyTap || (laneSpatial && axis + 1 == axes.size()); // interior lanes have every tap
    auto [lo, hi] =
        whole ? std::pair(b.idx(0), b.idx(axes[axis].taps)) : validTaps(b, axes[axis], at[axis], 0, axes[axis].in);
    auto step = [&](Value tap, ValueRange c) {
      taps.push_back(tap);
      Carried next = self(self, c);
      taps.pop_back();
      return next;
    };
    if (std::optional<int64_t> few = axes[axis].taps.known(); whole && few && *few <= 4) {
      Carried acc(carried);
      for (int64_t tap = 0; tap < *few; ++tap)
        acc = step(b.idx(tap), acc);
      return acc;
    }
    return b.forLoop(lo, hi, b.idx(1), carried, step);
  };
  return nest(nest, init);
}

Value PoolEmitter::readInput(ArrayRef<Value> at, ArrayRef<Value> taps) {
  Indices index{batch, channel};
  for (size_t i = 0; i < axes.size(); ++i) {
    Value position = axes[i].position(b, at[i], taps[i]);
    bool lanes = laneSpatial && i + 1 == axes.size();
    index.push_back(e.at(position, 1, lanes ? axes[i].stride : 0));
  }
  return e.evaluateWide(input, index);
}

Value PoolEmitter::accumulate(dmir::Pooling kind, ArrayRef<Value> at) {
  bool max = kind == dmir::Pooling::max;
  // The average of integers divides the exact sum.
  bool widens = kind == dmir::Pooling::average && !isFloat;
  Type type = b.laneType(widens ? Type(b.getI64Type()) : e.computed(element), e.lanes());
  unsigned bits = element.getIntOrFloatBitWidth();
  Value start = !max      ? b.constantInt(type, 0)
                : isFloat ? b.constant(type, -std::numeric_limits<double>::infinity())
                          : b.constantInt(type, isUnsigned ? 0 : static_cast<int64_t>(uint64_t(1) << (bits - 1)));
  if (max && isFloat)
    return e.narrow(floatMaximum(at, start), element);
  Value sum = overTaps(at, start, [&](ArrayRef<Value> taps, ValueRange c) -> Carried {
    Value value = readInput(at, taps);
    if (max) // integers
      return {emitMax(b, c[0], value, isUnsigned)};
    if (isFloat)
      return {arith::AddFOp::create(b, c[0], value)};
    if (value.getType() != type)
      value =
          isUnsigned ? Value(arith::ExtUIOp::create(b, type, value)) : Value(arith::ExtSIOp::create(b, type, value));
    return {arith::AddIOp::create(b, c[0], value)};
  })[0];
  if (kind == dmir::Pooling::average)
    sum = divided(sum, at);
  if (widens && getElementTypeOrSelf(type) != e.carried(element))
    sum = arith::TruncIOp::create(b, b.laneType(e.carried(element), e.lanes()), sum);
  return e.narrow(sum, element);
}

/// The largest number of a window; NaN where there is one. That is told apart, so that a step is one instruction.
Value PoolEmitter::floatMaximum(ArrayRef<Value> at, Value start) {
  Value none = b.constantInt(b.laneType(b.getI1Type(), e.lanes()), 0);
  Carried found = overTaps(at, {start, none}, [&](ArrayRef<Value> taps, ValueRange c) -> Carried {
    Value value = readInput(at, taps);
    Value larger = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, c[0]);
    Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
    return {arith::SelectOp::create(b, larger, value, c[0]), arith::OrIOp::create(b, c[1], isNaN)};
  });
  Value nan = b.constant(start.getType(), std::numeric_limits<double>::quiet_NaN());
  return arith::SelectOp::create(b, found[1], nan, found[0]);
}

Value PoolEmitter::divided(Value sum, ArrayRef<Value> at) {
  bool padded = cast<dmir::PoolOp>(root).getCountPadding();
  Value count = b.idx(1);
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (everyTap || (laneSpatial && i + 1 == axes.size())) {
      count = b.mulC(count, axis.taps);
      continue;
    }
    auto [lo, hi] = padded ? validTaps(b, axis, at[i], Dim(0) - axis.low, axis.in + axis.high - axis.extra)
                           : validTaps(b, axis, at[i], 0, axis.in);
    count = b.mul(count, b.sub(hi, lo));
  }
  if (isFloat) {
    Value n = arith::SIToFPOp::create(b, getElementTypeOrSelf(sum.getType()), count);
    return arith::DivFOp::create(b, sum, b.splat(n, e.lanes()));
  }
  Value n = b.splat(b.maxS(count, b.idx(1)), e.lanes());
  return isUnsigned ? Value(arith::DivUIOp::create(b, sum, n)) : Value(arith::DivSIOp::create(b, sum, n));
}

Value PoolEmitter::argMax(dmir::ArgMaxPoolOp op, ArrayRef<Value> at) {
  Type type = e.computed(element);
  return overTaps(at, {b.constantInt(type, 0), b.idx(-1)}, [&](ArrayRef<Value> taps, ValueRange c) -> Carried {
    Value value = readInput(at, taps);
    Value better = b.cmp(arith::CmpIPredicate::slt, c[1], b.idx(0));
    if (isFloat) {
      Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
      Value ordered = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, c[0], c[0]);
      Value greater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, c[0]);
      better =
          arith::OrIOp::create(b, better, arith::OrIOp::create(b, greater, arith::AndIOp::create(b, isNaN, ordered)));
    } else {
      auto p = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
      better = arith::OrIOp::create(b, better, arith::CmpIOp::create(b, p, value, c[0]));
    }
    // The plane's offset, then the position in it in the order asked for.
    Value flat = b.add(b.mulC(batch.base, dmir::dimOf(input, 1)), channel.base), inPlane = b.idx(0);
    for (size_t n = 0; n < axes.size(); ++n) {
      size_t i = op.getColumnMajor() ? axes.size() - 1 - n : n;
      Value position = axes[i].position(b, at[i], taps[i]);
      inPlane = b.add(b.mulC(inPlane, axes[i].in), position);
      flat = b.mulC(flat, axes[n].in);
    }
    Value index = b.add(flat, inPlane);
    return {arith::SelectOp::create(b, better, value, c[0]), arith::SelectOp::create(b, better, index, c[1])};
  })[1];
}

void PoolEmitter::window(ArrayRef<Value> at) {
  e.forget();
  Value value = mlir::isa<dmir::PoolOp>(root) ? accumulate(cast<dmir::PoolOp>(root).getKind(), at)
                                              : argMax(cast<dmir::ArgMaxPoolOp>(root), at);
  e.bindValue(root->getResult(0), value);
  Indices index{batch, channel};
  for (size_t i = 0; i < axes.size(); ++i)
    index.push_back(e.at(at[i], 1, laneSpatial && i + 1 == axes.size() ? 1 : 0));
  writer.write(index);
}

/// Away from the borders the loops over taps have known bounds, so that they are unrolled.
void PoolEmitter::blockedWindow(ArrayRef<Value> at) {
  Value inside = b.constantInt(b.getI1Type(), 1);
  auto both = [&](arith::CmpIPredicate predicate, Value x, Dim limit) {
    inside = arith::AndIOp::create(b, inside, b.cmp(predicate, x, b.idx(limit)));
  };
  bool borders = false;
  for (auto [i, position] : llvm::enumerate(at)) {
    auto [first, last] = interior(i);
    if (first.is(0) && last == dmir::dimOf(root->getResult(0), i + 2))
      continue;
    borders = true;
    both(arith::CmpIPredicate::sge, position, first);
    both(arith::CmpIPredicate::slt, position, last);
  }
  auto whole = [&] {
    everyTap = true;
    window(at);
    everyTap = false;
  };
  if (!borders)
    return whole();
  b.ifThen(inside, whole, [&] { window(at); });
}

void PoolEmitter::emitBlocked() {
  unsigned narrowest;
  int64_t lanes = std::min(chooseLanes({input, writer.values()[0]}, b.processor(), &narrowest), plan.block);
  if (!mlir::isa<dmir::PoolOp>(root))
    lanes = 1;
  int64_t channels = shapeOf(input)[1];
  emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value, Value) {
    batch = e.at(outer[0]);
    Value start = b.mulC(outer[1], plan.block);
    for (int64_t lane = 0; lane < plan.block; lane += lanes) {
      Value first = b.addC(start, lane);
      e.knowDivision(first, plan.block, outer[1], b.idx(lane));
      channel = e.at(first, lanes, lanes > 1);
      Value inside = b.sub(b.idx(channels), first);
      if (channels % plan.block == 0) {
        ElementExpr::Lanes all(e, lanes);
        blockedWindow(outer.drop_front(2));
      } else if (lanes == 1) {
        b.ifThen(b.cmp(arith::CmpIPredicate::sgt, inside, b.idx(0)), [&] { blockedWindow(outer.drop_front(2)); });
      } else {
        ElementExpr::Lanes some(e, lanes, b.headMask(lanes, inside));
        blockedWindow(outer.drop_front(2));
      }
    }
  });
}

/// Outputs of an axis whose taps all lie inside the input.
std::pair<Dim, Dim> PoolEmitter::interior(size_t number) const {
  auto [first, end] = axes[number].interior();
  Dim last = Dim::min(Dim::max(end, 0), axes[number].out);
  return {Dim::min(first, last), last};
}

void PoolEmitter::emitPlain() {
  unsigned narrowest;
  int64_t lanes = chooseLanes({input, writer.values()[0]}, b.processor(), &narrowest);
  auto [first, last] = interior(axes.size() - 1);
  while (lanes > 1 && (!mlir::isa<dmir::PoolOp>(root) || nominal(body.block, last - first) < lanes))
    lanes /= 2;
  emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
    batch = e.at(outer[0]);
    channel = e.at(outer[1]);
    SmallVector<Value> at(outer.drop_front(2));
    at.push_back({});
    auto one = [&](Value from, Value to) {
      ElementExpr::Lanes scalar(e, 1);
      b.forLoop(from, to, b.idx(1), [&](Value i) {
        at.back() = i;
        window(at);
      });
    };
    if (lanes == 1)
      return one(lo, hi);
    Value start = b.minS(b.maxS(lo, b.idx(first)), hi), end = b.maxS(b.minS(hi, b.idx(last)), start);
    one(lo, start);
    laneSpatial = true; // with one lane, too: every tap is inside
    if (axes.back().stride == 1)
      laneLoop(e, start, end, lanes, narrowest, 1, [&](Index along) {
        at.back() = along.base;
        window(at);
      });
    else // lanes that are strides apart are loaded as vectors only where all of them exist
      for (int64_t width = lanes; width >= 1; width /= 2) {
        ElementExpr::Lanes all(e, width);
        Value whole = b.add(start, b.mulC(b.floorDiv(b.sub(end, start), b.idx(width)), width));
        b.forLoop(start, whole, b.idx(width), [&](Value i) {
          at.back() = i;
          window(at);
        });
        start = whole;
      }
    laneSpatial = false;
    one(end, hi);
  });
}

void PoolEmitter::emit() {
  if (plan.block)
    emitBlocked();
  else
    emitPlain();
}

} // namespace

static PoolPlan planOf(const RegionBody &body, const Processor &processor) {
  PoolPlan plan;
  Value result = body.root->getResult(0);
  auto type = body.resultType();
  int64_t taps = 1;
  for (int64_t w : body.root->getAttrOfType<DenseI64ArrayAttr>("window").asArrayRef())
    taps *= w;
  SmallVector<Dim> dims = dmir::dimsOf(result);
  if (auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type)); blocked && blocked.getAxis() == 1) {
    plan.block = blocked.getBlock();
    dims[1] = Dim::ceilDiv(dims[1], plan.block);
    dims.push_back(1);
    plan.work = processor.planWork(body.block, dims, 2.0 * taps + 2);
    return plan;
  }
  plan.work = processor.planWork(body.block, dims, 0.4 * taps + 0.5);
  return plan;
}

static Result<KernelPlan> planPool(const RegionBody &body, const PlanRequest &request) {
  PoolPlan details = planOf(body, request.nominal);
  KernelPlan plan(details.block ? "pool-blocked" : "pool", details.work);
  plan.emit = [body, details](KernelBuilder &b) { PoolEmitter(b, body, details).emit(); };
  return plan;
}

void dmxc::kernels::registerPools(KernelTable &table) {
  table.add<dmir::PoolOp, dmir::ArgMaxPoolOp>({.plan = planPool, .epilogue = true});
}
