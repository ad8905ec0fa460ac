//===- RunProduct.cpp - a product on the device, and by the rule ----------===//
#include "RunProduct.h"

#include "runtime/devices/Device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace aietest {
namespace {

/// To 8 significant bits, to even where two are as near.
float rounded(float value) {
  int exponent = 0;
  double fraction = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

} // namespace

hw::Image imageOf(const Sizes &sizes, bool swapped, const char *name) {
  hw::Machine machine = *hw::machineOf(name);
  hw::Image image{name, {}, {}};
  std::string error;
  image.overlays.push_back(dmxc::aie::overlay(machine, error));
  EXPECT_EQ(error, "");
  image.kernels.push_back(dmxc::aie::product(machine, "product", sizes, swapped, error));
  EXPECT_EQ(error, "");
  EXPECT_EQ(hw::verify(image), "");
  return image;
}

Matrices randomMatrices(const Sizes &sizes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Matrices out;
  out.a.resize(static_cast<size_t>(sizes.m * sizes.k));
  out.b.resize(static_cast<size_t>(sizes.k * sizes.n));
  for (std::vector<float> *matrix : {&out.a, &out.b})
    for (float &value : *matrix)
      value = normal(random);
  return out;
}

std::vector<float> byTheRule(const Sizes &sizes, const Matrices &of) {
  auto [m, k, n] = sizes;
  std::vector<float> c(static_cast<size_t>(m * n)), a = of.a, b = of.b;
  for (std::vector<float> *matrix : {&a, &b})
    for (float &value : *matrix)
      value = rounded(value);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t q = 0; q < k; ++q) {
        volatile float product = a[static_cast<size_t>(i * k + q)] * b[static_cast<size_t>(q * n + j)];
        sum += product;
      }
      c[static_cast<size_t>(i * n + j)] = sum;
    }
  return c;
}

Outcome run(const std::vector<std::byte> &code, const Sizes &sizes, const Matrices &of, bool swapped,
            const std::vector<std::string> &settings) {
  using namespace dmxrt;
  Outcome outcome;
  auto failed = [&](const Error &error) {
    outcome.error = error.message;
    return outcome;
  };
  DeviceOptions options;
  options.settings = settings;
  const std::string target = "aie";
  auto devices = createDevices({&target, 1}, options);
  if (!devices)
    return failed(devices.takeError());
  Device &device = *devices->front();
  auto image = device.loadCode(code);
  if (!image)
    return failed(image.takeError());
  outcome.c.assign(static_cast<size_t>(sizes.m * sizes.n), -1.0f);
  void *buffers[] = {const_cast<float *>(of.a.data()), const_cast<float *>(of.b.data()), outcome.c.data()};
  uint64_t bytes[] = {4 * of.a.size(), 4 * of.b.size(), 4 * outcome.c.size()};
  if (swapped) {
    std::swap(buffers[0], buffers[1]);
    std::swap(bytes[0], bytes[1]);
  }
  DeviceTask task;
  task.kernel = (*image)->findKernel("product");
  task.buffers = buffers;
  task.work = 1;
  task.bufferBytes = bytes;
  task.written = 1;
  const Segment segment{0, 1};
  device.setProgramCount(1);
  if (Status status = device.prepare({&task, 1}, {&segment, 1}); !status)
    return failed(status.takeError());
  device.startRun();
  device.enqueue(0);
  if (RunOutcome ran = device.fence(); ran.code)
    outcome.error = ran.detail;
  else if (Status status = device.endRun(); !status)
    return failed(status.takeError());
  return outcome;
}

} // namespace aietest
