//===- CorsairHarness.h - assembly on the simulated card --------*- C++ -*-===//
#pragma once

#include "runtime/devices/Device.h"
#include "runtime/devices/corsair/CorsairDevice.h"
#include "schemas/corsair/text/Assembler.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dmxtest {

namespace isa = dmx::corsair;

/// A kernel from assembly on a device of its own. Buffers are the kernel's arguments by name.
class CorsairProgram {
public:
  struct Options {
    uint32_t threads = 1;
    std::vector<std::string> settings;
  };
  explicit CorsairProgram(const std::string &text, const Options &options);
  explicit CorsairProgram(const std::string &text) : CorsairProgram(text, Options()) {}
  ~CorsairProgram();

  template <typename T> void set(const std::string &name, const std::vector<T> &values) {
    std::vector<std::byte> &buffer = buffers[name];
    buffer.resize(values.size() * sizeof(T));
    std::memcpy(buffer.data(), values.data(), buffer.size());
  }
  template <typename T> std::vector<T> get(const std::string &name) {
    const std::vector<std::byte> &buffer = buffers[name];
    std::vector<T> values(buffer.size() / sizeof(T));
    std::memcpy(values.data(), buffer.data(), buffer.size());
    return values;
  }
  /// Buffers that were not set are zeros of the right size.
  dmxrt::RunOutcome run();
  /// Fails the test when the run does.
  void expectRun();
  /// Runs and gives the report's part of the main program.
  nlohmann::json report();
  /// The run fails with a message that has all the parts.
  void expectFault(const std::vector<std::string> &parts);
  /// Zeros in all state buffers.
  void resetState();
  std::vector<int64_t> dims;

private:
  std::string reportFile;
  std::unique_ptr<dmxrt::Device> device;
  std::shared_ptr<const dmxrt::CodeImage> code;
  const isa::Kernel *kernel = nullptr;
  const void *handle = nullptr;
  std::map<std::string, std::vector<std::byte>> buffers;
  std::vector<void *> pointers;
  std::vector<uint64_t> sizes;
};

/// CRC-32 of a vector's bytes.
template <typename T> uint32_t crcOf(const std::vector<T> &values);
uint32_t crcOfBytes(const void *data, size_t size);
template <typename T> uint32_t crcOf(const std::vector<T> &values) {
  return crcOfBytes(values.data(), values.size() * sizeof(T));
}

/// The inputs of golden vector V17: `seed` 1 for A (row 512), 2 for B (row 64).
std::vector<float> goldenInput(uint32_t seed, size_t count, size_t row);
/// Pseudo-random numbers in -1..1 with varying magnitude.
std::vector<float> noise(uint32_t seed, size_t count);

/// `text` with every ${key} replaced.
std::string fill(std::string text, const std::map<std::string, std::string> &values);
/// Streams and launches around an i64 tensor `x` in DDR 0 and a result `y` of `count` numbers.
std::string program(const std::string &streams, const std::string &launches, int count = 64);

} // namespace dmxtest
