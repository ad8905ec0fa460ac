//===- EncodedMap.h - tensor maps as the driver writes them -----*- C++ -*-===//
#pragma once

#include "DriverApi.h"
#include "schemas/cuda/TensorMap.h"

namespace dmxrt::cuda {

/// What a kernel gets by value.
struct alignas(64) EncodedMap {
  std::byte bytes[dmx::cuda::kMapBytes];
};

/// Asks the driver for it. Zeros beyond the tensor's edges, no interleaving.
DriverCode encodeMap(const DriverApi &api, const dmx::cuda::TensorMap &map, EncodedMap &out);

} // namespace dmxrt::cuda
