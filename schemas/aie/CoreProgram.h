//===- CoreProgram.h - what a core runs -------------------------*- C++ -*-===//
//
// There is no back end for the cores' own instructions, so a core runs a program of this small documented form: it
// takes and gives locks, loops, and calls kernels of the library. The inside of a core is a model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Kernels.h"

namespace dmx::aie {

enum class CoreOp : uint8_t {
  Acquire,       ///< `index`: lock; `value`: -n waits for at least n and takes n, n waits for n and takes it
  Release,       ///< `index`: lock; `value`: what is added
  Loop,          ///< `value`: how often, at least once, up to EndLoop
  LoopParameter, ///< `value`: address of the word that says how often, maybe not at all
  EndLoop,
  Address, ///< argument register `index` of addresses
  Scalar,  ///< argument register `index` of scalars
  Call,    ///< `index`: KernelId; takes the argument registers, which stay
  Jump,    ///< `value`: number of the instruction
  Halt,
  CallUser, ///< `value`: number of a function of the image; takes the argument registers likewise
  Count
};
std::string_view nameOf(CoreOp op);
/// Bytes of program memory that a function of a user is counted as (assumed).
inline constexpr int64_t kUserProgramBytes = 4096;

/// 8 bytes: op | index << 8, value.
struct Instruction {
  CoreOp op = CoreOp::Halt;
  uint8_t index = 0;
  int32_t value = 0;
  bool operator==(const Instruction &) const = default;
};
struct CoreProgram {
  Tile tile;
  std::vector<Instruction> code;
  bool operator==(const CoreProgram &) const = default;
};

/// What addresses and locks of a core's own memory, and of its neighbours', begin with.
enum class Neighbour : uint8_t { South, West, North, Own };
inline constexpr uint32_t kCoreWindow[] = {0x40000, 0x50000, 0x60000, 0x70000}; ///< bytes, each 64 KiB
inline constexpr uint32_t kWindowBytes = 0x10000;
inline constexpr uint32_t kCoreLocks = 16; ///< of each side, in the same order
/// The tile that a side of a core is; it may be none of the machine's.
Tile neighbour(Tile core, Neighbour which);

/// Empty where the program is sound, else what is wrong.
std::string check(const Machine &machine, const CoreProgram &program);
/// Bytes of program memory that it is counted as (assumed).
int64_t programBytes(const Machine &machine, const CoreProgram &program);
std::string textOf(const Instruction &instruction);

} // namespace dmx::aie
