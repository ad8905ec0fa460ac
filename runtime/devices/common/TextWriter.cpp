//===- TextWriter.cpp - JSON and text of reports, as they go --------------===//
#include "TextWriter.h"

#include <charconv>
#include <cstdarg>
#include <cstdio>

namespace dmxrt::sim {

void TextWriter::add(const char *format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  text += buffer;
}

void TextWriter::quoted(std::string_view value) {
  text += '"';
  for (char c : value) {
    if (c == '"' || c == '\\')
      text += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      add("\\u%04x", c);
    else
      text += c;
  }
  text += '"';
}

bool TextWriter::save(const std::string &path) const {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file)
    return false;
  bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && good;
}

std::string num(double value) {
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 6);
  return std::string(buffer, end.ptr);
}

std::string fixed(double value, int digits) {
  char buffer[400];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, digits);
  return std::string(buffer, end.ptr);
}

} // namespace dmxrt::sim
