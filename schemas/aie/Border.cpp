//===- Border.cpp - tensors of the host and their forms in DDR ------------===//
#include "Border.h"

#include <cstring>

namespace dmx::aie {
namespace {

/// Calls visit(number of the host, element of the form) for all numbers, in the host's order.
template <typename Visit> void eachNumber(const Argument &argument, Visit visit) {
  std::vector<std::vector<uint64_t>> places;
  for (const Axis &axis : argument.axes) {
    std::vector<uint64_t> &at = places.emplace_back(axis.extent);
    for (size_t i = 0; i < at.size(); ++i)
      at[i] = axis.at(i);
  }
  if (places.empty())
    return visit(size_t(0), uint64_t(0));
  std::vector<size_t> index(places.size());
  for (size_t host = 0, count = argument.hostElements(); host < count;) {
    uint64_t base = 0;
    for (size_t dim = 0; dim + 1 < places.size(); ++dim)
      base += places[dim][index[dim]];
    for (uint64_t inner : places.back())
      visit(host++, base + inner);
    for (size_t dim = places.size() - 1; dim > 0; --dim) { // the next index of the outer dims
      if (++index[dim - 1] < places[dim - 1].size())
        break;
      index[dim - 1] = 0;
    }
  }
}

} // namespace

uint16_t toBf16(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) // a NaN stays one, and is quiet
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void toDevice(const Argument &argument, const std::byte *host, std::byte *form) {
  std::memset(form, 0, argument.ddrBytes());
  if (argument.element == Element::I8)
    return eachNumber(argument, [&](size_t number, uint64_t place) { form[place] = host[number]; });
  bool rounds = argument.element == Element::Bf16;
  eachNumber(argument, [&](size_t number, uint64_t place) {
    uint32_t bits = 0;
    std::memcpy(&bits, host + 4 * number, 4);
    if (!rounds) {
      std::memcpy(form + 4 * place, &bits, 4);
      return;
    }
    uint16_t rounded = toBf16(bits);
    std::memcpy(form + 2 * place, &rounded, 2);
  });
}

void toHost(const Argument &argument, const std::byte *form, std::byte *host) {
  if (argument.element == Element::I8)
    return eachNumber(argument, [&](size_t number, uint64_t place) { host[number] = form[place]; });
  size_t width = static_cast<size_t>(bytesOf(argument.element));
  eachNumber(argument, [&](size_t number, uint64_t place) {
    uint32_t bits = 0; // a bf16 is the upper half of its f32
    std::memcpy(reinterpret_cast<std::byte *>(&bits) + (4 - width), form + place * width, width);
    std::memcpy(host + 4 * number, &bits, 4);
  });
}

} // namespace dmx::aie
