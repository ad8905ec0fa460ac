//===- ImageWalk.cpp - how the array reads windows of an image ------------===//
#include "ImageWalk.h"

#include <numeric>

using namespace dmxc;
using namespace dmxc::aie;

/// That a queue of a shim holds, with one of zeros behind them.
static constexpr int64_t kMostTasks = 3;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Of a kernel along an axis, with what its dilation steps over.
static int64_t reachOf(const ImageWalk::Axis &axis) { return (ImageWalk::number(axis.taps) - 1) * axis.dilation + 1; }

ImageWalk ImageWalk::of(const kernels::Contraction &convolution, int64_t bytes) {
  const kernels::Windows &windows = *convolution.windows;
  ImageWalk walk;
  walk.across = windows.axes.back();
  if (windows.axes.size() > 1)
    walk.down = windows.axes.front();
  if (walk.across.out.is(1)) { // then any stride is right: one of a whole row leaves no windows between rows
    int64_t low = number(walk.across.low);
    walk.across.stride = std::max(low + number(walk.across.in), reachOf(walk.across) - low);
  }
  walk.images = number(convolution.batchDims.front());
  walk.groups = convolution.batchDims.size() > 1 ? number(convolution.batchDims[1]) : 1;
  walk.channels = number(windows.channels);
  walk.outputs = number(convolution.m);
  walk.bytes = bytes;
  return walk;
}

int64_t ImageWalk::pixel() const {
  int64_t pixel = channels;
  while (across.stride * pixels * pixel * bytes % 4)
    ++pixel;
  return pixel;
}

int64_t ImageWalk::rowsAcross() const {
  // Pixels before the next row, whose zeros are those behind this one.
  int64_t out = number(across.out), low = number(across.low);
  int64_t reach = std::max(low + number(across.in), (out - 1) * across.stride + reachOf(across) - low);
  return std::max(ceilDiv(out, pixels), ceilDiv(reach, across.stride * pixels));
}

int64_t ImageWalk::rowsDown() const {
  int64_t low = number(down.low);
  return std::max(ceilDiv(low + number(down.in), down.stride),
                  number(down.out) + rowInPlane(number(down.taps) - 1) - low / down.stride);
}

void ImageWalk::setTogether(int64_t groups) {
  channels = channels / together * groups;
  outputs = outputs / together * groups;
  together = groups;
}

int64_t ImageWalk::rowsApart() const { return down.stride / std::gcd(down.dilation, down.stride); }

int64_t ImageWalk::runOf(int64_t runs) const {
  return ((pixels - 1) * across.stride + (runs == 1 ? reachOf(across) : 1)) * pixel();
}

int64_t ImageWalk::runs(int64_t tile) const {
  int64_t taps = number(across.taps), apart = tilesOf(taps, tile);
  // Runs of several tiles are a task each.
  bool few = apart == 1 || series() * taps <= kMostTasks;
  return across.dilation > 1 && few && taps * apart < tilesOf(1, tile) ? taps : 1;
}

int64_t ImageWalk::kOf(int64_t row, int64_t column, int64_t tile) const {
  int64_t first = row % rowsApart(), inSeries = row / rowsApart(), before = 0;
  for (int64_t series = 0; series < first; ++series)
    before += kernelRows(series);
  int64_t all = runs(tile), run = runTiles(tile) * tile;
  if (all == 1)
    return (before + inSeries) * run + column * columnsApart();
  if (run == tile)
    return ((before + inSeries) * all + column) * run;
  return (before * all + column * kernelRows(first) + inSeries) * run;
}

int64_t ImageWalk::m() const {
  return ((images - 1) * rowsDown() + number(down.out) - 1) * rowsAcross() + ceilDiv(number(across.out), pixels);
}

std::vector<ImageTask> dmxc::aie::tasksOf(const ImageWalk &walk, int64_t tile) {
  int64_t runs = walk.runs(tile), tiles = walk.runTiles(tile), apart = tile;
  if (runs > 1 && tiles == 1) { // a walk's dim steps over them
    std::swap(runs, tiles);
    apart = walk.columnsApart();
  }
  // With a stride and no dilation the planes lie in the order of k.
  if (walk.kernelRows(0) == 1 && walk.down.dilation == 1 && runs == 1)
    return {{0, walk.series(), walk.plane(), tiles, apart}};
  std::vector<ImageTask> tasks;
  for (int64_t first = 0; first < walk.series(); ++first)
    for (int64_t run = 0; run < runs; ++run)
      tasks.push_back(
          {walk.planeOf(first) * walk.plane() + walk.rowInPlane(first) * walk.imageRow() + run * walk.columnsApart(),
           walk.kernelRows(first), walk.rowInPlane(walk.rowsApart()) * walk.imageRow(), tiles, apart});
  return tasks;
}
