//===- Border.h - tensors of the host and their forms in DDR ----*- C++ -*-===//
//
// What a driver's copy would do: the compiler does it for weights. Numbers of the host become those of the form
// (Element; to the nearest, to even where two are), go where their axes say, and what the host does not have is zero.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Image.h"

#include <functional>

namespace dmx::aie {

/// The bf16 of an f32's bits.
uint16_t toBf16(uint32_t bits);
/// The number of a form that has 2 or 4 bytes an element, of one of the host's, as bits.
uint32_t toForm(Element element, uint32_t host);
/// `argument`, which checkForm accepts, as if it were not packed: the host's numbers, ddrBytes of its form.
void toDevice(const Argument &argument, const std::byte *host, std::byte *form);
/// Calls visit(first element, elements) for all that the host has numbers of, neighbours together.
void eachRun(const Argument &argument, const std::function<void(uint64_t first, uint64_t count)> &visit);
void toHost(const Argument &argument, const std::byte *form, std::byte *host);

} // namespace dmx::aie
