//===- KernelBench.h - timing of single kernels -----------------*- C++ -*-===//
#pragma once

#include "KernelHarness.h"

#include "dmxc/Support/Tensor.h"

#include <string>
#include <vector>

namespace dmxc::cpu::bench {

/// One kernel with its arguments, ready to be called again and again.
struct BenchKernel {
  std::string name;
  double flops = 0;
  test::TestKernel kernel;
  std::vector<Tensor> buffers;
  int64_t work = 0, scratchBytes = 0;
};

/// Independent multiply-adds in registers: the peak the other figures are
/// compared with.
BenchKernel peakKernel(const IsaLevel &isa);
BenchKernel gemmKernel(const IsaLevel &isa, int64_t m, int64_t n, int64_t k, const std::string &tuning);

/// A square convolution over size x size pixels, padded by kernel / 2.
struct ConvShape {
  std::string name;
  int64_t size, ic, oc, kernel, stride, groups = 1;
};
BenchKernel convKernel(const IsaLevel &isa, const ConvShape &shape, const std::string &tuning);

/// Replaces `value` by the number behind "key=" in `tuning`, if it is there.
template <typename T> void override(const std::string &tuning, const std::string &key, T &value) {
  size_t at = tuning.find(key + "=");
  if (at != std::string::npos)
    value = static_cast<T>(std::stoll(tuning.substr(at + key.size() + 1)));
}

/// A dense f32 tensor of small values.
Tensor randomF32(Shape shape, uint64_t seed);

/// Times `kernel` and `peak` in turns for about `seconds` and prints the best
/// of each.
void report(BenchKernel &kernel, BenchKernel &peak, double seconds);

} // namespace dmxc::cpu::bench
