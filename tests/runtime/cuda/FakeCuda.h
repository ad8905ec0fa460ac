//===- FakeCuda.h - a driver of a GPU that is not there ---------*- C++ -*-===//
//
// A library with the functions of NVIDIA's driver that the runtime calls, for tests. It keeps memory of its own, filled
// with garbage, refuses pointers of the host where the GPU's are wanted and the other way round, and runs launches on
// the simulator, for which all that it has allocated is there and nothing else. It can be told what to say, and tells
// what was called. The device option cuda.driver=FILE leads to it, nothing else does.
//
//
// What breaks a rule of the driver's (FakeCudaRules.h, and what needs a context or a handle that is there) gets the
// driver's code, is a line on stderr and one of `breaches`; a process that leaves some there ends with kBreachExit.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dmxtest {

struct FakeGpu {
  std::string name = "NVIDIA H100 of a test";
  int major = 9, minor = 0;
};

struct FakeCuda {
  int version = 12040;
  std::vector<FakeGpu> gpus{FakeGpu()};
  uint64_t totalBytes = uint64_t(1) << 30, usedBytes = 0; ///< of a GPU
  std::string jitLog;
  /// By a function's name: after how many calls it fails, and with what.
  struct Failure {
    int after = 0, code = 0;
  };
  std::map<std::string, Failure> failures;
  std::vector<std::string> calls;    ///< "cuMemcpyHtoDAsync_v2 256", "cuLaunchKernel plus 2 128"
  std::vector<std::string> breaches; ///< "cuCtxPopCurrent_v2: no context is current"; none while calls fail as told
  static constexpr int kBreachExit = 86;
  int contexts = 0;                                                   ///< pushed and not popped
  int modules = 0, streams = 0, events = 0, blocks = 0, retained = 0; ///< that are there

  size_t count(const std::string &begin) const {
    size_t found = 0;
    for (const std::string &call : calls)
      found += call == begin || call.starts_with(begin + " ");
    return found;
  }
  /// As it was, but for what still lies in its memory.
  void reset() {
    *this = FakeCuda{.usedBytes = usedBytes,
                     .contexts = contexts,
                     .modules = modules,
                     .streams = streams,
                     .events = events,
                     .blocks = blocks,
                     .retained = retained};
  }
};

} // namespace dmxtest

/// What the library gives beside the driver's functions, by this name.
extern "C" [[gnu::visibility("default")]] dmxtest::FakeCuda *dmxFakeCuda();
