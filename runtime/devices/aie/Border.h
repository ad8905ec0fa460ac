//===- Border.h - tensors of the host and their forms in DDR ----*- C++ -*-===//
//
// What a driver's copy would do: f32 are rounded to bf16 (to the nearest, to even where two are), rows get their pitch,
// and what the host does not have is zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/aie/Image.h"

namespace dmxrt::aie {

void toDevice(const dmx::aie::Argument &argument, const std::byte *host, std::byte *form);
void toHost(const dmx::aie::Argument &argument, const std::byte *form, std::byte *host);

} // namespace dmxrt::aie
