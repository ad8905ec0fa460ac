//===- Memory.h - what the threads of a launch may touch --------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dmxrt::cuda {

/// A range of the host's memory that the device sees at the same addresses.
struct MemoryRegion {
  enum Kind : uint8_t { Operand, Result, Scratch, Dims, StatusWord, Table };
  Kind kind = Operand;
  uint32_t number = 0; ///< of an Operand or a Result
  uintptr_t begin = 0;
  uint64_t bytes = 0;
  uint64_t share = 0, used = 0; ///< of a Scratch: bytes of each thread, and how many of them it may use
  /// Whether its bytes mean something before the launch: of a Result, that an operand or a state is there.
  bool filled = true;
  bool alone = true; ///< no other region has bytes of it
  /// Of each byte, who wrote and read it in this launch: the thread's number + 1; 0: nobody. Of regions that are
  /// written.
  std::vector<uint32_t> writers, readers;

  bool isWritten() const { return kind == Result || kind == Scratch || kind == Dims; }
  std::string name() const;
};

/// A thread's access, checked: "" or what is wrong with it, beginning with the check's name.
class Memory {
public:
  /// Regions that are written first: an operand may lie in a result.
  std::vector<MemoryRegion> regions;
  bool races = true;    ///< look for them
  bool byBlock = false; ///< what Access::owner is

  struct Access {
    uintptr_t address;
    uint32_t bytes; ///< up to 32
    uint32_t align;
    uint32_t thread;
    uint32_t owner; ///< who does it, for races: the thread, or its block where blocks share what they write
    bool isWrite = false, isConstant = false, isAtomic = false; ///< constant: promised that nobody writes there
  };
  /// `hint`: the region that was met last.
  bool check(const Access &access, uint32_t &hint, std::string &problem);
  /// The first byte of a result that nobody wrote.
  bool findUnwritten(std::string &problem) const;

private:
  bool record(MemoryRegion &region, const Access &access, std::string &problem);
  MemoryRegion *find(const Access &access, uint32_t &hint);
};

} // namespace dmxrt::cuda
