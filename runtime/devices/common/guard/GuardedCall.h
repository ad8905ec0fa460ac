//===- GuardedCall.h - a kernel's faults as values --------------*- C++ -*-===//
#pragma once

#include "dmx/dmx_kernel.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace dmxrt {

/// An access that the processor refused.
struct GuardFault {
  uintptr_t address = 0; // 0 as well where the processor does not tell, as of a wrong alignment
  bool write = false;
};

/// Calls what users and compilers made; when it faults (SIGSEGV), it is left where it stands and `fault` is filled in.
/// For tests: a process makes one such call at a time, and its signal handler is replaced meanwhile; faults of other
/// threads go to the handler that was there. Kernels own nothing that leaving them would lose.
std::optional<int32_t> callGuarded(int32_t (*function)(const void *), const void *argument, GuardFault &fault);
inline std::optional<int32_t> callGuarded(dmx_kernel_fn kernel, const dmx_kernel_args &args, GuardFault &fault) {
  using Call = std::pair<dmx_kernel_fn, const dmx_kernel_args *>;
  const Call call{kernel, &args};
  auto run = [](const void *given) {
    const auto &[function, its] = *static_cast<const Call *>(given);
    return function(its);
  };
  return callGuarded(run, &call, fault);
}

} // namespace dmxrt
