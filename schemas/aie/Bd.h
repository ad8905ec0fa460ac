//===- Bd.h - buffer descriptors as register words, both ways ---*- C++ -*-===//
//
// A BD says what a DMA channel moves: where, how much, in which order, which lock it takes and gives, and which BD
// comes next. Its words are the device's registers; which bits hold what is one table a kind of tile (Bd.cpp). Verified
// against public expected words but for what `unverified` names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Machine.h"

#include <span>

namespace dmx::aie {

/// Fields of BDs of all kinds of tiles. Sizes and addresses are words of 4 bytes.
enum class BdField : uint8_t {
  Length, ///< words that it moves
  Base,   ///< of the tile's window (kOwnMemory is its own memory's begin); of a shim, address / 4
  Step0,  ///< of dim 0, the innermost; 1 where the dim is not used
  Step1,
  Step2,
  Step3,
  Wrap0, ///< extent of dim 0; 0 for the last dim, which ends with the length
  Wrap1,
  Wrap2,
  Before0, ///< zeros that MM2S puts before and behind the dim's words
  Before1,
  Before2,
  After0,
  After1,
  After2,
  IterationStep,    ///< added to the base each time that the BD runs
  IterationWrap,    ///< how often until it starts over, from 1
  IterationCurrent, ///< how often it has run
  PacketOn,
  PacketId,
  PacketType,
  OutOfOrder, ///< the BD that the other end shall use
  Compress,
  TlastOff, ///< the stream's end is not marked
  UseNext,
  Next,
  Valid,
  AcquireOn,
  AcquireValue, ///< -n waits until the lock is at least n and takes n; n waits for n and takes it
  AcquireLock,  ///< of the tile's window (kOwnLock)
  ReleaseValue, ///< added to the lock; 0 releases none
  ReleaseLock,
  Burst, ///< code of the burst's length
  Axi,   ///< smid, cache, qos
  Count
};
inline constexpr size_t kBdFields = static_cast<size_t>(BdField::Count);
std::string_view nameOf(BdField field);

/// Where a tile's own memory (in words) and locks begin in the numbers of its BDs, by kind.
inline constexpr int64_t kOwnMemory[kTileKinds] = {0, 0x20000, 0};
inline constexpr int64_t kOwnLock[kTileKinds] = {0, 64, 0};
/// Words of a BD.
inline constexpr size_t kBdWords[kTileKinds] = {8, 8, 6};

class Bd {
public:
  /// Moves nothing, not valid: all words 0.
  Bd();
  int64_t &operator[](BdField field) { return values[static_cast<size_t>(field)]; }
  int64_t operator[](BdField field) const { return values[static_cast<size_t>(field)]; }
  /// Of dims 0 to 3; a wrap of dim 3 is always 0.
  int64_t step(size_t dim) const { return values[static_cast<size_t>(BdField::Step0) + dim]; }
  int64_t wrap(size_t dim) const { return dim < 3 ? values[static_cast<size_t>(BdField::Wrap0) + dim] : 0; }
  int64_t before(size_t dim) const { return dim < 3 ? values[static_cast<size_t>(BdField::Before0) + dim] : 0; }
  int64_t after(size_t dim) const { return dim < 3 ? values[static_cast<size_t>(BdField::After0) + dim] : 0; }
  bool operator==(const Bd &) const = default;

private:
  std::array<int64_t, kBdFields> values;
};

/// The smallest and largest value of a field, nullopt where BDs of that kind do not have it.
std::optional<std::pair<int64_t, int64_t>> rangeOf(TileKind kind, BdField field);
/// Whether no public expected word covers the field.
bool unverified(TileKind kind, BdField field);

/// The words of a BD; none, and which field why, where a value does not fit.
std::vector<uint32_t> encode(TileKind kind, const Bd &bd, std::string &error);
/// The BD of kBdWords words; nullopt where bits are set that no field has.
std::optional<Bd> decodeBd(TileKind kind, std::span<const uint32_t> words, std::string &error);

} // namespace dmx::aie
