//===- ImageWalk.cpp - how the array reads windows of an image ------------===//
#include "ImageWalk.h"

using namespace dmxc;
using namespace dmxc::aie;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

ImageWalk ImageWalk::of(const kernels::Contraction &convolution, int64_t bytes) {
  const kernels::Windows &windows = *convolution.windows;
  ImageWalk walk;
  walk.across = windows.axes.back();
  if (windows.axes.size() > 1)
    walk.down = windows.axes.front();
  if (walk.across.out.is(1)) { // then any stride is right: one of a whole row leaves no windows between rows
    int64_t low = number(walk.across.low);
    walk.across.stride = std::max(low + number(walk.across.in), number(walk.across.taps) - low);
  }
  walk.images = number(convolution.batchDims.front());
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
  int64_t reach = std::max(low + number(across.in), (out - 1) * across.stride + number(across.taps) - low);
  return std::max(ceilDiv(out, pixels), ceilDiv(reach, across.stride * pixels));
}

int64_t ImageWalk::rowsDown() const {
  int64_t low = number(down.low);
  return std::max(ceilDiv(low + number(down.in), down.stride),
                  number(down.out) + kernelRows(0) - 1 - low / down.stride);
}

int64_t ImageWalk::m() const {
  return ((images - 1) * rowsDown() + number(down.out) - 1) * rowsAcross() + ceilDiv(number(across.out), pixels);
}

std::vector<ImageTask> dmxc::aie::tasksOf(const ImageWalk &walk) {
  if (walk.kernelRows(0) == 1)
    return {{0, walk.planes(), walk.plane()}};
  std::vector<ImageTask> tasks;
  for (int64_t plane = 0; plane < walk.planes(); ++plane)
    tasks.push_back({plane * walk.plane(), walk.kernelRows(plane), walk.imageRow()});
  return tasks;
}
