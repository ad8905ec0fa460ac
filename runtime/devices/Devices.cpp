//===- Devices.cpp - the devices this runtime has -------------------------===//

#include "Device.h"
#include "cpu/CpuDevice.h"
#include "cpu/ElfImage.h"

namespace dmxrt {

Result<std::unique_ptr<Device>> createDevice(std::string_view target, const DeviceOptions &options) {
  if (target == "cpu")
    return CpuDevice::create(options);
  return fail(DMX_STATUS_UNSUPPORTED, "the bundle runs on target '", target,
              "', which this runtime has no device for; it has: cpu");
}

Status checkCode(std::string_view target, std::span<const std::byte> bytes) {
  return target == "cpu" ? ElfImage::check(bytes) : Status();
}

} // namespace dmxrt
