//===- Buffers.h - ranges of the device's memories --------------*- C++ -*-===//
#pragma once

#include "../encode/DlirWriter.h"

#include "schemas/corsair/Image.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

#include <optional>
#include <string>
#include <vector>

namespace dmxc::corsair {

namespace hw = dmx::corsair;

/// A range of one memory, at the same address in each unit of it. Temporaries are packed by the tasks they are live in;
/// permanent buffers keep their bytes from run to run, so those of all kernels of an image lie side by side.
struct Buffer {
  hw::Memory memory = hw::Memory::GM;
  int64_t size = 0; ///< bytes
  mlir::Value value;
  int first = -1, last = -1; ///< tasks, both included; -1: not used
  bool permanent = false;    ///< weights, tables and states
  int64_t address = -1;      ///< set by the placement

  /// A memory of the arrays or of the vector device as a whole: products keep their own order there.
  bool isUnit() const {
    return memory == hw::Memory::IB || memory == hw::Memory::WB || memory == hw::Memory::OB ||
           memory == hw::Memory::SIMD;
  }
};

/// A byte address: offset in a buffer plus affine terms; or a number alone.
struct Address {
  int buffer = -1; ///< -1: none
  int64_t offset = 0;
  llvm::SmallVector<hw::Term, 2> terms;

  Address plus(int64_t bytes) const {
    Address result = *this;
    result.offset += bytes;
    return result;
  }
  Address plus(hw::Term term) const;
  /// As far from `to` as this place is from `origin`.
  Address from(const Address &origin, const Address &to) const;
  /// Adds scale * (counter of the loop at `depth`).
  Address plusLoop(int depth, int64_t scale) const { return plus(hw::loopTerm(depth, scale)); }
  /// Adds scale * (number of the quad).
  Address plusQuad(int64_t scale) const { return plus(hw::quadTerm(scale)); }
};

/// Bytes of each memory, in every unit of it.
using MemoryUse = std::array<int64_t, hw::kMemories>;
/// The first memory that is too small.
std::optional<hw::Memory> exceeded(const MemoryUse &used, const hw::Machine &machine);

/// All buffers of a kernel.
class Buffers {
public:
  Buffers(DlirWriter &writer, const hw::Machine &machine);
  /// `name` is made unique by a number.
  int add(hw::Memory memory, llvm::StringRef name, int64_t size, bool permanent = false);
  /// The memory of the arrays as one buffer.
  int unit(hw::Memory memory);
  Buffer &operator[](int id) { return all[id]; }
  const Buffer &operator[](int id) const { return all[id]; }
  /// Notes a use by a task.
  void touch(int id, int task);
  /// Gives the buffers that stay their addresses, `used` bytes of each memory being taken already, and adds theirs.
  void placePermanent(MemoryUse &used);
  /// Gives the temporaries addresses from `used` on; returns the bytes in use with them.
  MemoryUse placeTemporaries(const MemoryUse &used);
  /// Buffers of a memory without which the others have room at every task, in bytes: the largest where most is needed.
  std::vector<int> inTheWay(hw::Memory memory, int64_t room) const;
  /// Buffers of a memory that stay.
  std::vector<int> permanentIn(hw::Memory memory) const;
  /// Writes the addresses, and drops buffers that nothing uses.
  void finish();

private:
  DlirWriter &writer;
  const hw::Machine &machine;
  std::vector<Buffer> all;
  llvm::StringSet<> names;
};

} // namespace dmxc::corsair
