//===- Windows.cpp - convolutions of few channels -------------------------===//
//
// The vector device lays the windows of an image side by side: each output pixel's numbers in one row, without the gaps
// that blocks of 64 channels leave. Bands of rows of output pixels are quantised to tiles in turns through two places,
// and CONV walks over them as over an image whose windows are of one place.
//
// Numbers lie [ow][rows of the image][kw][c]: those of a window follow each other, and those of the window below begin
// `sh` rows on, so that rows which windows share are there once.
//
//   queue Vector          queue Load                    queue Array
//   image -> frame
//   frame -> windows      band 0 -> tiles, place 0
//                         band 1 -> tiles, place 1      band 0 x weights
//                         band 2 -> tiles, place 0      band 1 x weights
//
//===----------------------------------------------------------------------===//

#include "KernelWriter.h"

#include <tuple>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace dmxc::corsair {

class WindowWriter {
public:
  /// `image`: of which each quad has all, or images of its own; `result`: what a quad has of it.
  WindowWriter(KernelWriter &to, const DeviceTensor &image, const DeviceTensor &result, Split split,
               const KernelWriter::Convolution &conv)
      : to(to), conv(conv), window(conv.window), result(result), part(image), images(image.shape[0]),
        firstRow(split.dim == 2 ? result.shape[2] * window.sh : 0), load(to.main->on(Queue::Load)),
        array(to.main->on(Queue::Array)), vector(to.main->on(Queue::Vector)) {
    part.shape[0] = 1, part.shape[1] = image.shape[1] / conv.groups;
    rows = result.shape[2], width = window.ow, chunks = conv.plan.kChunks;
    lineRows = (rows - 1) * window.sh + window.kh;
    lineRow = 2 * window.kw * part.shape[1];
    lines = place("windows", width * lineRows * lineRow);
    frame = framed();
    if (isFramed())
      frame.address = place("frame", 2 * frame.elements());
    band = bandRows();
    for (Address &each : tiles)
      each = place("tiles", (band * width + 63) / 64 * chunks * Spread::kTileBytes);
  }

  /// Image after image and group after group.
  void run(const DeviceTensor &image, const Address &weights) {
    const int64_t columns = result.shape[1] / conv.groups;
    const ImageWalk byImage{images, image.strides[0], result.strides[0], 0, 0};
    const ImageWalk byGroup{conv.groups, part.shape[1] * image.strides[1], columns * result.strides[1],
                            conv.tiles->form.productBytes(), 4 * columns};
    if (isFramed()) {
      SimdOp zeros{hw::SimdFunction::Fill, {frame.elements()}};
      zeros.result = {frame.kind, frame.address, {2}};
      simd(std::move(zeros));
    }
    to.main->loop(conv.groups, [&](int group) {
      to.main->loop(images, [&](int number) {
        ImageStep step{image.address, result.address, weights, conv.bias};
        step = step.plusLoop(group, byGroup).plusLoop(number, byImage);
        lay(step.from);
        step.from = lines;
        load.wait(kWindowsFull);
        multiplyBands(step);
        load.signal(kWindowsFree);
      });
    });
  }

private:
  Address place(const char *name, int64_t bytes) const {
    return {to.buffers.add(hw::Memory::GM, to.node + "." + name, bytes), 0, {}};
  }
  void simd(SimdOp op) const { (void)emitSimd(*to.main, std::move(op), to.machine.slices); } // four dims at most

  //--- laying
  /// Whether there is a frame of zeros around the part of the image that windows look at.
  bool isFramed() const { return frame.address.buffer != part.address.buffer; }
  DeviceTensor framed() const {
    const int64_t h = (conv.pixels / width - 1) * window.sh + (window.kh - 1) * window.dh + 1,
                  w = (width - 1) * window.sw + (window.kw - 1) * window.dw + 1;
    return window.ph == 0 && window.pw == 0 && h <= window.h && w <= window.w
               ? part
               : DeviceTensor::dense(part.kind, {1, part.shape[1], h, w}, channelsLast(4));
  }

  /// What of the image lies in its frame, [h, w, c].
  SimdOp inside(const DeviceTensor &image) const {
    SimdOp copy{hw::SimdFunction::Copy, {}};
    SimdOperand from{image.kind, image.address, {image.strides[2], image.strides[3], image.strides[1]}},
        into{frame.kind, frame.address, {frame.strides[2], frame.strides[3], frame.strides[1]}};
    for (auto [dim, low] : {std::pair<int, int64_t>(2, window.ph), {3, window.pw}}) {
      const int64_t first = std::max<int64_t>(0, -low);
      copy.dims.push_back(std::max<int64_t>(0, std::min(image.shape[dim], frame.shape[dim] - low) - first));
      from.address = from.address.plus(first * image.strides[dim]);
      into.address = into.address.plus((first + low) * frame.strides[dim]);
    }
    copy.dims.push_back(image.shape[1]);
    copy.sources = {from};
    copy.result = into;
    return copy;
  }

  void lay(const Address &from) const {
    DeviceTensor source = part;
    source.address = from;
    if (isFramed()) {
      simd(inside(source));
      source = frame;
    }
    SimdOp side{hw::SimdFunction::Copy, {width, lineRows, window.kw, part.shape[1]}};
    side.result = {source.kind, lines, {lineRows * lineRow, lineRow, 2 * part.shape[1], 2}};
    side.sources = {
        {source.kind,
         source.address.plusQuad(firstRow * source.strides[2]),
         {window.sw * source.strides[3], source.strides[2], window.dw * source.strides[3], source.strides[1]}}};
    vector.wait(kWindowsFree);
    simd(std::move(side));
    vector.signal(kWindowsFull);
  }

  //--- bands
  /// How many rows of the result are packed while others are multiplied: the fewest clocks.
  int64_t bandRows() const {
    const Spread &plan = conv.plan;
    const int64_t step = 64 * plan.rowSlices(), rounds = plan.rounds() * ((chunks + plan.imc - 1) / plan.imc);
    auto passes = [&](int64_t count) { return rounds * ((count * width + step - 1) / step); };
    auto clocks = [&](int64_t each) {
      const auto all = static_cast<double>(rows / each * passes(each) + passes(rows % each)),
                 bands = static_cast<double>((rows + each - 1) / each);
      constexpr double row = 65; // of a tile, with its exponent
      return 64 * to.machine.rowClocks8 * all + 100 * bands +
             row * static_cast<double>(each * width * chunks) / to.machine.memory(hw::Memory::GM).write;
    };
    int64_t best = rows;
    for (int64_t each = rows - 1; each > 0; --each)
      if (clocks(each) < clocks(best))
        best = each;
    return best;
  }

  void multiplyBands(const ImageStep &step) const {
    const ImageWalk byBand{rows / band, band * window.sh * lineRow, band * result.strides[2], 0, 0};
    to.main->loop(byBand.count / 2, [&](int pair) {
      const ImageStep even = step.plusLoop(pair, byBand, 2), odd = even.plus(byBand);
      pack(0, band, even.from);
      pack(1, band, odd.from);
      multiply(0, band, even);
      multiply(1, band, odd);
    });
    int half = 0;
    auto last = [&](int64_t number, int64_t count) {
      const ImageStep at = step.plus(byBand, number);
      pack(half, count, at.from);
      multiply(half, count, at);
      half = 1;
    };
    if (byBand.count % 2)
      last(byBand.count - 1, band);
    if (rows % band)
      last(byBand.count, rows % band);
  }

  void pack(int half, int64_t count, const Address &from) const {
    load.wait(kIbFree + half);
    DmaSpec spec{hw::nameOf(part.kind), hw::nameOf(hw::ElemKind::Bfp16R)};
    spec.toRows = true;
    spec.dims = {{count, window.sh * lineRow, width},
                 {width, lineRows * lineRow, 1},
                 {1, 0, 0},
                 {chunks, 128, Spread::kTileBytes}};
    spec.targetBand = chunks * Spread::kTileBytes;
    spec.tail = window.kh * window.kw * part.shape[1] % 64;
    load.copy(from, tiles[half], spec).create();
    load.signal(kIbFull + half);
  }

  void multiply(int half, int64_t count, const ImageStep &step) const {
    hw::Window each; // of one place
    each.h = count, each.w = each.ow = width;
    const ConvSource source{each, chunks, count * width};
    MatmulOperands operands = to.operandsAt(step, conv, result);
    operands.conv = &source;
    operands.a = tiles[half];
    Spread plan = conv.plan;
    plan.m = count * width;
    array.wait(kIbFull + half);
    to.multiply(plan, wholeOrder(plan, operands), operands);
    array.signal(kIbFree + half);
  }

  KernelWriter &to;
  const KernelWriter::Convolution &conv;
  const hw::Window &window;
  const DeviceTensor &result;
  DeviceTensor part, frame; ///< channels of one group of one image; the same with zeros around them
  const int64_t images, firstRow;
  int64_t rows, width, chunks, lineRows, lineRow, band;
  Address lines, tiles[2];
  const QueueWriter load, array, vector;
};

void KernelWriter::convolveWindows(const DeviceTensor &image, const DeviceTensor &result, Split split,
                                   const Convolution &conv) {
  const Address weights = residentTiles(*conv.tiles);
  main->taskWithAhead(node);
  WindowWriter(*this, image, result, split, conv).run(image, weights);
}

} // namespace dmxc::corsair
