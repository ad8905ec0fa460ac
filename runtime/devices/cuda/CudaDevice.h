//===- CudaDevice.h - GPUs of NVIDIA, or a simulator of them ----*- C++ -*-===//
#pragma once

#include "runtime/devices/Device.h"

namespace dmxrt {

const DeviceKind &cudaDevice();

/// The simulator: linked, or from its library beside this one. An error says what is missing, without a subject.
Result<const DeviceKind *> cudaPart(std::string_view part);

} // namespace dmxrt
