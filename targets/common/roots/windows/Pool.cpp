//===- Pool.cpp - pooling -----------------------------------------------------===//
//
// A window is a loop over the taps that lie inside the input, so padding costs no test an element.
// Lanes along a spatial axis are used where every lane has all taps of that axis. Large windows of images are folded
// twice: columns of all rows that a row of the result reads, to scratch with padding around them, then each window of
// those.
//
//===----------------------------------------------------------------------===//

#include "Fold.h"
#include "Window.h"
#include "targets/common/roots/KernelTable.h"
#include "targets/common/roots/Loops.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

/// Rows of a result whose columns are folded before their windows are: no vector is read right after the two that it
/// is made of are written, for which a processor would wait.
static constexpr int64_t kRows = 8;

namespace {

/// How dmir.pool and dmir.arg_max_pool are computed: lanes along the channels of a block where the
/// result is blocked, else along the innermost spatial axis.
struct PoolPlan {
  int64_t block = 0; ///< channels in a block; 0: row-major
  bool rows = false; ///< of large windows: a row's columns first
  Dim columns = 0;   ///< then of a row in scratch, padding included
  WorkPlan work;
};

class PoolEmitter {
public:
  PoolEmitter(KernelBuilder &b, const RegionBody &body, const PoolPlan &plan)
      : b(b), body(body), plan(plan), e(b, body.block), writer(e, body), root(body.root),
        input(body.root->getOperand(0)), element(getElementTypeOrSelf(input.getType())), axes(windowsOfPool(root)) {
    isFloat = mlir::isa<FloatType>(element);
    isUnsigned = isUnsignedElement(element);
    auto pool = dyn_cast<dmir::PoolOp>(root);
    isAverage = pool && pool.getKind() == dmir::Pooling::average;
    lanes = pool ? chooseLanes({input, writer.values()[0]}, b.processor(), &narrowest) : 1;
    if (plan.block)
      lanes = std::min(lanes, plan.block);
  }

  void emit();

private:
  /// Loops over the taps inside the input in row-major order.
  Carried overTaps(ArrayRef<Value> at, ValueRange init,
                   llvm::function_ref<Carried(ArrayRef<Value>, ValueRange)> bodyFn);
  Indices plane() const { return {batch, channel}; }
  Value readInput(ArrayRef<Value> at, ArrayRef<Value> taps);
  Value resultOf(const Fold &fold, Value value, Value count);
  Value accumulate(dmir::Pooling kind, ArrayRef<Value> at);
  Value counted(size_t i, Value at);
  Value argMax(dmir::ArgMaxPoolOp op, ArrayRef<Value> at);
  void window(ArrayRef<Value> at);
  void inBlock(Value block, llvm::function_ref<void()> lanesOf);
  void emitBlocked();
  void emitPlain();
  void overColumns(Value lo, Value hi, llvm::function_ref<void(Value)> column);
  Index columnAt(Value line, Value column, int64_t stride = 1);
  void startRows(const Fold &fold);
  void foldColumns(const Fold &fold, Value line, Value row);
  void foldWindows(const Fold &fold, Value line, Value row);
  void emitRows();
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
  bool isFloat, isUnsigned, isAverage;
  int64_t lanes;
  unsigned narrowest = 8;
  Index batch, channel;     ///< of the current window
  bool laneSpatial = false; ///< lanes run along the last spatial axis
  bool everyTap = false;    ///< all taps of the current window are inside the input
};

Carried PoolEmitter::overTaps(ArrayRef<Value> at, ValueRange init,
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
  Indices index = plane();
  for (size_t i = 0; i < axes.size(); ++i) {
    Value position = axes[i].position(b, at[i], taps[i]);
    bool along = laneSpatial && i + 1 == axes.size();
    index.push_back(e.at(position, 1, along ? axes[i].stride : 0));
  }
  return e.evaluateWide(input, index);
}

/// The result of a window from what it was folded to, and how many elements count.
Value PoolEmitter::resultOf(const Fold &fold, Value value, Value count) {
  if (isAverage)
    value = fold.divided(value, count);
  if (fold.number != e.computed(element))
    value = arith::TruncIOp::create(b, b.laneType(e.carried(element), e.lanes()), value);
  return e.narrow(value, element);
}

Value PoolEmitter::accumulate(dmir::Pooling kind, ArrayRef<Value> at) {
  Fold fold(b, kind, element, e.computed(element));
  Value value = fold.end(overTaps(at, fold.start(e.lanes()), [&](ArrayRef<Value> taps, ValueRange c) {
    return fold.step(c, readInput(at, taps));
  }));
  Value count = b.idx(1);
  for (size_t i = 0; isAverage && i < axes.size(); ++i)
    count = b.mul(count, counted(i, at[i]));
  return resultOf(fold, value, isAverage ? b.splat(fold.count(count), e.lanes()) : Value());
}

/// How many elements along an axis an average divides by.
Value PoolEmitter::counted(size_t i, Value at) {
  const WindowAxis &axis = axes[i];
  if (everyTap || (laneSpatial && i + 1 == axes.size()))
    return b.idx(axis.taps);
  auto [lo, hi] = cast<dmir::PoolOp>(root).getCountPadding()
                      ? validTaps(b, axis, at, Dim(0) - axis.low, axis.in + axis.high - axis.extra)
                      : validTaps(b, axis, at, 0, axis.in);
  return b.sub(hi, lo);
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
  Indices index = plane();
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

/// Runs `lanesOf` for the channels of a block, as many at a time as there are lanes.
void PoolEmitter::inBlock(Value block, llvm::function_ref<void()> lanesOf) {
  int64_t channels = shapeOf(input)[1];
  Value start = b.mulC(block, plan.block);
  for (int64_t lane = 0; lane < plan.block; lane += lanes) {
    Value first = b.addC(start, lane);
    e.knowDivision(first, plan.block, block, b.idx(lane));
    channel = e.at(first, lanes, lanes > 1);
    Value inside = b.sub(b.idx(channels), first);
    if (channels % plan.block == 0) {
      ElementExpr::Lanes all(e, lanes);
      lanesOf();
    } else if (lanes == 1) {
      b.ifThen(b.cmp(arith::CmpIPredicate::sgt, inside, b.idx(0)), lanesOf);
    } else {
      ElementExpr::Lanes some(e, lanes, b.headMask(lanes, inside));
      lanesOf();
    }
  }
}

void PoolEmitter::emitBlocked() {
  emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value, Value) {
    batch = e.at(outer[0]);
    inBlock(outer[1], [&] { blockedWindow(outer.drop_front(2)); });
  });
}

/// Outputs of an axis whose taps all lie inside the input.
std::pair<Dim, Dim> PoolEmitter::interior(size_t number) const {
  auto [first, end] = axes[number].interior();
  Dim last = Dim::min(Dim::max(end, 0), axes[number].out);
  return {Dim::min(first, last), last};
}

void PoolEmitter::emitPlain() {
  auto [first, last] = interior(axes.size() - 1);
  while (lanes > 1 && nominal(body.block, last - first) < lanes)
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

/// Columns [lo, hi) of a row: lanes of them, or the channels of one after the other.
void PoolEmitter::overColumns(Value lo, Value hi, llvm::function_ref<void(Value)> column) {
  if (plan.block)
    b.forLoop(lo, hi, b.idx(1), column);
  else
    laneLoop(e, lo, hi, lanes, narrowest, 1, [&](Index along) { column(along.base); });
}

/// The place in scratch of a column of one of the rows there.
Index PoolEmitter::columnAt(Value line, Value column, int64_t stride) {
  int64_t apart = e.lanes() == 1 ? 0 : plan.block ? 1 : stride;
  column = b.add(b.mulC(line, plan.columns), column);
  return e.at(plan.block ? b.mulC(column, e.lanes()) : column, 1, apart);
}

/// What does not differ from row to row: padding around the columns, and how many elements count of each window's
/// columns, behind them.
void PoolEmitter::startRows(const Fold &fold) {
  const WindowAxis &axis = axes[1];
  ElementExpr::Lanes all(e, lanes);
  b.forLoop(0, kRows, 1, [&](Value line) {
    auto fill = [&](Value column) { e.storeAt(fold.start(e.lanes())[0], b.scratch(), columnAt(line, column)); };
    overColumns(b.idx(0), b.idx(axis.low), fill);
    overColumns(b.idx(axis.low + axis.in), b.idx(plan.columns), fill);
  });
  if (isAverage && !plan.block)
    b.forLoop(b.idx(0), b.idx(axis.out), b.idx(1), [&](Value at) {
      b.store(fold.count(counted(1, at)), b.scratch(), b.add(b.idx(plan.columns * kRows), at));
    });
}

/// The columns of all that a row of the result reads.
void PoolEmitter::foldColumns(const Fold &fold, Value line, Value row) {
  auto [first, last] = validTaps(b, axes[0], row, 0, axes[0].in);
  overColumns(b.idx(0), b.idx(axes[1].in), [&, first = first, last = last](Value column) {
    e.forget();
    Carried folded = b.forLoop(first, last, b.idx(1), fold.start(e.lanes()), [&](Value tap, ValueRange c) {
      Indices index = plane();
      index.push_back(e.at(axes[0].position(b, row, tap)));
      index.push_back(e.at(column, 1, plan.block || e.lanes() == 1 ? 0 : 1));
      return fold.step(c, e.evaluateWide(input, index));
    });
    e.storeAt(fold.end(folded), b.scratch(), columnAt(line, b.add(column, b.idx(axes[1].low))));
  });
}

/// The windows of a row of the result, of such columns.
void PoolEmitter::foldWindows(const Fold &fold, Value line, Value row) {
  const WindowAxis &axis = axes[1];
  Value rows = isAverage ? counted(0, row) : Value();
  overColumns(b.idx(0), b.idx(axis.out), [&](Value at) {
    e.forget();
    Value first = b.mulC(at, axis.stride), count;
    Carried folded = fold.start(e.lanes());
    for (int64_t tap = 0; tap < *axis.taps.known(); ++tap) {
      Index column = columnAt(line, b.addC(first, tap * axis.dilation), axis.stride);
      folded = fold.step(folded, e.loadAt(fold.number, b.scratch(), column));
    }
    if (isAverage && plan.block)
      count = b.splat(fold.count(b.mul(rows, counted(1, at))), e.lanes());
    else if (isAverage)
      count = fold.times(b.splat(fold.count(rows), e.lanes()),
                         e.loadAt(fold.number, b.scratch(), columnAt(b.idx(kRows), at)));
    e.bindValue(root->getResult(0), resultOf(fold, fold.end(folded), count));
    Indices index = plane();
    index.append({e.at(row), e.at(at, 1, plan.block || e.lanes() == 1 ? 0 : 1)});
    writer.write(index);
  });
}

void PoolEmitter::emitRows() {
  Fold fold(b, cast<dmir::PoolOp>(root).getKind(), element, e.computed(element));
  startRows(fold);
  emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value, Value) {
    batch = e.at(outer[0]);
    Value first = b.mulC(outer[2], kRows), count = b.minS(b.idx(kRows), b.sub(b.idx(axes[0].out), first));
    auto rows = [&] {
      auto each = [&](auto fn) {
        b.forLoop(b.idx(0), count, b.idx(1), [&](Value line) { (this->*fn)(fold, line, b.add(first, line)); });
      };
      each(&PoolEmitter::foldColumns);
      each(&PoolEmitter::foldWindows);
    };
    if (plan.block)
      return inBlock(outer[1], rows);
    channel = e.at(outer[1]);
    rows();
  });
}

void PoolEmitter::emit() {
  if (plan.rows)
    emitRows();
  else if (plan.block)
    emitBlocked();
  else
    emitPlain();
}

} // namespace

/// Whether the columns of a row are folded before its windows: a processor with lanes, and so many taps that two folds
/// and the way through scratch are fewer. Lanes that lie strides apart are two vectors' work.
static bool paysByRows(Operation *root, ArrayRef<WindowAxis> axes, bool isBlocked, const Processor &processor) {
  if (!mlir::isa<dmir::PoolOp>(root) || axes.size() != 2 || processor.vectorBytes == 1)
    return false;
  const int64_t rows = *axes[0].taps.known(), columns = *axes[1].taps.known();
  constexpr int64_t wayThroughScratch = 2;
  const int64_t own = columns * (isBlocked || axes[1].stride == 1 ? 1 : 2);
  return 2 * rows * own >= 3 * (rows * axes[1].stride + own + wayThroughScratch);
}

static PoolPlan planOf(const RegionBody &body, const Processor &processor) {
  PoolPlan plan;
  Value result = body.root->getResult(0);
  auto type = body.resultType();
  SmallVector<WindowAxis> axes = windowsOfPool(body.root);
  int64_t taps = 1;
  for (const WindowAxis &axis : axes)
    taps *= *axis.taps.known();
  SmallVector<Dim> dims = dmir::dimsOf(result);
  if (auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type)); blocked && blocked.getAxis() == 1) {
    plan.block = blocked.getBlock();
    dims[1] = Dim::ceilDiv(dims[1], plan.block);
  }
  plan.rows = paysByRows(body.root, axes, plan.block, processor);
  double cost = plan.block ? 2.0 * taps + 2 : 0.4 * taps + 0.5;
  if (plan.rows) {
    const WindowAxis &axis = axes[1];
    Dim read = (axis.out - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
    plan.columns = Dim::max(axis.low + axis.in, read);
    cost = static_cast<double>(nominal(body.block, plan.columns) * kRows) * (plan.block ? 1.0 : 0.2) *
           static_cast<double>(*axes[0].taps.known() + *axis.taps.known() + 2);
    dims[2] = Dim::ceilDiv(dims[2], kRows);
    dims[3] = 1;
  } else if (plan.block) {
    dims.push_back(1);
  }
  plan.work = processor.planWork(body.block, dims, cost);
  return plan;
}

/// Bytes of what rows have in scratch.
static Dim scratchOf(const RegionBody &body, const PoolPlan &plan) {
  Type element = getElementTypeOrSelf(body.root->getOperand(0).getType());
  const bool isWide = !mlir::isa<FloatType>(element) || element.isF64();
  Dim numbers = plan.columns * kRows * std::max<int64_t>(plan.block, 1) + dmir::dimsOf(body.root->getResult(0)).back();
  return plan.rows ? numbers * (isWide ? 8 : 4) : Dim(0);
}

static Result<KernelPlan> planPool(const RegionBody &body, const PlanRequest &request) {
  PoolPlan details = planOf(body, request.nominal);
  std::string algorithm = details.rows ? "pool-rows" : "pool";
  KernelPlan plan(algorithm + (details.block ? "-blocked" : ""), details.work);
  plan.scratch = scratchOf(body, details);
  plan.emit = [body, details](KernelBuilder &b) { PoolEmitter(b, body, details).emit(); };
  return plan;
}

void dmxc::kernels::registerPools(KernelTable &table) {
  table.add<dmir::PoolOp, dmir::ArgMaxPoolOp>({.plan = planPool, .epilogue = true});
}
