//===- Fault.h - what a simulated program can do wrong ----------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dmxrt::corsair {

/// ISA.md section 10.
enum class FaultKind : uint8_t {
  PoisonRead,
  FormatMismatch,
  Race,
  Deadlock,
  Capacity,
  IllegalMove,
  MissingConfig,
  BadOperand,
  Misaligned,
  IndexOutOfRange,
  CpuFault,
  BarrierMismatch,
  UnwrittenOutput,
};

/// "poison-read"
constexpr std::string_view nameOf(FaultKind kind) {
  constexpr std::string_view kNames[] = {"poison-read",     "format-mismatch",    "race",           "deadlock",
                                         "capacity",        "illegal-move",       "missing-config", "bad-operand",
                                         "misaligned",      "index-out-of-range", "cpu-fault",      "barrier-mismatch",
                                         "unwritten-output"};
  return kNames[static_cast<int>(kind)];
}

/// Why a program was stopped. Of several the earliest is reported: by time, then
/// by quad, so that host threads do not decide.
struct Fault {
  FaultKind kind = FaultKind::BadOperand;
  uint64_t time = 0; ///< clocks
  uint32_t quad = 0;
  std::string text; ///< names what and where
};

} // namespace dmxrt::corsair
