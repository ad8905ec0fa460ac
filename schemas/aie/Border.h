//===- Border.h - tensors of the host and their forms in DDR ----*- C++ -*-===//
//
// What a driver's copy would do: the compiler does it for weights. f32 are rounded to bf16 (to the nearest, to even
// where two are), rows get their pitch, and what the host does not have is zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Image.h"

namespace dmx::aie {

/// `argument` as if it were not packed: rows x columns f32 or i32 of the host, ddrBytes of its form.
void toDevice(const Argument &argument, const std::byte *host, std::byte *form);
void toHost(const Argument &argument, const std::byte *form, std::byte *host);

} // namespace dmx::aie
