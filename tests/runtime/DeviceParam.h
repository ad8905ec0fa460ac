//===- DeviceParam.h - a device that DeviceTest.cpp tries -------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>

namespace dmxtest {

/// A device, the code with the kernels of kernels.c, and how they are named there: a device with
/// fixed shapes has one per number of items, <kernel>_<items>.
struct DeviceParam {
  const char *target;
  uint32_t threads;
  std::string (*object)();
  bool namedBySize = false;
};

/// Adds one to those that DeviceTest.cpp tries, before main; true.
bool addDevice(const DeviceParam &device);

} // namespace dmxtest
