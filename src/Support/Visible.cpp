//===- Visible.cpp - other people's names on a terminal -------------------===//
#include "dmxc/Support/Visible.h"

#include <array>
#include <cstdio>

namespace dmxc {

namespace {

/// Bytes of the UTF-8 sequence that a text begins with, and its code point; {0, 0} where there is none.
struct Sequence {
  size_t size;
  unsigned point;
};

Sequence sequenceOf(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  constexpr std::array<unsigned, 5> least{0, 0, 0x80, 0x800, 0x10000}; // of that many bytes: longer ones are no UTF-8
  unsigned first = byte(0);
  if (first < 0x80)
    return {1, first};
  size_t size = first >= 0xF8 ? 0 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
  if (size == 0 || text.size() < size)
    return {0, 0};
  unsigned point = first & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return {0, 0};
    point = point << 6 | (byte(i) & 0x3F);
  }
  bool isText = point >= least[size] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
  return isText ? Sequence{size, point} : Sequence{0, 0};
}

/// C0, DEL and C1; and marks that turn the direction of what follows, or begin a line.
bool isControl(unsigned point) {
  return point < ' ' || (point >= 0x7F && point < 0xA0) || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

std::string shown(std::string_view text, bool keepsLines) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    auto [size, point] = sequenceOf(text.substr(at));
    char code[16];
    bool isOurs = keepsLines && (point == '\n' || point == '\t') && size == 1;
    if (size == 0)
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[at])));
    else if (!isControl(point) || isOurs)
      code[0] = 0;
    else if (point == '\n' || point == '\t' || point == '\r')
      std::snprintf(code, sizeof code, "\\%c", point == '\n' ? 'n' : point == '\t' ? 't' : 'r');
    else
      std::snprintf(code, sizeof code, point < 0x80 ? "\\x%02x" : "\\u%04x", point);
    size_t step = size ? size : 1;
    result += code[0] ? std::string_view(code) : text.substr(at, step);
    at += step;
  }
  return result;
}

} // namespace

std::string visible(std::string_view text) { return shown(text, /*keepsLines=*/false); }

std::string visibleLines(std::string_view text) { return shown(text, /*keepsLines=*/true); }

} // namespace dmxc
