//===- Report.h - what a run of the array cost ------------------*- C++ -*-===//
#pragma once

#include "Array.h"

#include "runtime/devices/common/Report.h"

namespace dmxrt::aie {

/// The figures of one run of a kernel, kept when its array is gone.
struct Figures {
  std::string kernel;
  uint64_t hostIn = 0, hostOut = 0; ///< bytes
  double hostSeconds = 0;           ///< that this host took to put them into the array's forms and back
  uint64_t clocks = 0, bf16Macs = 0, i32Macs = 0, i8Macs = 0, instructions = 0, controlWords = 0,
           configurationWords = 0, cores = 0;
  uint64_t usefulMacs = 0; ///< that the model asks for: those of the cores without what is computed with padding
  std::array<uint64_t, 3> readBytes = {}, writtenBytes = {};     ///< of kMemories
  std::vector<std::pair<std::string, uint64_t>> linkWords, busy; ///< busy: clocks of cores and channels
};
inline constexpr std::string_view kMemories[] = {"DDR", "L2", "L1"};

/// `modelMacs`: the multiplications that the model asks for.
Figures figuresOf(const Array &array, const hw::KernelCode &kernel, uint64_t modelMacs);
/// What kept the run from being faster: "compute", "stream", "DDR" or "control".
std::string_view boundOf(const hw::Machine &machine, const Figures &figures);
void write(sim::ReportWriter &out, const hw::Machine &machine, const Figures &figures);

} // namespace dmxrt::aie
