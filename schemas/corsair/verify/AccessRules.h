//===- AccessRules.h - what each instruction touches ------------*- C++ -*-===//
//
// Private to Access: numbers that are known as intervals, ranges made of them,
// and the rules of the engines.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Access.h"

namespace dmx::corsair::access {

using Wide = __int128;

/// Farther from 0 no place is known: products with steps of 64 bits, and sums of them, fit.
constexpr Wide kFar = Wide(1) << 60;

/// The values that an expression takes, both ends included.
struct Interval {
  Wide low = 0, high = 0;
  bool known = true;
  static Interval unknown() { return {0, 0, false}; }
  static Interval of(Wide value) { return {value, value, true}; }
  void add(const Interval &other, Wide scale = 1) {
    known &= other.known;
    if (!known)
      return;
    low += scale * (scale < 0 ? other.high : other.low);
    high += scale * (scale < 0 ? other.low : other.high);
    if (low < -kFar || high > kFar)
      *this = unknown();
  }
};

/// Bytes that grow by what is repeated: their hull, and where the address has one value the runs that they are.
class Span {
public:
  Span() = default;
  Span(const Interval &address, Wide bytes);
  /// `count` of what it is, `step` bytes apart.
  Span &repeat(Wide count, Wide step);
  Span &shift(Wide bytes);
  void join(const Span &other);
  bool isEmpty() const { return empty; }
  /// Nothing where it is not known, or out of all bounds.
  std::optional<ByteRange> range() const;
  /// None where they are not known.
  std::vector<Runs> runs() const { return range() ? parts : std::vector<Runs>(); }
  /// Forgets the runs.
  Span &hull() {
    parts.clear();
    return *this;
  }

private:
  Wide begin = 0, end = 0;
  bool known = true, empty = true;
  std::vector<Runs> parts;
};

/// Rows first..last of tiles: one band of 64 rows each `band` bytes.
Span rowsSpan(const Interval &address, const Interval &first, Wide last, int64_t band, ElemKind kind);

/// An instruction at its place in a launch.
struct Site {
  const Instruction *in = nullptr;
  const Machine *machine = nullptr;
  uint32_t quad = 0;
  std::vector<Interval> values; ///< of its fields
  Interval value(std::string_view field) const { return values[static_cast<size_t>(in->info().field(field))]; }
  int64_t number(std::string_view field) const { return in->get(field); }
  uint32_t mask(std::string_view field) const { return static_cast<uint32_t>(in->get(field)); }
  /// Unit of a memory: of the quad, one of its slices, one of a slice's cores.
  uint32_t unitOf(Memory memory, int slice, int core = 0) const;
};

/// The unit whose slots an instruction needs; nothing for those without a slot.
std::optional<Unit> slotUnit(const Instruction &in);
/// Appends what an instruction touches under a descriptor of its slot (null where it needs none).
void addAccesses(const Site &site, const Instruction *config, std::vector<Access> &out);

} // namespace dmx::corsair::access
