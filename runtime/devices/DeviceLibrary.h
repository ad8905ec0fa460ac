//===- DeviceLibrary.h - devices in libraries of their own ------*- C++ -*-===//
//
// A device but the host's is a library of its own, so that who needs it not
// carries it not. libdmxrt.so opens libdmxrt-<name>.so when a bundle names it,
// from the folder that libdmxrt.so itself was loaded from and from nowhere else:
// no search path, no environment variable. Static programs name what they link.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Device.h"

namespace dmxrt {

/// What a device's library gives, by the name dmxrt_device_<name>: all of its symbols that others see.
struct DeviceLibrary {
  /// Of the headers that it was built with (tools/cmake/DmxRuntimeDevices.cmake). Stays in this place; nothing else is
  /// looked at when it is another one's.
  uint32_t abi;
  const DeviceKind &(*kind)();
};

/// The device of a target from its library; loaded once, and never unloaded. An error says what there is instead, and
/// what to do. Safe to call from several threads.
Result<const DeviceKind *> openDevice(std::string_view target);

/// A part of a device, from its library beside that of the code that asks. An error says why there is none, and what to
/// do, without a subject.
Result<const DeviceKind *> openDevicePart(std::string_view device, std::string_view part);

/// What opens devices that are not among deviceKinds(); null in static programs. Generated, as these are.
using DeviceOpener = Result<const DeviceKind *> (*)(std::string_view target);
DeviceOpener deviceOpener();

} // namespace dmxrt
