//===- DType.h - element types ----------------------------------*- C++ -*-===//
#pragma once

#include "dmx/dmx.h"

#include <string_view>

namespace dmxrt {

/// Manifest name to dtype; 0 for an unknown name.
dmx_dtype dtypeFromName(std::string_view name);
/// Required alignment of a bound tensor: the element size, 1 for 4-bit types.
uint64_t dtypeAlignment(dmx_dtype dtype);

} // namespace dmxrt
