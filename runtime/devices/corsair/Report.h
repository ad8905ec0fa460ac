//===- Report.h - what a run of the card cost -------------------*- C++ -*-===//
#pragma once

#include "Card.h"

namespace dmxrt::corsair {

/// One dispatch of a kernel.
struct KernelRun {
  const isa::Image *image = nullptr;
  std::string kernel;
  std::optional<RunResult> init; ///< the session's first dispatch
  RunResult main;
  uint64_t modelMacs = 0;           ///< multiply-adds that the model asks the arrays for; 0: nobody said
  uint64_t hostIn = 0, hostOut = 0; ///< bytes over PCIe
  uint64_t saturatedInputs = 0;     ///< elements of the host's that f16 cannot hold
};

/// "node 'a' saturated 12 values, ..": what f16 could not hold in a run, node by node; "" where it held all.
std::string saturationText(const std::vector<KernelRun> &run);

/// What keeps a program from being faster.
enum class Bound : uint8_t { Compute, Sram, Ddr, Simd, Reshape, Control };
std::string_view nameOf(Bound bound); ///< "SRAM"
/// By the engine that was busy longest; Control when all idled more than half of the time.
Bound boundOf(const Usage &usage, uint64_t clocks, size_t quads);
/// MACs done by those that the DIMC arrays of the slices in use could have done; 0..1.
double peakFraction(const RunResult &run, const isa::Machine &machine);

/// MACs of a run by what they were for; their sum is what was done.
struct MacShares {
  uint64_t model = 0;    ///< that the model asks for, each once
  uint64_t repeated = 0; ///< the same again, in other quads
  uint64_t padding = 0;  ///< to fill whole tiles
  double peak = 0;       ///< those of the model by what all arrays of the run's quads could have done; 0..1
};
MacShares macShares(const KernelRun &kernel, const RunResult &run, const isa::Machine &machine);

/// Writes FILE (JSON) and FILE.txt: the session's first run and its last. False when a
/// file cannot be written.
bool writeReport(const std::string &path, const isa::Machine &machine, const std::vector<KernelRun> &first,
                 const std::vector<KernelRun> &last, uint64_t runs);
/// Writes the last run as a Chrome trace: a process per quad, a row per engine, kernels one after the other.
bool writeTrace(const std::string &path, const isa::Machine &machine, const std::vector<KernelRun> &run);

} // namespace dmxrt::corsair
