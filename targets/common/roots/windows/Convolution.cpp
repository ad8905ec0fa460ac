//===- Convolution.cpp - convolutions, element by element ---------------------===//
//
// The plain kernel of dmir.conv: each element of the result is a sum of its own over the taps that lie inside the
// input, so padding costs no test an element. Targets with something better have a row of their own in its place.
//
//===----------------------------------------------------------------------===//

#include "Window.h"
#include "targets/common/roots/KernelTable.h"
#include "targets/common/roots/Loops.h"
#include "targets/common/roots/Terms.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

class ConvolutionEmitter {
public:
  ConvolutionEmitter(KernelBuilder &b, const RegionBody &body, bool chained)
      : b(b), e(b, body.block), writer(e, body), op(cast<dmir::ConvOp>(body.root)), terms(e, elementOf(op.getResult())),
        axes(windowsOf(op)), chained(chained) {}

  void emit(const WorkPlan &work);

private:
  using Carried = SmallVector<Value>;
  void element(ArrayRef<Value> at);
  /// The sum with those of a channel's taps from the axis behind `taps` on.
  Value overTaps(ArrayRef<Value> at, Value channel, SmallVector<Value> &taps, Value sum);
  Value term(ArrayRef<Value> at, Value channel, ArrayRef<Value> taps, Value sum);
  Indices positions(ArrayRef<Value> values) {
    Indices index;
    for (Value value : values)
      index.push_back(e.at(value));
    return index;
  }

  KernelBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  dmir::ConvOp op;
  Terms terms;
  SmallVector<WindowAxis> axes;
  bool chained;
  Value firstChannel; ///< of the input, that the current element's group reads
};

Value ConvolutionEmitter::term(ArrayRef<Value> at, Value channel, ArrayRef<Value> taps, Value sum) {
  e.forget();
  SmallVector<Value> from{at[0], b.add(firstChannel, channel)}, weight{at[1], channel};
  for (auto [i, axis] : llvm::enumerate(axes)) {
    from.push_back(axis.position(b, at[i + 2], taps[i]));
    weight.push_back(taps[i]);
  }
  return terms.add(sum, terms.operand(op.getInput(), positions(from)),
                   terms.operand(op.getWeights(), positions(weight)));
}

Value ConvolutionEmitter::overTaps(ArrayRef<Value> at, Value channel, SmallVector<Value> &taps, Value sum) {
  size_t axis = taps.size();
  if (axis == axes.size())
    return term(at, channel, taps, sum);
  auto [lo, hi] = validTaps(b, axes[axis], at[axis + 2], 0, axes[axis].in);
  return b.forLoop(lo, hi, b.idx(1), sum, [&](Value tap, ValueRange c) {
    taps.push_back(tap);
    Value next = overTaps(at, channel, taps, c[0]);
    taps.pop_back();
    return Carried{next};
  })[0];
}

void ConvolutionEmitter::element(ArrayRef<Value> at) {
  e.forget();
  Dim channels = dmir::dimOf(op.getWeights(), 1);
  Dim outputsOfGroup = Dim::max(Dim::floorDiv(dmir::dimOf(op.getWeights(), 0), op.getGroups()), 1);
  firstChannel = b.mulC(b.floorDiv(at[1], b.idx(outputsOfGroup)), channels);
  Value sum = b.forLoop(b.idx(0), b.idx(channels), b.idx(1), terms.zero(), [&](Value channel, ValueRange c) {
    SmallVector<Value> taps;
    if (chained || !mlir::isa<FloatType>(elementOf(op.getResult())))
      return Carried{overTaps(at, channel, taps, c[0])};
    return Carried{arith::AddFOp::create(b, c[0], overTaps(at, channel, taps, terms.zero()))};
  })[0];
  e.bindValue(op.getResult(), terms.finish(sum));
  writer.write(positions(at));
}

void ConvolutionEmitter::emit(const WorkPlan &work) {
  emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
    ElementExpr::Lanes one(e, 1);
    SmallVector<Value> at(outer);
    at.push_back({});
    b.forLoop(lo, hi, b.idx(1), [&](Value i) {
      at.back() = i;
      element(at);
    });
  });
}

} // namespace

KernelPlan dmxc::kernels::planPlainConvolution(const RegionBody &body, const PlanRequest &request, StringRef algorithm,
                                               bool chained) {
  double cost = static_cast<double>(nominal(body.block, termsOfConvolution(body.root))) + 1;
  WorkPlan work = request.nominal.planWork(body.block, dmir::dimsOf(body.root->getResult(0)), cost);
  KernelPlan plan(algorithm.str(), work);
  plan.emit = [body, work, chained](KernelBuilder &b) { ConvolutionEmitter(b, body, chained).emit(work); };
  return plan;
}

static Result<KernelPlan> planConvolution(const RegionBody &body, const PlanRequest &request) {
  return planPlainConvolution(body, request, "conv-plain", /*chained=*/false);
}

Dim dmxc::kernels::termsOfConvolution(Operation *op) {
  return dmir::product(ArrayRef<Dim>(dmir::dimsOf(op->getOperand(1))).drop_front());
}

Dim dmxc::kernels::operationsOfConvolution(Operation *op) { return productOperations(op, termsOfConvolution(op)); }

void dmxc::kernels::registerConvolutions(KernelTable &table) {
  table.add<dmir::ConvOp>({.plan = planConvolution, .epilogue = true, .operations = operationsOfConvolution});
}
