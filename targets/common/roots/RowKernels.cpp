//===- RowKernels.cpp - softmax and normalisation -----------------------------===//
//
// A row is computed once, into scratch that stays in the first-level cache; the later passes read it
// from there. Types narrower than f32 are computed in f32 and rounded once.
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"
#include "Rows.h"

#include "targets/common/math/VectorMath.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

class RowEmitter {
public:
  RowEmitter(KernelBuilder &b, const RegionBody &body, const RowPlan &plan)
      : b(b), walker(b, body, plan), element(getElementTypeOrSelf(plan.input.getType())),
        compute(walker.e.computed(element)) {}

  /// `mask`: what rows are walked by the ranges of; null: all of them.
  void softmax(dmir::SoftmaxOp op, dmir::MaskOp mask);
  void normalize(dmir::NormalizeOp op);

private:
  /// A value of the whole row in as many lanes as its elements have now.
  Value wide(Value value) {
    bool scalar = !mlir::isa<VectorType>(value.getType());
    return scalar ? b.splat(value, walker.e.lanes()) : value;
  }
  /// What was kept of an element, or it is computed again.
  Value read(Value slot, llvm::function_ref<Value()> again) {
    if (walker.plan.copies)
      return b.load(compute, b.scratch(), slot, walker.e.lanes());
    walker.e.forget();
    return again();
  }
  Value read(Value slot) {
    return read(slot, [&] { return walker.element(); });
  }
  Value keep(Value value, Value slot) {
    if (walker.plan.copies)
      b.store(value, b.scratch(), slot);
    return value;
  }
  /// The operand's element, which is kept if it is not to be had as cheaply again.
  Value input(Value slot) { return walker.plan.rereads ? walker.element() : keep(walker.element(), slot); }
  Value inputAgain(Value slot) {
    if (!walker.plan.rereads)
      return read(slot);
    walker.e.forget();
    return walker.element();
  }
  /// A NaN may be lost: the sum of the powers has it again.
  Value greater(Value x, Value y) {
    return arith::SelectOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y), x, y);
  }
  Value zero(Type type) { return b.constant(type, 0); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  /// `first`: it is the first pass over a row.
  Value sum(bool first, llvm::function_ref<Value(Value)> term) {
    return walker.fold(
        compute, [&](Type type) { return zero(type); }, [&](Value x, Value y) { return add(x, y); }, term,
        /*reads=*/first || !walker.plan.copies);
  }
  void write(Value value) { walker.write(walker.e.narrow(value, element), /*whole=*/true); }

  /// What all elements of a row are that its ranges have not: one number.
  void writeLeftOut(Value value) {
    walker.eachLeftOut([&] { write(wide(value)); });
  }

  KernelBuilder &b;
  RowWalker walker;
  Type element, compute;
};

void RowEmitter::softmax(dmir::SoftmaxOp op, dmir::MaskOp mask) {
  VectorMath math(b, b.processor());
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  walker.rows([&] {
    if (mask)
      walker.narrow(mask);
    Value highest = walker.fold(
        compute, [&](Type type) { return b.constant(type, lowest); }, [&](Value x, Value y) { return greater(x, y); },
        [&](Value slot) { return input(slot); });
    auto powerOf = [&](Value value) { return math.exp(sub(value, wide(highest))); };
    Value total = sum(/*first=*/false, [&](Value slot) {
      Value power = powerOf(inputAgain(slot));
      return op.getLog() ? power : keep(power, slot);
    });
    if (op.getLog()) {
      Value shift = math.log(total);
      auto logOf = [&](Value value) { return sub(sub(value, wide(highest)), wide(shift)); };
      walker.each([&](Value slot) { write(logOf(inputAgain(slot))); });
      if (mask)
        writeLeftOut(logOf(b.constant(compute, lowest)));
      return;
    }
    Value scale = arith::DivFOp::create(b, b.constant(total.getType(), 1), total);
    auto scaled = [&](Value power) { return mul(power, wide(scale)); };
    walker.each([&](Value slot) { write(scaled(read(slot, [&] { return powerOf(walker.element()); }))); });
    if (mask)
      writeLeftOut(scaled(powerOf(b.constant(compute, lowest))));
  });
}

void RowEmitter::normalize(dmir::NormalizeOp op) {
  auto count = [&](Type type) { return sizeAsFloat(b, walker.plan.count, type); };
  walker.rows([&] {
    Value mean, square;
    if (op.getKind() == dmir::Normalization::standard) {
      Value total = sum(/*first=*/true, [&](Value slot) { return keep(walker.element(), slot); });
      mean = arith::DivFOp::create(b, total, count(total.getType()));
      square = sum(/*first=*/false, [&](Value slot) {
        Value centred = keep(sub(read(slot), wide(mean)), slot);
        return mul(centred, centred);
      });
    } else {
      square = sum(/*first=*/true, [&](Value slot) {
        Value value = keep(walker.element(), slot);
        return mul(value, value);
      });
    }
    Type type = square.getType();
    Value variance = arith::DivFOp::create(b, square, count(type));
    Value deviation = math::SqrtOp::create(b, add(variance, b.constant(type, op.getEpsilon().convertToDouble())));
    Value scale = arith::DivFOp::create(b, b.constant(type, 1), deviation);
    walker.each([&](Value slot) {
      write(mul(read(slot, [&] { return mean ? sub(walker.element(), wide(mean)) : walker.element(); }), wide(scale)));
    });
  });
}

} // namespace

/// The mask of a softmax whose ranges its rows are walked by, if they are: it puts -inf in the place of what it leaves
/// out of rows that are long enough.
static dmir::MaskOp rangesOf(const RegionBody &body, const RowPlan &plan, const PlanRequest &request) {
  constexpr int64_t least = 256;
  auto softmax = dyn_cast<dmir::SoftmaxOp>(body.root);
  auto mask = softmax ? softmax.getInput().getDefiningOp<dmir::MaskOp>() : dmir::MaskOp();
  if (!mask || !hasRanges(plan, mask) || nominal(body.block, plan.count) < least ||
      !request.usesRanges(body.block, /*exact=*/true))
    return {};
  APFloat fill = cast<FloatAttr>(mask.getFill()).getValue();
  return fill.isInfinity() && fill.isNegative() ? mask : dmir::MaskOp();
}

/// Whether a row lies in memory as it is computed with, so that a copy would only be further away than it.
static bool readsInPlace(const RowPlan &plan) {
  Type element = getElementTypeOrSelf(plan.input.getType());
  return mlir::isa<BlockArgument>(plan.input) && (element.isF32() || element.isF64()) && !plan.lanesAcross() &&
         !plan.team.shares() && plan.groups.size() > plan.laneGroup && plan.laneGroup + 1 == plan.groups.size();
}

static Result<KernelPlan> planRowKernel(const RegionBody &body, const PlanRequest &request) {
  auto softmax = dyn_cast<dmir::SoftmaxOp>(body.root);
  RowPlan details = softmax
                        ? planRows(body, request.nominal, {static_cast<int64_t>(softmax.getAxis())}, false, true, 6)
                        : planRows(body, request.nominal, cast<dmir::NormalizeOp>(body.root).getAxes(), false, true, 4);
  Type element = getElementTypeOrSelf(details.input.getType());
  details.rereads = softmax && readsInPlace(details);
  const int64_t bytes = details.rereads && softmax.getLog() ? 0 : element.isF64() ? 8 : 4;
  KernelPlan plan = planOfRows(body, request.nominal, details, bytes);
  dmir::MaskOp mask = rangesOf(body, details, request);
  if (mask) {
    plan.algorithm += kRanges;
    plan.skips.push_back("scores");
  }
  plan.emit = [body, details, mask](KernelBuilder &b) {
    RowEmitter emitter(b, body, details);
    if (auto op = dyn_cast<dmir::SoftmaxOp>(body.root))
      emitter.softmax(op, mask);
    else
      emitter.normalize(cast<dmir::NormalizeOp>(body.root));
  };
  return plan;
}

static Dim operations(Operation *op) { return Dim(4) * elementsTouched(op); }

void dmxc::kernels::registerRowKernels(KernelTable &table) {
  // A row is read whole before any of it is written, and written by the same thread.
  table.add<dmir::SoftmaxOp, dmir::NormalizeOp>({.plan = planRowKernel,
                                                 .readsOnce = true,
                                                 .epilogue = true,
                                                 .inPlace = InPlace::SameIndex,
                                                 .operations = operations});
}
