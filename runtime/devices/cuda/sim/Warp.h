//===- Warp.h - 32 threads and what an instruction does to them -*- C++ -*-===//
#pragma once

#include "Memory.h"
#include "clock/Costs.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dmxrt::cuda {

inline constexpr uint32_t kLanes = 32, kAllLanes = ~0u;

struct Op;
class Block;

/// Why an instruction could not be done yet.
struct Wait {
  enum Kind : uint8_t { None, Phase, Round, Stores, Registers, Cluster } kind = None;
  uint64_t what = 0;   ///< the mbarrier's address; the named barrier; stores that may be left; registers of a thread
  uint32_t parity = 0; ///< of the phase
};

/// What the threads of a warp have. A slot is a register, a constant, a parameter or a special register, of 64 bits a
/// lane, of which those beyond its type's are zero; predicates are bits of lanes.
struct Warp {
  using Slot = uint64_t[kLanes];

  Slot *slots = nullptr;
  uint32_t *written = nullptr;    ///< lanes, of each slot
  uint32_t *predicates = nullptr; ///< lanes, of each predicate
  uint32_t *predicateWritten = nullptr;
  uint32_t active = 0;      ///< lanes that the instruction is done for
  uint32_t firstThread = 0; ///< of the launch
  Memory *memory = nullptr;
  std::byte *local = nullptr; ///< of the first lane
  uint64_t localBytes = 0;    ///< of each
  std::string fault;          ///< "check: what", where an instruction failed
  uint32_t faultLane = 0;
  uint32_t regionHint = 0; ///< where the last access was
  uint32_t owner = 0;      ///< who accesses global memory, for Memory::Access
  Block *block = nullptr;
  uint32_t number = 0; ///< in the block
  uint32_t live = 0;   ///< lanes that have not ended
  /// Set by an instruction that cannot be done yet: it is tried again when something has happened. What it left in
  /// `ticket` it finds there again; 0 the first time.
  Wait wait;
  uint64_t ticket = 0;
  /// Of each register: how often wgmma.fence had been done when something was put into it last.
  uint32_t *stamps = nullptr;
  uint32_t fences = 1;
  /// How many wgmma that are not done yet have a register, by register; null where none is there at all.
  uint32_t *flying = nullptr;
  bool anyFlying = false;

  bool fail(uint32_t lane, std::string what) {
    fault = std::move(what);
    faultLane = lane;
    return false;
  }
};

/// Does an instruction for a warp's active lanes; false: `fault` says why not.
using Step = bool (*)(Warp &, const Op &);

/// Which memory an address is of.
enum MemorySpace : uint8_t { GenericSpace, GlobalSpace, SharedSpace, ClusterSpace };

struct Op {
  enum Flow : uint8_t { Next, Branch, Indexed, Exit }; ///< Indexed: one of Program::branchLists, by the first source
  /// Which lanes have to come to it together: any; all of the warp that have not ended; those of the mask that the last
  /// source is.
  enum Meeting : uint8_t { Alone, Whole, Masked };
  Step step = nullptr;
  Flow flow = Next;
  Meeting meeting = Alone;
  uint8_t space = 0; ///< of an address: MemorySpace
  bool guardNot = false, signExtends = false, isConstant = false;
  uint8_t sources = 0, results = 0, bytes = 0, wideBytes = 0; ///< of memory; of a register that is loaded
  int32_t guard = -1;                                         ///< predicate
  uint32_t line = 0, target = 0;                              ///< of a branch: number of an op
  uint32_t source[9] = {}, result[4] = {};                    ///< slots
  int32_t predicateSource[2] = {-1, -1}, predicateResult = -1;
  int64_t offset = 0;     ///< of an address
  int64_t offset2 = 0;    ///< of another one
  uint32_t immediate = 0; ///< of those that have a number of their own; an index into one of Program's lists
  InstructionCost cost;   ///< for the clock
  bool isShared() const { return space == SharedSpace || space == ClusterSpace; }
};

template <typename T> T fromBits(uint64_t bits) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(bits);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(static_cast<uint32_t>(bits));
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<T>(static_cast<uint16_t>(bits));
  else
    return std::bit_cast<T>(static_cast<uint8_t>(bits));
}

template <typename T> uint64_t toBits(T value) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<uint64_t>(value);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<uint16_t>(value);
  else
    return std::bit_cast<uint8_t>(value);
}

/// Calls each(lane) for those that are active.
template <typename Each> void forLanes(uint32_t active, Each each) {
  if (active == kAllLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      each(lane);
    return;
  }
  for (; active; active &= active - 1)
    each(static_cast<uint32_t>(std::countr_zero(active)));
}

} // namespace dmxrt::cuda
