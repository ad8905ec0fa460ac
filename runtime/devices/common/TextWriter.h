//===- TextWriter.h - JSON and text of reports, as they go ------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dmxrt::sim {

/// Reports and traces are small and their formats fixed.
class TextWriter {
public:
  void add(const char *format, ...) __attribute__((format(printf, 2, 3)));
  /// A JSON string.
  void quoted(std::string_view value);
  /// False when the file cannot be written.
  bool save(const std::string &path) const;

  std::string text;
};

/// Numbers' texts whatever the process's locale: with six digits, or with so many behind the point.
std::string num(double value);
std::string fixed(double value, int digits);
/// For %llu.
inline unsigned long long ull(uint64_t value) { return value; }

} // namespace dmxrt::sim
