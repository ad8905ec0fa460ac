//===- Devices.cpp - the devices this runtime has -------------------------===//

#include "Device.h"
#include "corsair/CorsairDevice.h"
#include "cpu/CpuDevice.h"
#include "cpu/ElfImage.h"

#include <cstring>

namespace dmxrt {

void Device::clear(void *memory, uint64_t size) { std::memset(memory, 0, size); }

Result<std::unique_ptr<Device>> createDevice(std::string_view target, const DeviceOptions &options) {
  if (target == "cpu")
    return CpuDevice::create(options);
  if (target == "corsair")
    return corsair::CorsairDevice::create(options);
  return fail(DMX_STATUS_UNSUPPORTED, "the bundle runs on target '", target,
              "', which this runtime has no device for; it has: cpu, corsair");
}

Status checkCode(std::string_view target, std::span<const std::byte> bytes) {
  if (target == "corsair")
    return corsair::CorsairImage::check(bytes);
  return target == "cpu" ? ElfImage::check(bytes) : Status();
}

} // namespace dmxrt
