//===- Border.cpp - tensors of the host and their forms in DDR ------------===//
#include "Border.h"

#include <bit>
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

/// The f32 of an f16's bits: each is one.
uint32_t fromF16(uint32_t half) {
  uint32_t sign = half >> 15 << 31, exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31)
    return sign | 0x7f800000 | fraction << 13 | (fraction ? 1u << 22 : 0); // a NaN is quiet
  if (exponent)
    return sign | (exponent + 112) << 23 | fraction << 13;
  return sign | std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f);
}

/// The nearest f16 of an f32's bits, of two the even one; infinite where that is nearest.
uint32_t toF16(uint32_t bits) {
  uint32_t sign = bits >> 31 << 15, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x47800000) // 2^16
    return sign | 0x7c00;
  if (magnitude < 0x38800000) // 2^-14: a sum with what has the last place of the smallest f16 rounds
    return sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000);
  return sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13);
}

} // namespace

uint16_t toBf16(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) // a NaN stays one, and is quiet
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint32_t toForm(Element element, uint32_t host) {
  switch (element) {
  case Element::Bf16:
    return toBf16(host);
  case Element::F32OfBf16:
    return host << 16;
  case Element::Bf16OfF16:
    return toBf16(fromF16(host));
  case Element::F32OfF16:
    return fromF16(host);
  default:
    return host;
  }
}

/// The number of the host that one of the form is.
static uint32_t fromForm(Element element, uint32_t form) {
  switch (element) {
  case Element::Bf16:
    return form << 16;
  case Element::F32OfBf16:
    return toBf16(form);
  case Element::Bf16OfF16:
    return toF16(form << 16);
  case Element::F32OfF16:
    return toF16(form);
  default:
    return form;
  }
}

void toDevice(const Argument &argument, const std::byte *host, std::byte *form) {
  std::memset(form, 0, argument.ddrBytes());
  size_t from = hostBytesOf(argument.element), to = static_cast<size_t>(bytesOf(argument.element));
  eachNumber(argument, [&](size_t number, uint64_t place) {
    uint64_t bits = 0;
    std::memcpy(&bits, host + from * number, from);
    if (from <= sizeof(uint32_t))
      bits = toForm(argument.element, static_cast<uint32_t>(bits));
    std::memcpy(form + to * place, &bits, to);
  });
}

void eachRun(const Argument &argument, const std::function<void(uint64_t first, uint64_t count)> &visit) {
  uint64_t first = 0, end = 0;
  eachNumber(argument, [&](size_t, uint64_t place) {
    if (place != end) {
      if (end > first)
        visit(first, end - first);
      first = place;
    }
    end = place + 1;
  });
  if (end > first)
    visit(first, end - first);
}

void toHost(const Argument &argument, const std::byte *form, std::byte *host) {
  size_t from = static_cast<size_t>(bytesOf(argument.element)), to = hostBytesOf(argument.element);
  eachNumber(argument, [&](size_t number, uint64_t place) {
    uint64_t bits = 0;
    std::memcpy(&bits, form + from * place, from);
    if (from <= sizeof(uint32_t))
      bits = fromForm(argument.element, static_cast<uint32_t>(bits));
    std::memcpy(host + to * number, &bits, to);
  });
}

} // namespace dmx::aie
