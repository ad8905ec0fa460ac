//===- ConvGeneric.cpp - convolutions of unusual operands ---------------------===//
//
// Element by element, for what register tiles do not take: weights of open sizes or that are a constant
// inside the region, 8-bit floats and narrow integers of open sizes.
//
//===----------------------------------------------------------------------===//

#include "ConvRegion.h"
#include "targets/common/roots/Pool.h"
#include "targets/cpu/product/GemmTile.h"
#include "targets/cpu/product/MatmulRegion.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

class GenericConv {
public:
  GenericConv(CpuBuilder &b, const RegionBody &body)
      : b(b), e(b, body.block), writer(e, body), op(cast<dmir::ConvOp>(body.root)),
        element(getElementTypeOrSelf(op.getResult().getType())) {
    SmallVector<Dim> low = dmir::mixDims(op.getLow(), op.getDims());
    for (size_t i = 0; i < op.getStrides().size(); ++i)
      axes.push_back({dmir::dimOf(op.getInput(), i + 2), dmir::dimOf(op.getWeights(), i + 2), op.getStrides()[i],
                      op.getDilations()[i], low[i], 0, 0});
  }

  /// One element of the result.
  void run(ArrayRef<Value> at) {
    e.forget();
    Dim groupIc = dmir::dimOf(op.getWeights(), 1);
    Dim groupOc = Dim::max(Dim::floorDiv(dmir::dimOf(op.getWeights(), 0), op.getGroups()), 1);
    Value firstChannel = b.mulC(b.floorDiv(at[1], b.idx(groupOc)), groupIc);
    Value zero = b.constantInt(e.computed(element), 0);
    SmallVector<Value> taps;
    auto nest = [&](auto &&self, Value channel, ValueRange carried) -> SmallVector<Value> {
      size_t axis = taps.size();
      if (axis == axes.size())
        return {term(at, b.add(firstChannel, channel), channel, taps, carried[0])};
      auto [lo, hi] = validTaps(b, axes[axis], at[axis + 2], 0, axes[axis].in);
      return b.forLoop(lo, hi, b.idx(1), carried, [&](Value tap, ValueRange c) {
        taps.push_back(tap);
        SmallVector<Value> next = self(self, channel, c);
        taps.pop_back();
        return next;
      });
    };
    Value sum = b.forLoop(b.idx(0), b.idx(groupIc), b.idx(1), zero,
                          [&](Value channel, ValueRange c) { return nest(nest, channel, c); })[0];
    Value result = fromAccumulator(e, sum, element);
    e.bind(op.getResult(), [result](ArrayRef<Index>) { return result; });
    writer.write(positions(at));
  }

private:
  Indices positions(ArrayRef<Value> values) {
    Indices index;
    for (Value value : values)
      index.push_back(e.at(value));
    return index;
  }

  Value term(ArrayRef<Value> at, Value channel, Value groupChannel, ArrayRef<Value> taps, Value sum) {
    SmallVector<Value> from{at[0], channel}, weight{at[1], groupChannel};
    for (auto [i, axis] : llvm::enumerate(axes)) {
      Value origin = b.sub(b.mulC(at[i + 2], axis.stride), b.idx(axis.low));
      from.push_back(b.add(origin, b.mulC(taps[i], axis.dilation)));
      weight.push_back(taps[i]);
    }
    auto operand = [&](Value tensor, ArrayRef<Value> at) {
      Type own = getElementTypeOrSelf(tensor.getType());
      return convertElements(b, {e.computed(own), e.computed(element), isUnsignedElement(own)},
                             e.evaluateWide(tensor, positions(at)));
    };
    Value x = operand(op.getInput(), from), w = operand(op.getWeights(), weight);
    if (mlir::isa<FloatType>(element))
      return b.fma(x, w, sum);
    return arith::AddIOp::create(b, sum, arith::MulIOp::create(b, x, w));
  }

  CpuBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  dmir::ConvOp op;
  Type element;
  SmallVector<WindowAxis> axes;
};

} // namespace

KernelPlan dmxc::cpu::planGenericConv(const RegionBody &body, const Choice &choice) {
  auto op = cast<dmir::ConvOp>(body.root);
  SmallVector<Dim> weights = dmir::dimsOf(op.getWeights());
  double taps = nominal(body.block, dmir::product(ArrayRef<Dim>(weights).drop_front()));
  WorkPlan work = choice.nominal.planWork(body.block, dmir::dimsOf(op.getResult()), taps + 1);
  KernelPlan plan("conv-generic", work);
  plan.emit = [body, work](KernelBuilder &b) {
    GenericConv conv(CpuBuilder::of(b), body);
    emitItems(b, work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
      SmallVector<Value> at(outer);
      at.push_back({});
      b.forLoop(lo, hi, b.idx(1), [&](Value i) {
        at.back() = i;
        conv.run(at);
      });
    });
  };
  return plan;
}
