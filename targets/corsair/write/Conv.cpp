//===- Conv.cpp - convolution and pooling ---------------------------------===//
//
// Images lie channels last. An image is quantised to tiles once, and the array controller takes the window of each
// output pixel from them (CONV). Of few channels most of such tiles would be zeros: then the vector device lays whole
// windows side by side, each output pixel's in one row of numbers, and the image that CONV walks over is of these, with
// windows of one place. A depthwise convolution is a function of the vector device.
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

#include <tuple>

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

namespace {
/// One step of a convolution after the other: how many, and what they move on by.
struct Walk {
  int64_t count, from, to, weights, bias;
};
/// Where a step takes its image from and puts its result.
struct Step {
  Address from, to, weights, bias;
  Step plusLoop(int depth, const Walk &walk, int64_t times = 1) const {
    return {from.plusLoop(depth, times * walk.from), to.plusLoop(depth, times * walk.to),
            weights.plusLoop(depth, times * walk.weights), bias.plusLoop(depth, times * walk.bias)};
  }
  Step plus(const Walk &walk, int64_t times = 1) const {
    return {from.plus(times * walk.from), to.plus(times * walk.to), weights.plus(times * walk.weights),
            bias.plus(times * walk.bias)};
  }
};
} // namespace

static TileOrder wholeOrder(const Spread &plan, const MatmulOperands &operands) {
  TileOrder order = TileOrder::whole(plan, operands.bias.buffer >= 0);
  order.terms.front().epilogue = operands.epilogues.empty() ? -1 : 0;
  return order;
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
  const Walk byImage{images, image.strides[0], result.strides[0], 0, 0};
  const Walk byGroup{groups, channels * image.strides[1], columns * result.strides[1], packedStep, 4 * columns};
  const Walk &outer = images > 1 ? byGroup : byImage, &inner = images > 1 ? byImage : byGroup;
  const QueueWriter load = main->on(Queue::Load), array = main->on(Queue::Array);
  auto pack = [&](int half, const Address &from) {
    load.wait(kIbFree + half);
    packImage(load, part, window, blocks, from, {places[half], 0, {}});
    load.signal(kIbFull + half);
  };
  auto one = [&](int half, const Step &step) {
    MatmulOperands operands;
    operands.epilogues = conv.epilogue;
    for (const DeviceTensor &matrix : conv.beside)
      operands.beside.push_back({step.to.from(result.address, matrix.address), result.strides[3], result.strides[1]});
    operands.conv = &tiles;
    operands.a = {places[half], 0, {}};
    operands.st = step.weights;
    operands.bias = step.bias;
    operands.out = step.to;
    operands.outRow = result.strides[3];
    if (split.dim == 2)
      operands.pixel = operands.pixel.plusQuad(split.part * window.ow);
    array.wait(kIbFull + half);
    multiply(plan, wholeOrder(plan, operands), operands);
    array.signal(kIbFree + half);
  };
  main->loop(outer.count, [&](int depth) {
    const Step first = Step{image.address, result.address, packed, conv.bias}.plusLoop(depth, outer);
    main->loop(inner.count / 2, [&](int pair) {
      const Step even = first.plusLoop(pair, inner, 2), odd = even.plus(inner);
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

//===----------------------------------------------------------------------===//
// Whole windows
//===----------------------------------------------------------------------===//

namespace {

/// Numbers of windows in GM, [ow][rows of the image][kw][c]: a window's own follow each other, the next one down begins
/// some rows on.
struct Laid {
  int64_t rows, row, column; ///< of the image; bytes of one, and of all of an output column

  Laid(const hw::Window &window, int64_t resultRows, int64_t channels)
      : rows((resultRows - 1) * window.sh + window.kh), row(2 * window.kw * channels), column(rows * row) {}
};

} // namespace

/// The part of an image that windows look at, with the zeros around it; the image where they look at nothing else.
static DeviceTensor framed(const DeviceTensor &image, const hw::Window &window, int64_t rows) {
  const int64_t h = (rows - 1) * window.sh + (window.kh - 1) * window.dh + 1,
                w = (window.ow - 1) * window.sw + (window.kw - 1) * window.dw + 1;
  return window.ph == 0 && window.pw == 0 && h <= window.h && w <= window.w
             ? image
             : DeviceTensor::dense(image.kind, {1, image.shape[1], h, w}, channelsLast(4));
}

/// What of an image lies in its frame, and where: both as [h, w, c].
static std::pair<SimdOperand, SimdOperand> insideOf(const DeviceTensor &image, const DeviceTensor &frame,
                                                    const hw::Window &window, SmallVectorImpl<int64_t> &dims) {
  const int64_t low[] = {window.ph, window.pw};
  SimdOperand from{image.kind, image.address, {image.strides[2], image.strides[3], image.strides[1]}},
      to{frame.kind, frame.address, {frame.strides[2], frame.strides[3], frame.strides[1]}};
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t first = std::max<int64_t>(0, -low[axis]);
    dims.push_back(std::max<int64_t>(0, std::min(image.shape[2 + axis], frame.shape[2 + axis] - low[axis]) - first));
    from.address = from.address.plus(first * image.strides[2 + axis]);
    to.address = to.address.plus((first + low[axis]) * frame.strides[2 + axis]);
  }
  dims.push_back(image.shape[1]);
  return {from, to};
}

/// How many rows of the result are packed while others are multiplied: the fewest clocks.
static int64_t bandRows(const Spread &plan, int64_t rows, int64_t width, const hw::Machine &machine) {
  const int64_t step = 64 * plan.rowSlices(), rounds = plan.rounds() * ((plan.kChunks + plan.imc - 1) / plan.imc);
  auto passes = [&](int64_t count) { return rounds * ((count * width + step - 1) / step); };
  auto clocks = [&](int64_t band) {
    const int64_t all = rows / band * passes(band) + passes(rows % band), bands = (rows + band - 1) / band;
    const double packed = 65 * static_cast<double>(band * width * plan.kChunks) / machine.memory(hw::Memory::GM).write;
    return 64 * machine.rowClocks8 * static_cast<double>(all) + 100 * static_cast<double>(bands) + packed;
  };
  int64_t best = rows;
  for (int64_t band = rows - 1; band > 0; --band)
    if (clocks(band) < clocks(best))
      best = band;
  return best;
}

/// Image after image and group after group, bands of rows of the result in turns through two places for their tiles.
void KernelWriter::convolveWindows(const DeviceTensor &image, const DeviceTensor &result, Split split,
                                   const Convolution &conv) {
  const hw::Window &window = conv.window;
  const int64_t groups = conv.groups, images = image.shape[0], rows = result.shape[2], width = window.ow;
  DeviceTensor part = image; // the channels of one group of one image
  part.shape[0] = 1, part.shape[1] = image.shape[1] / groups;
  const Laid laid(window, rows, part.shape[1]);
  DeviceTensor frame = framed(part, window, conv.pixels / width);
  const bool isFramed = frame.address.buffer < 0;
  const int64_t columns = result.shape[1] / groups, chunks = conv.plan.kChunks,
                band = bandRows(conv.plan, rows, width, machine);
  const Address packed = residentTiles(*conv.tiles);
  main->taskWithAhead(node);
  if (isFramed)
    frame.address = {buffers.add(hw::Memory::GM, node + ".frame", frame.elements() * 2), 0, {}};
  const Address lines{buffers.add(hw::Memory::GM, node + ".windows", width * laid.column), 0, {}};
  int places[2];
  for (int &place : places)
    place = buffers.add(hw::Memory::GM, node + ".tiles", (band * width + 63) / 64 * chunks * Spread::kTileBytes);
  const QueueWriter load = main->on(Queue::Load), array = main->on(Queue::Array), vector = main->on(Queue::Vector);
  auto simd = [&](SimdOp op) { (void)emitSimd(*main, std::move(op), machine.slices); }; // four dims at most
  if (isFramed) {
    SimdOp zeros{hw::SimdFunction::Fill, {frame.elements()}};
    zeros.result = {frame.kind, frame.address, {2}};
    simd(std::move(zeros));
  }
  auto lay = [&](const Address &from) {
    DeviceTensor source = part;
    source.address = from;
    if (isFramed) {
      SimdOp inside{hw::SimdFunction::Copy, {}};
      inside.sources.resize(1);
      std::tie(inside.sources[0], inside.result) = insideOf(source, frame, window, inside.dims);
      simd(std::move(inside));
      source = frame;
    }
    vector.wait(kWindowsFree);
    SimdOp side{hw::SimdFunction::Copy, {width, laid.rows, window.kw, part.shape[1]}};
    side.result = {source.kind, lines, {laid.column, laid.row, 2 * part.shape[1], 2}};
    side.sources = {
        {source.kind,
         source.address.plusQuad(split.dim == 2 ? rows * window.sh * source.strides[2] : 0),
         {window.sw * source.strides[3], source.strides[2], window.dw * source.strides[3], source.strides[1]}}};
    simd(std::move(side));
    vector.signal(kWindowsFull);
  };
  auto pack = [&](int half, int64_t count, const Address &from) {
    load.wait(kIbFree + half);
    DmaSpec spec{hw::nameOf(part.kind), hw::nameOf(hw::ElemKind::Bfp16R)};
    spec.toRows = true;
    spec.dims = {
        {count, window.sh * laid.row, width}, {width, laid.column, 1}, {1, 0, 0}, {chunks, 128, Spread::kTileBytes}};
    spec.targetBand = chunks * Spread::kTileBytes;
    spec.tail = window.kh * window.kw * part.shape[1] % 64;
    load.copy(from, {places[half], 0, {}}, spec).create();
    load.signal(kIbFull + half);
  };
  auto one = [&](int half, int64_t count, const Step &step) {
    MatmulOperands operands;
    operands.epilogues = conv.epilogue;
    for (const DeviceTensor &matrix : conv.beside)
      operands.beside.push_back({step.to.from(result.address, matrix.address), result.strides[3], result.strides[1]});
    hw::Window each;
    each.h = count, each.w = each.ow = width;
    const ConvSource tiles{each, chunks, count * width};
    operands.conv = &tiles;
    operands.a = {places[half], 0, {}};
    operands.st = step.weights;
    operands.bias = step.bias;
    operands.out = step.to;
    operands.outRow = result.strides[3];
    Spread plan = conv.plan;
    plan.m = count * width;
    array.wait(kIbFull + half);
    multiply(plan, wholeOrder(plan, operands), operands);
    array.signal(kIbFree + half);
  };
  const Walk byImage{images, image.strides[0], result.strides[0], 0, 0};
  const Walk byGroup{groups, part.shape[1] * image.strides[1], columns * result.strides[1],
                     conv.tiles->form.productBytes(), 4 * columns};
  const Walk byBand{rows / band, band * window.sh * laid.row, band * result.strides[2], 0, 0};
  main->loop(groups, [&](int group) {
    main->loop(images, [&](int number) {
      Step step =
          Step{image.address, result.address, packed, conv.bias}.plusLoop(group, byGroup).plusLoop(number, byImage);
      lay(step.from);
      step.from = lines;
      load.wait(kWindowsFull);
      main->loop(byBand.count / 2, [&](int pair) {
        const Step even = step.plusLoop(pair, byBand, 2), odd = even.plus(byBand);
        pack(0, band, even.from);
        pack(1, band, odd.from);
        one(0, band, even);
        one(1, band, odd);
      });
      int half = 0;
      auto last = [&](int64_t first, int64_t count) {
        const Step at = step.plus(byBand, first);
        pack(half, count, at.from);
        one(half, count, at);
        half ^= 1;
      };
      if (byBand.count % 2)
        last(byBand.count - 1, band);
      if (rows % band)
        last(byBand.count, rows % band);
      load.signal(kWindowsFree);
    });
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
