//===- Window.cpp - windows of convolutions and poolings ------------------===//

#include "Window.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

SmallVector<WindowAxis> dmxc::kernels::windowsOf(dmir::ConvOp op) {
  SmallVector<Dim> in = dmir::dimsOf(op.getInput()), out = dmir::dimsOf(op.getResult()),
                   weights = dmir::dimsOf(op.getWeights()), low = dmir::mixDims(op.getLow(), op.getDims());
  SmallVector<WindowAxis> axes;
  for (size_t i = 0; i + 2 < in.size(); ++i)
    axes.push_back({in[i + 2], out[i + 2], weights[i + 2], op.getStrides()[i], op.getDilations()[i], low[i]});
  return axes;
}

SmallVector<WindowAxis> dmxc::kernels::windowsOfPool(Operation *op) {
  auto attr = [&](StringRef name) { return op->getAttrOfType<DenseI64ArrayAttr>(name).asArrayRef(); };
  // Dynamic ones of low, high and ceilExtra are in the op's dims, in this order.
  auto named = op->getAttrOfType<dmir::DimsAttr>("dims");
  size_t used = 0;
  auto sizes = [&](StringRef name) {
    ArrayRef<int64_t> numbers;
    if (auto array = op->getAttrOfType<DenseI64ArrayAttr>(name))
      numbers = array.asArrayRef();
    SmallVector<Dim> dims = dmir::mixDims(numbers, named ? std::optional(named) : std::nullopt, used);
    used += dmir::countDynamic(numbers);
    dims.resize(attr("window").size(), 0);
    return dims;
  };
  SmallVector<Dim> low = sizes("low"), high = sizes("high"), extra = sizes("ceilExtra");
  SmallVector<WindowAxis> axes;
  for (size_t i = 0; i < attr("window").size(); ++i)
    axes.push_back({dmir::dimOf(op->getOperand(0), i + 2), dmir::dimOf(op->getResult(0), i + 2), attr("window")[i],
                    attr("strides")[i], attr("dilations")[i], low[i], 0, high[i], extra[i]});
  return axes;
}

std::pair<Dim, Dim> WindowAxis::interior() const {
  Dim first = Dim::ceilDiv(low, stride), room = in + low - (taps - 1) * dilation - 1;
  return {first, Dim::floorDiv(room, stride) + 1};
}

std::pair<Value, Value> dmxc::kernels::validTaps(KernelBuilder &b, const WindowAxis &axis, Value out, Dim from,
                                                 Dim to) {
  Value origin = axis.origin(b, out);
  auto inWindow = [&](Dim limit) { // ceil((limit - origin) / dilation), clamped to the window
    Value distance = b.maxS(b.sub(b.idx(limit), origin), b.idx(0));
    return b.minS(b.ceilDiv(distance, b.idx(axis.dilation)), b.idx(axis.taps));
  };
  return {inWindow(from), inWindow(to)};
}
