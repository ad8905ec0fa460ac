//===- OpSamples.h - OpSamples.mlir as text ---------------------*- C++ -*-===//
#pragma once

namespace dmxc::driver {
/// A module that uses every computational op of DMIR once, in its plainest
/// form. Embedded by CMake.
extern const char *const opSamples;
} // namespace dmxc::driver
