//===- CoreAttention.h - attention by tensor cores --------------*- C++ -*-===//
//
// A block has rows of a group of heads, 64 for each of its warpgroups, and goes over the keys 64 at a time. What copies
// keys and values to a few slots in shared memory is ahead of what multiplies: one warp where tensor maps read both,
// else a warpgroup. A rule of the mask says which tiles of keys a block has at all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "FewQueries.h"

namespace dmxc::cuda {

struct CoreAttention {
  FewQueries few;
  int64_t warpgroups = 1, stages = 2;        ///< that multiply; slots
  std::shared_ptr<GemmProduct> keys, values; ///< whose right operands tensor maps read; null where threads copy
  dmir::MaskOp mask;                         ///< whose rule leaves out tiles of keys; null: all are looked at
  bool pairs = false; ///< a block has rows from both ends in turn, of which one has many keys where the other has few

  /// `usesRules`: whether keys are left out where a mask's rule says so.
  CoreAttention(const FewQueries &few, const RegionBody &body, const hw::Machine &machine, bool usesRules);
  /// The mask whose rule may say so: what it fills in weighs nothing beside a score, or that is looked after.
  static dmir::MaskOp leavesOut(const FewQueries &few);

  bool byMaps() const { return keys != nullptr; }
  double fill() const;
  /// Whether a block may have to look at keys that the rule leaves out: where a row sees none, or none above the number
  /// that replaces scores.
  bool looksAgain() const { return mask && std::isfinite(fill()); }
  int64_t blockRows() const { return warpgroups * dmx::cuda::kMmaRows; }
  /// Parts of a group's rows, and those that a block goes on from.
  Dim parts() const { return Dim::ceilDiv(few.groupRows(), blockRows()); }
  Dim firstParts() const { return pairs ? Dim::ceilDiv(parts(), 2) : parts(); }
  Dim blocks() const { return few.groups() * firstParts(); }
  int64_t consumers() const { return warpgroups * 128; }
  /// Threads that copy, and of these the ones that go over the keys: of tensor maps a warp is enough, but a warpgroup
  /// alone gives registers to others.
  int64_t copiers() const { return byMaps() && !movesRegisters() ? 32 : 128; }
  int64_t walkers() const { return byMaps() ? 32 : 128; }
  int64_t threads() const { return consumers() + copiers(); }
  bool movesRegisters() const { return warpgroups > 1; }
  /// Whether the scores of the tile that follows are multiplied while the softmax of this one is taken: registers are
  /// enough for both.
  static bool isAhead(const FewQueries &few) { return few.width <= 128; }

  // Shared memory: each warpgroup's queries, slots of keys and values, barriers, what warps tell each other.
  int64_t keyBytes() const { return few.slabs() * kSlabBytes; }
  int64_t valueBytes() const { return few.widthSlabs() * kSlabBytes; }
  int64_t slotBytes() const { return keyBytes() + valueBytes(); }
  int64_t slotsAt() const { return warpgroups * few.slabs() * kSlabBytes; }
  int64_t barriersAt() const { return slotsAt() + stages * slotBytes(); }
  int64_t votesAt() const { return barriersAt() + stages * 16; }
  int64_t sharedBytes() const { return votesAt() + consumers() / 32 * 4; }
  Launch launch() const;
  /// Rows and keys of tiles, as strategy::kTile has them.
  std::vector<int64_t> tile() const;

  /// 64 rows of 64 elements.
  static constexpr int64_t kSlabBytes = dmx::cuda::kMmaRows * dmx::cuda::kTileRowBytes,
                           kKeys = dmx::cuda::kTileRowElements;

private:
  void findMaps(const RegionBody &body);
};

void emitAttention(CudaBuilder &b, const RegionBody &body, const CoreAttention &attention);

} // namespace dmxc::cuda
