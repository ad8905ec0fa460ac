//===- CorsairDeviceKernels.h - kernels.c for the simulated card *- C++ -*-===//
#pragma once

#include <string>

namespace dmxtest {

/// A .dmxisa image with the kernels of DeviceTest.cpp, named <kernel>_<items>.
std::string corsairObject();

} // namespace dmxtest
