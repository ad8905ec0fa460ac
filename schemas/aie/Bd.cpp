//===- Bd.cpp - which bits of a BD's words hold what ----------------------===//
#include "Bd.h"

namespace dmx::aie {
namespace {

using F = BdField;

/// Bits lsb.. of a word hold bits from.. of a field.
struct Bits {
  F field;
  uint8_t word, lsb, width, from = 0;
};

constexpr Bits kCore[] = {
    {F::Base, 0, 14, 14},
    {F::Length, 0, 0, 14},
    {F::Compress, 1, 31, 1},
    {F::PacketOn, 1, 30, 1},
    {F::OutOfOrder, 1, 24, 6},
    {F::PacketId, 1, 19, 5},
    {F::PacketType, 1, 16, 3},
    {F::Step1, 2, 13, 13},
    {F::Step0, 2, 0, 13},
    {F::Wrap1, 3, 21, 8},
    {F::Wrap0, 3, 13, 8},
    {F::Step2, 3, 0, 13},
    {F::IterationCurrent, 4, 19, 6},
    {F::IterationWrap, 4, 13, 6},
    {F::IterationStep, 4, 0, 13},
    {F::TlastOff, 5, 31, 1},
    {F::Next, 5, 27, 4},
    {F::UseNext, 5, 26, 1},
    {F::Valid, 5, 25, 1},
    {F::ReleaseValue, 5, 18, 7},
    {F::ReleaseLock, 5, 13, 4},
    {F::AcquireOn, 5, 12, 1},
    {F::AcquireValue, 5, 5, 7},
    {F::AcquireLock, 5, 0, 4},
};

constexpr Bits kMemory[] = {
    {F::PacketOn, 0, 31, 1},
    {F::PacketType, 0, 28, 3},
    {F::PacketId, 0, 23, 5},
    {F::OutOfOrder, 0, 17, 6},
    {F::Length, 0, 0, 17},
    {F::Before0, 1, 26, 6},
    {F::Next, 1, 20, 6},
    {F::UseNext, 1, 19, 1},
    {F::Base, 1, 0, 19},
    {F::TlastOff, 2, 31, 1},
    {F::Wrap0, 2, 17, 10},
    {F::Step0, 2, 0, 17},
    {F::Before1, 3, 27, 5},
    {F::Wrap1, 3, 17, 10},
    {F::Step1, 3, 0, 17},
    {F::Before2, 4, 27, 4},
    {F::Wrap2, 4, 17, 10},
    {F::Step2, 4, 0, 17},
    {F::After2, 5, 28, 4},
    {F::After1, 5, 23, 5},
    {F::After0, 5, 17, 6},
    {F::Step3, 5, 0, 17},
    {F::IterationCurrent, 6, 23, 6},
    {F::IterationWrap, 6, 17, 6},
    {F::IterationStep, 6, 0, 17},
    {F::Valid, 7, 31, 1},
    {F::ReleaseValue, 7, 24, 7},
    {F::ReleaseLock, 7, 16, 8},
    {F::AcquireOn, 7, 15, 1},
    {F::AcquireValue, 7, 8, 7},
    {F::AcquireLock, 7, 0, 8},
};

constexpr Bits kShim[] = {
    {F::Length, 0, 0, 32},        {F::Base, 1, 2, 30},          {F::Base, 2, 0, 16, 30},
    {F::PacketOn, 2, 30, 1},      {F::OutOfOrder, 2, 24, 6},    {F::PacketId, 2, 19, 5},
    {F::PacketType, 2, 16, 3},    {F::Wrap0, 3, 20, 10},        {F::Step0, 3, 0, 20},
    {F::Burst, 4, 30, 2},         {F::Wrap1, 4, 20, 10},        {F::Step1, 4, 0, 20},
    {F::Axi, 5, 20, 12},          {F::Step2, 5, 0, 20},         {F::IterationCurrent, 6, 26, 6},
    {F::IterationWrap, 6, 20, 6}, {F::IterationStep, 6, 0, 20}, {F::TlastOff, 7, 31, 1},
    {F::Next, 7, 27, 4},          {F::UseNext, 7, 26, 1},       {F::Valid, 7, 25, 1},
    {F::ReleaseValue, 7, 18, 7},  {F::ReleaseLock, 7, 13, 4},   {F::AcquireOn, 7, 12, 1},
    {F::AcquireValue, 7, 5, 7},   {F::AcquireLock, 7, 0, 4},
};

std::span<const Bits> bitsOf(TileKind kind) {
  switch (kind) {
  case TileKind::Core:
    return kCore;
  case TileKind::Memory:
    return kMemory;
  case TileKind::Shim:
    break;
  }
  return kShim;
}

/// How a value is stored: as it is, minus one, or as a two's complement.
enum class Coding : uint8_t { Plain, MinusOne, Signed };

Coding codingOf(F field) {
  switch (field) {
  case F::Step0:
  case F::Step1:
  case F::Step2:
  case F::Step3:
  case F::IterationStep:
  case F::IterationWrap:
    return Coding::MinusOne;
  case F::AcquireValue:
  case F::ReleaseValue:
    return Coding::Signed;
  default:
    return Coding::Plain;
  }
}

/// Of a field in all its words; 0 where BDs of that kind do not have it.
unsigned widthOf(TileKind kind, F field) {
  unsigned width = 0;
  for (const Bits &bits : bitsOf(kind))
    width += bits.field == field ? bits.width : 0;
  return width;
}

std::pair<int64_t, int64_t> rangeOf(unsigned width, F field) {
  int64_t count = int64_t(1) << width;
  switch (codingOf(field)) {
  case Coding::MinusOne:
    return {1, count};
  case Coding::Signed:
    return {-count / 2, count / 2 - 1};
  case Coding::Plain:
    break;
  }
  return {0, count - 1};
}

constexpr std::string_view kNames[kBdFields] = {"length",
                                                "base",
                                                "step of dim 0",
                                                "step of dim 1",
                                                "step of dim 2",
                                                "step of dim 3",
                                                "wrap of dim 0",
                                                "wrap of dim 1",
                                                "wrap of dim 2",
                                                "zeros before dim 0",
                                                "zeros before dim 1",
                                                "zeros before dim 2",
                                                "zeros after dim 0",
                                                "zeros after dim 1",
                                                "zeros after dim 2",
                                                "step of the iteration",
                                                "wrap of the iteration",
                                                "current iteration",
                                                "packet",
                                                "packet id",
                                                "packet type",
                                                "out of order id",
                                                "compression",
                                                "suppressed tlast",
                                                "use of the next BD",
                                                "next BD",
                                                "valid bit",
                                                "use of the acquired lock",
                                                "acquired value",
                                                "acquired lock",
                                                "released value",
                                                "released lock",
                                                "burst",
                                                "axi attributes"};

} // namespace

std::string_view nameOf(BdField field) { return kNames[static_cast<size_t>(field)]; }

Bd::Bd() {
  for (size_t i = 0; i < kBdFields; ++i)
    values[i] = codingOf(static_cast<F>(i)) == Coding::MinusOne;
}

std::optional<std::pair<int64_t, int64_t>> rangeOf(TileKind kind, BdField field) {
  unsigned width = widthOf(kind, field);
  return width ? std::optional(rangeOf(width, field)) : std::nullopt;
}

bool unverified(TileKind kind, BdField field) {
  bool iteration = field == F::IterationStep || field == F::IterationWrap || field == F::IterationCurrent;
  return field == F::OutOfOrder || field == F::Compress || (iteration && kind != TileKind::Memory);
}

std::vector<uint32_t> encode(TileKind kind, const Bd &bd, std::string &error) {
  const Bd empty;
  for (size_t i = 0; i < kBdFields; ++i) {
    F field = static_cast<F>(i);
    auto range = rangeOf(kind, field);
    if (range ? bd[field] >= range->first && bd[field] <= range->second : bd[field] == empty[field])
      continue;
    error = std::string(nameOf(field)) + " is " + std::to_string(bd[field]) + ", a BD of a " +
            std::string(nameOf(kind)) + " tile ";
    error += range ? "holds " + std::to_string(range->first) + " to " + std::to_string(range->second)
                   : std::string("has no such field");
    return {};
  }
  std::vector<uint32_t> words(kBdWords[static_cast<size_t>(kind)]);
  for (const Bits &bits : bitsOf(kind)) {
    uint64_t value = static_cast<uint64_t>(bd[bits.field] - (codingOf(bits.field) == Coding::MinusOne));
    words[bits.word] |= static_cast<uint32_t>((value >> bits.from & ((uint64_t(1) << bits.width) - 1)) << bits.lsb);
  }
  return words;
}

std::optional<Bd> decodeBd(TileKind kind, std::span<const uint32_t> words, std::string &error) {
  if (words.size() != kBdWords[static_cast<size_t>(kind)]) {
    error =
        "has " + std::to_string(words.size()) + " words, not " + std::to_string(kBdWords[static_cast<size_t>(kind)]);
    return std::nullopt;
  }
  std::vector<uint32_t> left(words.begin(), words.end());
  Bd bd;
  for (const Bits &bits : bitsOf(kind)) {
    uint64_t mask = (uint64_t(1) << bits.width) - 1, part = words[bits.word] >> bits.lsb & mask;
    left[bits.word] &= ~static_cast<uint32_t>(mask << bits.lsb);
    int64_t &value = bd[bits.field];
    switch (codingOf(bits.field)) {
    case Coding::MinusOne:
      value = static_cast<int64_t>(part) + 1;
      break;
    case Coding::Signed:
      value = static_cast<int64_t>(part << (64 - bits.width)) >> (64 - bits.width);
      break;
    case Coding::Plain:
      value |= static_cast<int64_t>(part << bits.from);
      break;
    }
  }
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i]) {
      error =
          "word " + std::to_string(i) + " sets bits that no field of a " + std::string(nameOf(kind)) + " tile's BD has";
      return std::nullopt;
    }
  return bd;
}

} // namespace dmx::aie
