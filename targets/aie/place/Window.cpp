//===- Window.cpp - a convolution as a product ----------------------------===//
#include "Window.h"

#include <algorithm>

using namespace dmxc::aie;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t Window::pixel() const {
  int64_t pixel = channels;
  while (strideWidth * together * pixel * bytes % 4)
    ++pixel;
  return pixel;
}

int64_t Window::rowsAcross() const {
  // Pixels before the next row, whose zeros are those behind this one.
  int64_t pixels = std::max(left + width, (outWidth - 1) * strideWidth + kernelWidth - left);
  return std::max(ceilDiv(outWidth, together), ceilDiv(pixels, strideWidth * together));
}

int64_t Window::rowsDown() const {
  return std::max(ceilDiv(top + height, strideHeight), outHeight + kernelRows(0) - 1 - top / strideHeight);
}

std::vector<WindowTask> dmxc::aie::tasksOf(const Window &window) {
  if (window.kernelRows(0) == 1)
    return {{0, window.planes(), window.plane()}};
  std::vector<WindowTask> tasks;
  for (int64_t plane = 0; plane < window.planes(); ++plane)
    tasks.push_back({plane * window.plane(), window.kernelRows(plane), window.imageRow()});
  return tasks;
}
