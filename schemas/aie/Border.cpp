//===- Border.cpp - tensors of the host and their forms in DDR ------------===//
#include "Border.h"

#include <bit>
#include <cstring>

namespace dmx::aie {

static uint16_t toBf16(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) // a NaN stays one, and is quiet
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void toDevice(const Argument &argument, const std::byte *host, std::byte *form) {
  std::memset(form, 0, argument.ddrBytes());
  size_t pitch = size_t(argument.pitch) * static_cast<size_t>(bytesOf(argument.element));
  for (size_t row = 0; row < argument.rows; ++row) {
    const std::byte *from = host + 4 * row * argument.columns;
    std::byte *to = form + row * pitch;
    if (argument.element != Element::Bf16) {
      std::memcpy(to, from, size_t(4) * argument.columns);
      continue;
    }
    for (size_t column = 0; column < argument.columns; ++column) {
      uint32_t bits = 0;
      std::memcpy(&bits, from + 4 * column, 4);
      uint16_t rounded = toBf16(bits);
      std::memcpy(to + 2 * column, &rounded, 2);
    }
  }
}

void toHost(const Argument &argument, const std::byte *form, std::byte *host) {
  size_t width = static_cast<size_t>(bytesOf(argument.element)), pitch = argument.pitch * width;
  for (size_t row = 0; row < argument.rows; ++row)
    for (size_t column = 0; column < argument.columns; ++column) {
      uint32_t bits = 0; // a bf16 is the upper half of its f32
      std::memcpy(reinterpret_cast<std::byte *>(&bits) + (4 - width), form + row * pitch + column * width, width);
      std::memcpy(host + 4 * (row * argument.columns + column), &bits, 4);
    }
}

} // namespace dmx::aie
