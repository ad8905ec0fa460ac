//===- EncodedMap.cpp - tensor maps as the driver writes them -----------------===//

#include "EncodedMap.h"

namespace dmxrt::cuda {

DriverCode encodeMap(const DriverApi &api, const dmx::cuda::TensorMap &map, EncodedMap &out) {
  // The driver wants sizes and strides of 64 bits, and no stride of the innermost axis.
  driver::Swizzle swizzle = map.swizzle == 128  ? driver::Swizzle128
                            : map.swizzle == 64 ? driver::Swizzle64
                            : map.swizzle == 32 ? driver::Swizzle32
                                                : driver::NoSwizzle;
  return api.tensorMapEncode(out.bytes, static_cast<int>(map.type), map.rank, reinterpret_cast<void *>(map.base),
                             map.sizes, map.strides + 1, map.box, map.steps, driver::NoInterleave, swizzle,
                             driver::PromoteTo256, driver::FillWithZeros);
}

} // namespace dmxrt::cuda
