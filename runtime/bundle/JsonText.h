//===- JsonText.h - values of a JSON text -----------------------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dmxrt {

/// A value. Elements of an array and members of an object lie next to each other in JsonText::values.
struct JsonValue {
  enum class Kind : uint8_t { Other, Integer, String, Array, Object }; ///< Other: null, bool, reals, beyond 64 bits
  Kind kind = Kind::Other;
  uint32_t keyLength = 0; // of a member
  uint32_t count = 0;     // elements, members or characters
  const char *keyCharacters = nullptr;
  union {
    int64_t integer = 0;
    size_t first; // element or member
    const char *characters;
  };

  std::string_view key() const { return {keyCharacters, keyLength}; } ///< of a member
  std::string_view text() const { return {characters, count}; }       ///< of a String
};
static_assert(sizeof(JsonValue) == 32, "a graph has tens of thousands");

/// The values of a text by RFC 8259 (UTF-8, no byte order mark). Most of the time that opening a bundle takes goes into
/// its graph, so there is one array instead of a tree, strings stay where they are in the text, and nothing is read
/// that a bundle has no use for (reals are checked, not converted).
struct JsonText {
  enum class Problem { None, Invalid, TooDeep, TooLong };
  /// Containers within each other, at most; keeps recursion over values bounded.
  static constexpr int kMaxDepth = 64;
  /// Characters; keeps all counts within 32 bits.
  static constexpr size_t kMaxLength = UINT32_MAX;

  /// `text` must outlive the values.
  explicit JsonText(std::string_view text);
  JsonText(const JsonText &) = delete;

  const JsonValue &root() const { return values.back(); }
  std::span<const JsonValue> childrenOf(const JsonValue &value) const { return {&values[value.first], value.count}; }

  Problem problem = Problem::None; // with one, the root is an Other
  std::vector<JsonValue> values;   // the root is the last one
  std::deque<std::string> strings; // those that had escapes
};

} // namespace dmxrt
