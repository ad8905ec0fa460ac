//===- StreamBuilder.h - writing an instruction stream ----------*- C++ -*-===//
//
// Instructions of one queue with addresses that are not known yet: an address is a buffer and an
// offset, and the buffers get their places after the whole kernel is written (liveness needs all of it).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/corsair/Image.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <list>
#include <map>
#include <vector>

namespace dmxc::corsair {

namespace hw = dmx::corsair;

/// A range of one memory. Temporaries are packed by the steps they are live in; permanent buffers keep their bytes
/// from run to run, so those of all kernels of an image lie side by side.
struct Buffer {
  hw::Memory memory = hw::Memory::GM;
  int64_t size = 0;                ///< bytes in each unit of the memory
  int first = -1, last = -1;       ///< steps, both included; -1: not used yet
  bool permanent = false;          ///< weights and tables: written by init
  int64_t address = -1;            ///< set by the placement
};

/// A byte address: offset in a buffer plus affine terms.
struct Address {
  int buffer = -1; ///< -1: `offset` is absolute
  int64_t offset = 0;
  llvm::SmallVector<hw::Term, 2> terms;

  Address plus(int64_t bytes) const {
    Address result = *this;
    result.offset += bytes;
    return result;
  }
  /// Adds scale * (counter of the loop at `depth`).
  Address plusLoop(int depth, int64_t scale) const;
};

/// Bytes of each memory, in every unit of it.
using MemoryUse = std::array<int64_t, hw::kMemories>;
/// Names the memory that is too small and by how much.
std::optional<std::string> exceeds(const MemoryUse &used, const hw::Machine &machine);

/// All buffers of a kernel.
class Buffers {
public:
  int add(hw::Memory memory, int64_t size, bool permanent = false);
  Buffer &operator[](int id) { return all[id]; }
  const Buffer &operator[](int id) const { return all[id]; }
  size_t size() const { return all.size(); }
  /// Notes an access in the current step.
  void touch(int id);
  void nextStep() { ++step; }
  /// Gives the buffers that stay their addresses, `used` bytes of each memory being taken already, and adds theirs.
  void placePermanent(MemoryUse &used);
  /// Gives the temporaries addresses from `used` on; returns the bytes in use with them.
  MemoryUse placeTemporaries(const MemoryUse &used);

private:
  std::vector<Buffer> all;
  int step = 0;
};

/// One queue's code.
class StreamBuilder {
public:
  explicit StreamBuilder(Buffers &buffers) : buffers(buffers) {}

  /// Appends an instruction; the reference holds until the next one.
  hw::Instruction &emit(hw::Opcode opcode);
  /// Sets an address field of the last instruction.
  void address(std::string_view field, const Address &value);

  /// The slot that holds these keys; configures one when none does.
  int config(hw::Unit unit, std::vector<hw::ConfigPair> keys);

  /// A loop; `body` gets its depth, for Address::plusLoop. No trips: nothing.
  void loop(int64_t trips, llvm::function_ref<void(int depth)> body);

  /// Resolves the addresses and closes the stream.
  hw::Code finish(std::string name);

private:
  struct Fixup {
    size_t instruction;
    std::string field;
    Address value;
  };
  struct Slot {
    int number;
    std::vector<hw::ConfigPair> keys;
  };
  Buffers &buffers;
  std::vector<hw::Instruction> code;
  std::vector<Fixup> fixups;
  /// Configured slots of each unit, the most recently used first. A loop body uses fewer than 16 configurations, so
  /// none that it relies on is replaced inside it.
  std::map<hw::Unit, std::list<Slot>> slots;
  int depth = 0;
};

} // namespace dmxc::corsair
