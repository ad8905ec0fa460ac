//===- Device.h - encoded programs on the simulated card --------*- C++ -*-===//
#pragma once

#include "Encoded.h"
#include "corsair/CorsairHarness.h"

namespace dmxtest {

/// A device with an encoded program.
inline std::unique_ptr<CorsairProgram> makeDevice(const Encoded &encoded) {
  EXPECT_FALSE(encoded.assembly.empty()) << encoded.error;
  return encoded.assembly.empty() ? nullptr : std::make_unique<CorsairProgram>(encoded.assembly);
}

} // namespace dmxtest
