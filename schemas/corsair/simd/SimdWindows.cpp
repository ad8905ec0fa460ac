//===- SimdWindows.cpp - pooling and depthwise convolution ----------------===//
//
// Dimensions are (any, output row, output column, channel).
//
//===----------------------------------------------------------------------===//

#include "SimdJob.h"

#include <cmath>
#include <limits>

namespace dmx::corsair {
namespace {

using F = SimdFunction;

/// The window of one output element; visits the elements inside the image in
/// order of kernel rows and columns: visit(value, kh, kw).
template <typename Visit> void eachTap(const SimdJob &job, const int64_t (&i)[4], Visit visit) {
  const Window &win = job.window;
  int64_t oh = job.index + job.place(1, i[1]), ow = job.place(2, i[2]);
  for (int64_t kh = 0; kh < win.kh; ++kh)
    for (int64_t kw = 0; kw < win.kw; ++kw) {
      int64_t ih = oh * win.sh - win.ph + kh * win.dh, iw = ow * win.sw - win.pw + kw * win.dw;
      if (ih < 0 || ih >= win.h || iw < 0 || iw >= win.w)
        continue;
      const std::byte *at =
          job.a.data + i[0] * job.a.step[0] + ih * job.a.step[1] + iw * job.a.step[2] + i[3] * job.a.step[3];
      visit(readFloat(at, job.a.kind), kh, kw);
    }
}

float poolMax(const SimdJob &job, const int64_t (&i)[4]) {
  float best = -std::numeric_limits<float>::infinity();
  eachTap(job, i, [&](float value, int64_t, int64_t) {
    if (std::isnan(value) || std::isnan(best))
      best = std::numeric_limits<float>::quiet_NaN();
    else if (value > best)
      best = value;
  });
  return best;
}

float poolAvg(const SimdJob &job, const int64_t (&i)[4]) {
  float sum = 0;
  int64_t count = 0;
  eachTap(job, i, [&](float value, int64_t, int64_t) {
    sum = f32Add(sum, value);
    ++count;
  });
  int64_t divisor = job.countPad ? job.window.kh * job.window.kw : count;
  return f32Div(sum, static_cast<float>(divisor));
}

float depthwise(const SimdJob &job, const int64_t (&i)[4]) {
  float sum = 0;
  eachTap(job, i, [&](float value, int64_t kh, int64_t kw) {
    const std::byte *weight = job.b.data + kh * job.b.step[1] + kw * job.b.step[2] + i[3] * job.b.step[3];
    sum = f32Add(sum, f32Mul(value, readFloat(weight, job.b.kind)));
  });
  return job.hasC ? f32Add(sum, readFloat(job.c.data + i[3] * job.c.step[3], job.c.kind)) : sum;
}

} // namespace

bool windowHasEnd(const SimdJob &job, const int64_t (&i)[4]) {
  bool found = false;
  eachTap(job, i, [&](float value, int64_t, int64_t) { found |= std::fabs(value) >= kF16Largest; });
  return found;
}

void computeWindows(const SimdJob &job) {
  float (*compute)(const SimdJob &, const int64_t (&)[4]) = job.function == F::PoolMax   ? poolMax
                                                            : job.function == F::PoolAvg ? poolAvg
                                                                                         : depthwise;
  int64_t i[4];
  for (i[0] = 0; i[0] < job.n[0]; ++i[0])
    for (i[1] = 0; i[1] < job.n[1]; ++i[1])
      for (i[2] = 0; i[2] < job.n[2]; ++i[2])
        for (i[3] = 0; i[3] < job.n[3]; ++i[3])
          writeFloat(job.d.at(i), job.d.kind, compute(job, i));
}

} // namespace dmx::corsair
