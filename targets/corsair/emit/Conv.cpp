//===- Conv.cpp - convolution and pooling ---------------------------------===//
//
// Images lie channels last. The reshape engine gathers the window of each output pixel into a row, and the rows are
// multiplied like any matrix; a 1x1 convolution without stride needs no gathering. A depthwise convolution is a function
// of the vector device.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "MatmulView.h"
#include "Window.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey;

Window::Window(ArrayRef<int64_t> image, ArrayRef<int64_t> result, ArrayRef<int64_t> kernel, ArrayRef<int64_t> stride,
               ArrayRef<int64_t> dilation, ArrayRef<int64_t> low) {
  auto pick = [](ArrayRef<int64_t> values, size_t fromEnd, int64_t missing) {
    return values.size() > fromEnd ? values[values.size() - 1 - fromEnd] : missing;
  };
  h = image.size() > 3 ? pick(image, 1, 1) : 1;
  w = pick(image, 0, 1);
  outH = result.size() > 3 ? pick(result, 1, 1) : 1;
  outW = pick(result, 0, 1);
  kh = pick(kernel, 1, 1), kw = pick(kernel, 0, 1);
  sh = pick(stride, 1, 1), sw = pick(stride, 0, 1);
  dh = pick(dilation, 1, 1), dw = pick(dilation, 0, 1);
  ph = pick(low, 1, 0), pw = pick(low, 0, 0);
}

std::vector<hw::ConfigPair> Window::keys() const {
  return {{ConfigKey::WinH, h},   {ConfigKey::WinW, w},   {ConfigKey::WinKH, kh}, {ConfigKey::WinKW, kw},
          {ConfigKey::WinSH, sh}, {ConfigKey::WinSW, sw}, {ConfigKey::WinPH, ph}, {ConfigKey::WinPW, pw},
          {ConfigKey::WinDH, dh}, {ConfigKey::WinDW, dw}, {ConfigKey::WinOW, outW}};
}

/// An image with a row axis: [n, c, h, w] from [n, c, w] or itself.
static DeviceTensor withRows(DeviceTensor tensor) {
  if (tensor.rank() == 3) {
    tensor.shape.insert(tensor.shape.begin() + 2, 1);
    tensor.strides.insert(tensor.strides.begin() + 2, 0);
  }
  return tensor;
}

static SmallVector<unsigned> channelsLast(size_t rank) {
  SmallVector<unsigned> order{0};
  for (unsigned i = 2; i < rank; ++i)
    order.push_back(i);
  order.push_back(1);
  return order;
}

Status KernelLowering::lowerConv(Operation *op) {
  auto conv = cast<dmir::ConvOp>(op);
  DeviceTensor source = values[conv.getInput()];
  SmallVector<unsigned> order = channelsLast(source.rank());
  auto type = cast<RankedTensorType>(conv.getResult().getType());
  DeviceTensor out = allocate(type.getShape(), *deviceKind(type.getElementType()), order);
  values[conv.getResult()] = out;
  if (out.elements() == 0)
    return Status::ok();
  ArrayRef<int64_t> weights = cast<RankedTensorType>(conv.getWeights().getType()).getShape();
  DeviceTensor result = withRows(out);
  Window window(source.shape, out.shape, weights.drop_front(2), conv.getStrides(), conv.getDilations(), conv.getLow());
  int64_t channels = source.shape[1];
  if (source.strides[1] != source.elementSize() && channels > 1)
    source = copied(source, order);
  DeviceTensor image = withRows(source);

  if (conv.getGroups() > 1) { // depthwise: see refusal
    DeviceTensor kernel = withRows(values[conv.getWeights()]);
    SimdOp simdOp{hw::SimdFunction::DepthwiseConv, {result.shape[0], result.shape[2], result.shape[3], channels}};
    auto pixel = [](const DeviceTensor &t) {
      return SimdOperand{t.kind, t.address, {t.strides[0], t.strides[2], t.strides[3], t.strides[1]}};
    };
    simdOp.result = pixel(result);
    simdOp.sources = {pixel(image), {kernel.kind, kernel.address, {0, kernel.strides[2], kernel.strides[3], kernel.strides[0]}}};
    simdOp.keys = window.keys();
    simdOp.joinable = false;
    simd(std::move(simdOp));
    return Status::ok();
  }

  const int64_t depth = window.kh * window.kw * channels, pixels = window.outH * window.outW;
  MatmulPlan plan = planMatmul(machine, pixels, weights[0], depth);
  Address packed = tiles.lookup(conv.getWeights());
  bool direct = window.isPointwise() && image.strides[2] == image.strides[3] * window.w;
  int rows = direct ? -1 : buffers.add(hw::Memory::GM, pixels * depth * 2);
  main.loop(result.shape[0], [&](int loop) {
    MatmulOperands operands;
    operands.streamed = true;
    operands.st = packed;
    operands.out = result.address.plusLoop(loop, result.strides[0]);
    operands.outRow = result.strides[3];
    operands.aColumn = 2;
    if (direct) {
      operands.a = image.address.plusLoop(loop, image.strides[0]);
      operands.aRow = image.strides[3];
    } else {
      std::vector<hw::ConfigPair> keys = window.keys();
      keys.insert(keys.end(), {{ConfigKey::Kind, static_cast<int64_t>(image.kind)},
                               {ConfigKey::WinC, channels},
                               {ConfigKey::N0, pixels},
                               {ConfigKey::S1, image.strides[2]},
                               {ConfigKey::S2, image.strides[3]},
                               {ConfigKey::T0, depth * 2},
                               {ConfigKey::T1, channels * 2}});
      int slot = main.config(hw::Unit::GM, std::move(keys));
      main.emit(hw::Opcode::Extract).set("rule", static_cast<int64_t>(hw::Rule::Window)).set("slot", slot);
      main.address("saddr", image.address.plusLoop(loop, image.strides[0]));
      main.address("daddr", {rows, 0, {}});
      operands.a = {rows, 0, {}};
      operands.aRow = depth * 2;
    }
    emitProduct(main, plan, operands);
  });
  return Status::ok();
}

Status KernelLowering::lowerPool(Operation *op) {
  auto pool = cast<dmir::PoolOp>(op);
  DeviceTensor source = values[pool.getInput()];
  auto type = cast<RankedTensorType>(pool.getResult().getType());
  DeviceTensor out = allocate(type.getShape(), source.kind, channelsLast(source.rank()));
  values[pool.getResult()] = out;
  Window window(source.shape, out.shape, pool.getWindow(), pool.getStrides(), pool.getDilations(), pool.getLow());
  DeviceTensor image = withRows(source), result = withRows(out);
  auto pixel = [](const DeviceTensor &t) {
    return SimdOperand{t.kind, t.address, {t.strides[0], t.strides[2], t.strides[3], t.strides[1]}};
  };
  bool average = pool.getKind() == dmir::Pooling::average;
  SimdOp simdOp{average ? hw::SimdFunction::PoolAvg : hw::SimdFunction::PoolMax,
                {result.shape[0], result.shape[2], result.shape[3], result.shape[1]}};
  simdOp.result = pixel(result);
  simdOp.sources = {pixel(image)};
  simdOp.keys = window.keys();
  simdOp.keys.emplace_back(ConfigKey::CountPad, average && pool.getCountPadding());
  simdOp.joinable = false;
  simd(std::move(simdOp));
  return Status::ok();
}
