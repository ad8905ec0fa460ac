//===- SharedMemory.h - a block's shared memory, and who touched it -*- C++ -*-===//
//
// Of each word of 4 bytes it is known who wrote it last, and when each actor read it last; wgmma and bulk stores read
// in rows of 16 bytes. An access that is not ordered behind those that it conflicts with is an error, whether or not it
// did harm in this run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Order.h"

#include <cstddef>

namespace dmxrt::cuda {

/// Where shared memory begins in its own addresses: what lies before is the system's.
inline constexpr uint64_t kSharedBegin = 1024;
/// Generic addresses of shared memory, and of tensor maps among the parameters: nowhere near the host's.
inline constexpr uint64_t kSharedWindow = uint64_t(5) << 60, kMapWindow = uint64_t(6) << 60, kWindowBytes = 1 << 24;

class SharedMemory {
public:
  /// Bytes from kSharedBegin to `end`, none of them written.
  void reset(uint64_t end, const Actors &actors, bool checks);

  std::byte *at(uint64_t address) { return bytes.data() + address; }
  bool holds(uint64_t address, uint64_t count) const {
    return address >= kSharedBegin && count <= bytes.size() && address <= bytes.size() - count;
  }

  // Each returns "" or what is wrong, beginning with the check's name. `who` is the one whose knowledge counts.
  /// Instructions of a warp.
  std::string read(uint64_t address, uint64_t count, uint32_t warp, const Knowledge &who);
  std::string write(uint64_t address, uint64_t count, uint32_t warp, const Knowledge &who);
  /// wgmma or a bulk store, from its issue on: 16 bytes, or a multiple, at a multiple of 16.
  std::string readAsync(uint64_t address, uint64_t count, uint32_t actor, uint32_t tick, const Knowledge &who);
  /// The same, quickly; false where `readAsync` has to look at it, and nothing is done.
  bool readSettled(uint64_t address, uint64_t count, uint32_t actor, uint32_t tick, const Knowledge &who) {
    if (checks && (!isSettled(address / kWord, count / kWord, who, true) || reads[actor].empty()))
      return readAsync(address, count, actor, tick, who).empty();
    for (uint64_t row = address / kRow; checks && row < (address + count) / kRow; ++row)
      reads[actor][row] = tick;
    return true;
  }
  /// A bulk load is issued: until `land` nobody may touch the bytes.
  std::string fly(uint64_t address, uint64_t count, const Knowledge &who);
  /// 16 bytes of it have come, laid out with a swizzle of `span` bytes.
  void land(uint64_t address, uint32_t actor, uint32_t tick, uint32_t span);
  /// Whether what a bulk load left there, if one did, was laid out with another swizzle.
  bool isLaidOtherwise(uint64_t address, uint64_t count, uint32_t span) const {
    for (uint64_t row = address / kRow; checks && row < (address + count) / kRow; ++row)
      if (spans[row] && spans[row] != span + 1)
        return true;
    return false;
  }
  /// An mbarrier's 8 bytes, which no other instruction may touch while it is one.
  void setBarrier(uint64_t address, bool isBarrier);

private:
  static constexpr Epoch kFlying = ~Epoch(0), kBarrier = kFlying - 1;
  static constexpr uint32_t kWord = 4, kRow = 16;

  std::string problemOf(uint64_t word, std::string_view verb, const Knowledge &who, bool isAsync) const;
  std::string problemOfReaders(uint64_t first, uint64_t count, const Knowledge &who) const;
  std::string checkRead(uint64_t first, uint64_t count, const Knowledge &who, bool isAsync);
  std::string checkWrite(uint64_t first, uint64_t count, const Knowledge &who, bool isAsync);
  std::vector<uint32_t> &readsOf(uint32_t actor);
  /// Whether all words were written, and who accesses them has seen it.
  bool isSettled(uint64_t first, uint64_t count, const Knowledge &who, bool isAsync);

  std::vector<std::byte> bytes;
  bool checks = true;
  Actors actors;
  std::vector<Epoch> writers; ///< by word
  std::vector<uint8_t> spans; ///< by row: of the swizzle that a bulk load laid it out with, + 1; 0: something else did
  /// What was settled last, and for whom: mostly what comes next is of the same write. Who knows never forgets.
  struct {
    const Knowledge *who = nullptr;
    bool isAsync = false;
    Epoch writer = 0;
  } settled;
  std::vector<uint32_t> readers; ///< actors that read at all
  /// By actor, where it read at all: the tick of its last read of each word, or of each row where it is none of a warp.
  std::vector<std::vector<uint32_t>> reads;
};

inline bool SharedMemory::isSettled(uint64_t first, uint64_t count, const Knowledge &who, bool isAsync) {
  Epoch known = settled.who == &who && settled.isAsync == isAsync ? settled.writer : 0;
  for (uint64_t word = first; word < first + count; ++word) {
    Epoch writer = writers[word];
    if (writer == known && known)
      continue;
    uint32_t actor = actorOf(writer), tick = tickOf(writer);
    if (writer == 0 || writer >= kBarrier || who.seen[actor] < tick ||
        (isAsync && actors.isWarp(actor) && who.fenced[actor] < tick))
      return false;
    known = writer;
  }
  settled = {&who, isAsync, known};
  return true;
}

} // namespace dmxrt::cuda
