//===- Estimate.h - what a launch takes, in clocks --------------*- C++ -*-===//
#pragma once

#include "Multiprocessor.h"
#include "Occupancy.h"
#include "Recorder.h"

#include <optional>
#include <string>

namespace dmxrt::cuda {

/// Of one launch.
struct LaunchFigures {
  std::string kernel;
  uint32_t blocks = 0, threads = 0, multiprocessors = 0; ///< those that have blocks
  uint64_t waves = 0;                                    ///< of blocks over the multiprocessors
  Occupancy occupancy;
  LaunchCounts counts;                    ///< of all blocks, whether or not they were run
  std::optional<uint64_t> modelMacs;      ///< multiply-adds of the model's products in it
  uint64_t dramRead = 0, dramWritten = 0; ///< bytes, each sector once
  double clocks = 0;                      ///< with the launch itself
  double playClocks = 0;                  ///< that `busy` is of
  BusyClocks busy;                        ///< of a multiprocessor with the most blocks
  std::string_view bound;
  std::vector<WarpStretch> waits; ///< where asked for
};

LaunchFigures estimate(const Launch &launch, const Recorder &recorder, const Machine &machine, bool keepWaits);

/// Shares of a multiprocessor's time, by what works.
struct EngineShare {
  std::string_view name;
  double share;
};
std::vector<EngineShare> sharesOf(const LaunchFigures &figures);

} // namespace dmxrt::cuda
