//===- CorsairHarness.cpp - assembly on the simulated card ----------------===//

#include "CorsairHarness.h"

#include "schemas/corsair/Crc32.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <unistd.h>

using namespace dmxrt;

namespace dmxtest {

CorsairProgram::CorsairProgram(const std::string &text, const Options &options) {
  std::string error;
  auto image = isa::assemble(text, isa::builtinMachine(), error);
  EXPECT_TRUE(image) << error << "\n" << text;
  if (!image)
    return;
  std::vector<uint8_t> bytes = isa::write(*image);
  DeviceOptions deviceOptions;
  deviceOptions.threads = options.threads;
  deviceOptions.settings = options.settings;
  static std::atomic<int> number{0};
  reportFile = testing::TempDir() + "/corsair-" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".json";
  deviceOptions.settings.push_back("corsair.report=" + reportFile);
  const std::string target = "corsair";
  auto made = createDevices({&target, 1}, deviceOptions);
  EXPECT_TRUE(made) << made.error().message;
  if (!made)
    return;
  device = std::move((*made)[0]);
  auto loaded = device->loadCode({reinterpret_cast<const std::byte *>(bytes.data()), bytes.size()});
  EXPECT_TRUE(loaded) << loaded.error().message;
  if (!loaded)
    return;
  code = *loaded;
  const auto &ours = static_cast<const corsair::CorsairImage &>(*code);
  kernel = &ours.image.kernels.front();
  handle = code->findKernel(kernel->name);
}

CorsairProgram::~CorsairProgram() {
  std::remove(reportFile.c_str());
  std::remove((reportFile + ".txt").c_str());
}

nlohmann::json CorsairProgram::report() {
  expectRun();
  std::ifstream file(reportFile);
  return nlohmann::json::parse(file)["last"][0]["main"];
}

RunOutcome CorsairProgram::run() {
  if (!kernel)
    return {-1, 0, "no kernel"};
  pointers.clear();
  sizes.clear();
  for (const isa::Argument &argument : kernel->arguments) {
    std::vector<std::byte> &buffer = buffers[argument.name];
    if (buffer.empty())
      buffer.resize(static_cast<size_t>(argument.hostBytes()));
    pointers.push_back(buffer.data());
    sizes.push_back(buffer.size());
  }
  DeviceTask task;
  task.kernel = handle;
  task.buffers = pointers.data();
  task.bufferBytes = sizes;
  task.dims = dims.data();
  task.dimCount = static_cast<uint32_t>(dims.size());
  task.work = 1;
  const Segment whole{0, 1};
  Status prepared = device->prepare({&task, 1}, {&whole, 1});
  if (!prepared)
    return {-1, 0, prepared.error().message};
  device->startRun();
  device->enqueue(0);
  RunOutcome outcome = device->fence();
  if (Status ended = outcome.code ? Status() : device->endRun(); !ended)
    return {-1, 0, ended.error().message};
  return outcome;
}

void CorsairProgram::expectRun() {
  RunOutcome outcome = run();
  EXPECT_EQ(outcome.code, 0) << outcome.detail;
}

void CorsairProgram::expectFault(const std::vector<std::string> &parts) {
  RunOutcome outcome = run();
  EXPECT_NE(outcome.code, 0) << "expected: " << parts.front();
  for (const std::string &part : parts)
    EXPECT_NE(outcome.detail.find(part), std::string::npos)
        << "message: " << outcome.detail << "\nexpected part: " << part;
}

void CorsairProgram::resetState() {
  for (const isa::Argument &argument : kernel->arguments)
    if (argument.role == isa::Role::State)
      device->clear(buffers[argument.name].data(), buffers[argument.name].size());
}

uint32_t crcOfBytes(const void *data, size_t size) { return isa::crc32({static_cast<const uint8_t *>(data), size}); }

std::vector<float> goldenInput(uint32_t seed, size_t count, size_t row) {
  uint32_t state = seed;
  auto next = [&] { return state = state * 1664525u + 1013904223u; };
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    float value = (static_cast<float>(next() >> 8) - 0x1p23f) / 0x1p23f;
    value = std::ldexp(value, static_cast<int>(i / row % 5) - 2);
    if (next() % 97 == 0)
      value *= 16;
    values.push_back(value);
  }
  return values;
}

std::vector<float> noise(uint32_t seed, size_t count) { return goldenInput(seed * 77 + 5, count, 97); }

std::string fill(std::string text, const std::map<std::string, std::string> &values) {
  for (const auto &[key, value] : values)
    for (size_t at; (at = text.find("${" + key + "}")) != std::string::npos;)
      text.replace(at, key.size() + 3, value);
  return text;
}

std::string program(const std::string &streams, const std::string &launches, int count) {
  std::string text = streams + R"(
.kernel k
  .footprint DDR=0x10000 GM=0x10000 ST=0x1000 OB=0x4000 IB=0x4000 WB=0x2100 SIMD=0x1000 DRE=0x1000
  .argument x input i64 shape=[64] form=i64
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[64] strides=[8]
  .argument y output i64 shape=[${count}] form=i64
    .piece DDR unit=0 addr=0x8000 begin=[0] extent=[${count}] strides=[8]
  .main
)" + launches;
  return fill(text, {{"count", std::to_string(count)}});
}

} // namespace dmxtest
