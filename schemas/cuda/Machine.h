//===- Machine.h - a GPU of compute capability 9.0 --------------*- C++ -*-===//
//
// What differs from GPU to GPU, or that is a number of all of them, read from JSON (h100.json), where each figure has
// its source. What instructions and layouts fix is in Layouts.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dmx::cuda {

struct Machine {
  std::string name;
  double clockHz = 0;
  int multiprocessors = 0;
  // of a multiprocessor
  int registers = 0;
  double multiplicationsPerClock = 0;
  // of a block
  int mostThreads = 0, mostShared = 0;
  int mostCluster = 0; ///< blocks of a cluster
  // of a thread
  int mostRegisters = 0, registerStep = 0, fewestRegisters = 0;
  int parameterBytes = 0; ///< of a kernel
  /// What the simulator's clock knows, and estimates of what it will say (Rates.h).
  struct Clock {
    // A multiprocessor has at most so many threads and blocks, and shared memory for them; a block takes some beside
    // its own.
    int threads = 0, blocks = 0, sharedBytes = 0, reservedShared = 0;
    int64_t cacheBytes = 0; ///< first cache and shared memory together
    double sharedBytesPerClock = 0;
    double l2BytesPerClock = 0;                            ///< what one multiprocessor can take out of the second cache
    double l2BytesPerSecond = 0, memoryBytesPerSecond = 0; ///< all of them together
    double mergedRequests = 0; ///< of neighbours for the same bytes, on their way to the second cache
    double memoryShare = 0;    ///< of its bandwidth that the memory gives
    // Clocks until a value is there.
    double cacheLatency = 0, sharedLatency = 0, l2Latency = 0, memoryLatency = 0, bulkLatency = 0, barrierLatency = 0,
           clusterLatency = 0, productLatency = 0;
    double launchClocks = 0;
  } clock;
  double clocksFor128Sums = 0; ///< that estimates add to a product's multiplications and copies
  std::string source;          ///< the JSON text it was read from

  /// What setmaxnreg may give each thread of a group where so many of them have that many registers together.
  int64_t registersOfEach(int64_t all, int64_t threads) const { return all / threads / registerStep * registerStep; }
};

/// Reads and checks a description. The error names the figure: missing, of the wrong type, out of range, without a
/// mark, or the total that it misses and the figures the total is made of.
std::optional<Machine> parseMachine(std::string_view json, std::string &error);
/// h100.json, built in.
std::string_view builtinMachineJson();
const Machine &builtinMachine();

} // namespace dmx::cuda
