//===- Launch.h - a kernel's threads, one warp after the other --*- C++ -*-===//
#pragma once

#include "Program.h"
#include "schemas/cuda/TensorMap.h"

namespace dmxrt::cuda {

class Recorder;

/// What ends a launch that does not end by itself, in seconds: no warp that does ends so late.
constexpr uint64_t kMostSteps = uint64_t(1) << 26;

struct Launch {
  const Program *program = nullptr;
  const ProgramModule *module = nullptr;
  std::vector<uint64_t> parameters; ///< of a tensor map the address, kMapWindow + 128 * its number
  std::vector<dmx::cuda::TensorMap> maps;
  uint64_t shared = 0;              ///< bytes that the launch gives a block
  bool byBlock = false;             ///< blocks write results, not threads: a block's threads may share them
  uint32_t blocks = 0, threads = 0; ///< of the grid; of a block
  uint64_t seed = 0;                ///< of the order of blocks and warps
  uint64_t mostSteps = kMostSteps;  ///< instructions of all warps from one warp's end to the next one's
  bool checks = true;               ///< of shared memory
  Memory *memory = nullptr;
  Recorder *recorder = nullptr; ///< for the clock
  uint32_t mostBlocks = 0;      ///< that are run, of a larger grid some, spread over it; 0: all
};

/// What a launch ended with.
struct LaunchOutcome {
  std::string fault; ///< "" or "check: what", then these
  uint32_t line = 0, thread = 0;
  uint64_t steps = 0; ///< instructions of warps
};

LaunchOutcome runLaunch(const Launch &launch);

} // namespace dmxrt::cuda
