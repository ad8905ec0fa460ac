//===- Occupancy.h - how many blocks a multiprocessor holds -----*- C++ -*-===//
#pragma once

#include "runtime/devices/cuda/sim/Program.h"
#include "schemas/cuda/Machine.h"

#include <string_view>

namespace dmxrt::cuda {

using dmx::cuda::Machine;

struct Occupancy {
  uint32_t blocks = 1;    ///< at a time
  uint32_t registers = 0; ///< of a thread
  bool estimated = true;  ///< registers are those that are live at once
  std::string_view bound; ///< "threads", "blocks", "registers" or "shared memory"
};

/// 32-bit registers that a thread needs at once, by the lives of the text's registers: what ptxas makes of a text is
/// near that, and not the same.
uint32_t liveRegisters(const Program &program, const std::vector<uint8_t> &registerBits);

Occupancy occupancyOf(const Program &program, uint32_t threads, uint64_t sharedBytes, const Machine &machine);

} // namespace dmxrt::cuda
