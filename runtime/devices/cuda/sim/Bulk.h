//===- Bulk.h - copies that a block's threads do not do themselves -*- C++ -*-===//
//
// TMA and plain bulk copies. Each lands in pieces, in an order and at times that the seed says: a load in shared
// memory, where its mbarrier counts the bytes; a store is read from there first and written to global memory later.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Barriers.h"
#include "Memory.h"
#include "schemas/cuda/TensorMap.h"

#include <map>

namespace dmxrt::cuda {

using dmx::cuda::TensorMap;

/// A byte's place in shared memory, where a box is laid out with a swizzle of `span` bytes: rows of 16 bytes of an
/// address change places within the span by the address's bits 7 and up (PTX ISA, tensor swizzling modes).
constexpr uint64_t swizzled(uint64_t address, uint32_t span) {
  uint64_t mask = span == 128 ? 7 : span == 64 ? 3 : span == 32 ? 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
}

struct BulkCopy {
  bool stores = false;
  bool isPlain = false; ///< cp.async.bulk, of no tensor: the map has rows of 16 bytes
  TensorMap map;
  int64_t at[dmx::cuda::kMostMapAxes] = {}; ///< coordinates of the box
  uint64_t shared = 0, barrier = 0;
  uint32_t warp = 0, thread = 0; ///< the issuer; thread of the launch
  uint32_t owner = 0;            ///< for Memory::Access
  uint32_t line = 0;
  // --- of the engine ---
  uint32_t tick = 0;                                 ///< of a store
  uint32_t group = 0;                                ///< of a store; kOpen: not committed
  bool isRead = false;                               ///< of a store
  std::vector<std::byte> room;                       ///< of a store: what was read
  std::vector<std::pair<uint32_t, uint32_t>> pieces; ///< rows that are left
};

class BulkEngine {
public:
  static constexpr uint32_t kOpen = UINT32_MAX;

  void reset(SharedMemory &shared, Barriers &barriers, Memory &memory, const Actors &actors);
  /// Takes a copy; "" or what is wrong with it.
  std::string start(BulkCopy copy, const Knowledge &who, uint64_t random);
  bool isIdle() const { return flying.empty(); }
  /// Does a bit of one copy; "" or what is wrong with it, then `faulty` is that copy.
  std::string land(uint64_t random);
  BulkCopy faulty;
  /// Times that somebody who waits for stores may look again.
  uint64_t events() const { return ended; }

  // --- groups of stores of a thread ---
  struct Groups {
    uint32_t committed = 0, waited = 0; ///< groups; of which the thread knows that they are read
    uint32_t open = 0;                  ///< stores of no group
    uint32_t line = 0;                  ///< of the last store
  };
  void commit(uint32_t thread);
  /// Whether at most `left` of its committed groups are not done, or with `read` not read yet. If so, it knows.
  bool wait(uint32_t thread, uint32_t left, bool read);
  /// Null: it never stored.
  const Groups *groupsOf(uint32_t thread) const;
  /// Up to which tick all stores of a warp are read.
  uint32_t readUpTo(uint32_t warp) const;
  const BulkCopy &first() const { return flying.front(); }
  /// Calls each(address, bytes) for the parts of a box's rows that are in the tensor.
  template <typename Each> static void forRows(const BulkCopy &copy, Each each) {
    uint64_t address = 0, skip = 0, bytes = 0;
    for (uint32_t row = 0; row < rows(copy); ++row)
      if (rowAddress(copy, row, address, skip, bytes))
        each(address, bytes);
  }

private:
  void cut(BulkCopy &copy, uint64_t random) const;
  std::string landRows(BulkCopy &copy, uint32_t begin, uint32_t end);
  std::string landRow(BulkCopy &copy, uint32_t row);
  static uint32_t rows(const BulkCopy &copy);
  static bool rowAddress(const BulkCopy &copy, uint32_t row, uint64_t &address, uint64_t &skip, uint64_t &bytes);

  SharedMemory *shared = nullptr;
  Barriers *barriers = nullptr;
  Memory *memory = nullptr;
  Actors actors;
  std::vector<BulkCopy> flying;
  std::map<uint32_t, Groups> groups; ///< by thread
  std::vector<uint32_t> issued;      ///< stores, by warp
  uint32_t hint = 0;
  uint64_t ended = 0;
};

} // namespace dmxrt::cuda
