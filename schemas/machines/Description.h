//===- Description.h - a machine's figures as JSON --------------*- C++ -*-===//
//
// Objects of figures, each {"value": number, "mark": "fact", "note": ..}: `fact` (published), `derived` (by arithmetic
// from facts) or `assumption` (ours). A machine reads those that it has by their paths, "dma.setup_clocks".
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dmx {

/// What a description needs of JSON. The library's own values may allocate where they are destroyed, which ends a
/// program that is out of memory.
struct DescriptionValue {
  struct Member;
  enum class Kind : uint8_t { Other, Object, Number, Text } kind = Kind::Other;
  double number = 0;
  std::string text;
  std::vector<Member> members; ///< of an Object

  const DescriptionValue *find(std::string_view key) const;
};
struct DescriptionValue::Member {
  std::string key;
  DescriptionValue value;
};

/// Reads one description. The first failure is kept, and what is read then is the least that is allowed.
class Description {
public:
  explicit Description(std::string_view json);

  /// "" where nothing failed; it names the figure: missing, of the wrong type, out of range, without a mark, or the
  /// total that it misses and what that is made of.
  const std::string &error() const { return why; }
  void fail(const std::string &message);

  std::string name();
  double number(const std::string &path, double min, double max);
  int integer(const std::string &path, int min, int max);
  /// Fails where figures come to another total than is said, by more than a thousandth.
  void total(const std::string &name, double got, double wanted, const std::string &knobs);
  /// Fails where there are figures that were not read: a misspelt one would silently leave the right one as it is.
  void checkAllKnown();

private:
  const DescriptionValue *find(std::string_view path) const;

  DescriptionValue root;
  std::string why;
  size_t leaves = 0; ///< figures read
};

} // namespace dmx
