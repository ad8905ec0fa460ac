//===- Conv.cpp - convolution and pooling ---------------------------------===//
//
// Images lie channels last. An image is quantised to tiles once, and the array controller takes the window of each
// output pixel from them (CONV). Of few channels most of such tiles would be zeros: then the vector device lays whole
// windows side by side, each output pixel's in one row of numbers, and the image that CONV walks over is of these, with
// windows of one place. A depthwise convolution is a function of the vector device.
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// Of a tensor [n, c, h, w]: as images whose dims are walked over channels last.
static SimdOperand pixelOf(const DeviceTensor &t) {
  return {t.kind, t.address, {t.strides[0], t.strides[2], t.strides[3], t.strides[1]}};
}

/// An image with a row axis: [n, c, h, w] from [n, c, w] or itself.
static DeviceTensor withRows(DeviceTensor tensor) {
  if (tensor.rank() == 3) {
    tensor.shape.insert(tensor.shape.begin() + 2, 1);
    tensor.strides.insert(tensor.strides.begin() + 2, 0);
  }
  return tensor;
}

SmallVector<unsigned> dmxc::corsair::channelsLast(size_t rank) {
  SmallVector<unsigned> order{0};
  for (unsigned i = 2; i < rank; ++i)
    order.push_back(i);
  order.push_back(1);
  return order;
}

void KernelWriter::convolveEach(const DeviceTensor &source, const DeviceTensor &weights, const DeviceTensor &out,
                                const hw::Window &window) {
  const DeviceTensor image = withRows(source), kernel = withRows(weights), result = withRows(out);
  SimdOp simdOp{hw::SimdFunction::DepthwiseConv, {result.shape[0], result.shape[2], result.shape[3], image.shape[1]}};
  simdOp.result = pixelOf(result);
  simdOp.sources = {pixelOf(image),
                    {kernel.kind, kernel.address, {0, kernel.strides[2], kernel.strides[3], kernel.strides[0]}}};
  simdOp.window = window;
  simd(std::move(simdOp));
}

/// Quantises an image to tiles of 64 pixels by 64 channels.
static void packImage(const QueueWriter &load, const DeviceTensor &image, const hw::Window &window, int64_t blocks,
                      const Address &from, const Address &to) {
  const int64_t channel = image.strides[1];
  DmaSpec spec{hw::nameOf(image.kind), hw::nameOf(hw::ElemKind::Bfp16R)};
  spec.toRows = true;
  spec.dims = {{window.h, image.strides[2], window.w},
               {window.w, image.strides[3], 1},
               {1, 0, 0},
               {blocks, 64 * channel, Spread::kTileBytes}};
  spec.targetBand = blocks * Spread::kTileBytes;
  spec.tail = image.shape[1] % 64;
  spec.elementStride = channel == 2 ? 0 : channel;
  load.copy(from, to, spec).create();
}

MatmulOperands KernelWriter::operandsAt(const ImageStep &step, const Convolution &conv, const DeviceTensor &result) {
  MatmulOperands operands;
  operands.epilogues = conv.epilogue;
  for (const DeviceTensor &matrix : conv.beside)
    operands.beside.push_back({step.to.from(result.address, matrix.address), result.strides[3], result.strides[1]});
  operands.st = step.weights;
  operands.bias = step.bias;
  operands.out = step.to;
  operands.outRow = result.strides[3];
  return operands;
}

/// Groups are convolutions side by side. What is convolved alternates between two places for its tiles, so that one is
/// packed while the other is convolved.
void KernelWriter::convolve(const DeviceTensor &source, const DeviceTensor &out, Split split, const Convolution &conv) {
  const hw::Window &window = conv.window;
  const DeviceTensor whole = withRows(source), image = split.dim == 0 ? whole.local(split) : whole,
                     result = withRows(out);
  const int64_t groups = conv.groups, channels = image.shape[1] / groups, columns = result.shape[1] / groups,
                images = image.shape[0];
  if (conv.plan.windows)
    return convolveWindows(image, result, split, conv);
  const int64_t blocks = (channels + 63) / 64;
  const Address packed = residentTiles(*conv.tiles);
  const int64_t packedStep = conv.tiles->form.productBytes();
  main->taskWithAhead(node);
  const ConvSource tiles{window, blocks, conv.pixels};
  Spread plan = conv.plan;
  plan.m = result.shape[2] * result.shape[3];
  const int64_t bytes = (window.h * window.w + 63) / 64 * blocks * Spread::kTileBytes;
  int places[2];
  for (int &place : places)
    place = buffers.add(hw::Memory::GM, node + ".tiles", bytes);
  DeviceTensor part = image; // the channels of one group
  part.shape[1] = channels;
  const ImageWalk byImage{images, image.strides[0], result.strides[0], 0, 0};
  const ImageWalk byGroup{groups, channels * image.strides[1], columns * result.strides[1], packedStep, 4 * columns};
  const ImageWalk &outer = images > 1 ? byGroup : byImage, &inner = images > 1 ? byImage : byGroup;
  const QueueWriter load = main->on(Queue::Load), array = main->on(Queue::Array);
  auto pack = [&](int half, const Address &from) {
    load.wait(kIbFree + half);
    packImage(load, part, window, blocks, from, {places[half], 0, {}});
    load.signal(kIbFull + half);
  };
  auto one = [&](int half, const ImageStep &step) {
    MatmulOperands operands = operandsAt(step, conv, result);
    operands.conv = &tiles;
    operands.a = {places[half], 0, {}};
    if (split.dim == 2)
      operands.pixel = operands.pixel.plusQuad(split.part * window.ow);
    array.wait(kIbFull + half);
    multiply(plan, wholeOrder(plan, operands), operands);
    array.signal(kIbFree + half);
  };
  main->loop(outer.count, [&](int depth) {
    const ImageStep first = ImageStep{image.address, result.address, packed, conv.bias}.plusLoop(depth, outer);
    main->loop(inner.count / 2, [&](int pair) {
      const ImageStep even = first.plusLoop(pair, inner, 2), odd = even.plus(inner);
      pack(0, even.from);
      pack(1, odd.from);
      one(0, even);
      one(1, odd);
    });
    if (const int64_t last = inner.count - 1; last % 2 == 0) {
      pack(0, first.plus(inner, last).from);
      one(0, first.plus(inner, last));
    }
  });
}

void KernelWriter::pool(dmir::PoolOp pool, const DeviceTensor &source, const DeviceTensor &out) {
  const DeviceTensor image = withRows(source), result = withRows(out);
  const bool average = pool.getKind() == dmir::Pooling::average;
  SimdOp simdOp{average ? hw::SimdFunction::PoolAvg : hw::SimdFunction::PoolMax,
                {result.shape[0], result.shape[2], result.shape[3], result.shape[1]}};
  simdOp.result = pixelOf(result);
  simdOp.sources = {pixelOf(image)};
  simdOp.window =
      windowOf(source.shape, out.shape, pool.getWindow(), pool.getStrides(), pool.getDilations(), pool.getLow());
  simdOp.countPadding = average && pool.getCountPadding();
  simd(std::move(simdOp));
}
