//===- CoreProgram.cpp - checks and text of core programs -----------------===//
#include "CoreProgram.h"

#include <set>

namespace dmx::aie {
namespace {

constexpr size_t kDeepest = 8; ///< loops in loops

/// What is wrong with one instruction by itself.
std::string check(const Machine &machine, const Instruction &at, size_t count) {
  switch (at.op) {
  case CoreOp::Acquire:
  case CoreOp::Release:
    if (at.index >= 4 * kCoreLocks)
      return "names lock " + std::to_string(at.index) + " of " + std::to_string(4 * kCoreLocks);
    if (at.value < machine.smallestLock || at.value > machine.largestLock)
      return "has a lock value of " + std::to_string(at.value);
    return {};
  case CoreOp::Loop:
    return at.value < 1 ? "loops " + std::to_string(at.value) + " times" : std::string();
  case CoreOp::Address:
    return at.index >= kAddresses ? "names address register " + std::to_string(at.index) : std::string();
  case CoreOp::Scalar:
    return at.index >= kScalars ? "names scalar register " + std::to_string(at.index) : std::string();
  case CoreOp::Call:
    return at.index >= static_cast<size_t>(KernelId::Count)
               ? "calls kernel " + std::to_string(at.index) + ", which the library does not have"
               : std::string();
  case CoreOp::Jump:
    return at.value < 0 || static_cast<size_t>(at.value) >= count ? "jumps out of the program" : std::string();
  case CoreOp::LoopParameter:
  case CoreOp::EndLoop:
  case CoreOp::Halt:
  case CoreOp::CallUser: // Verify.cpp knows how many there are
    return {};
  case CoreOp::Count:
    break;
  }
  return "is none";
}

} // namespace

std::string_view nameOf(CoreOp op) {
  static constexpr std::string_view names[] = {"acquire", "release", "loop", "loop.parameter", "end",      "address",
                                               "scalar",  "call",    "jump", "halt",           "call.user"};
  return op < CoreOp::Count ? names[static_cast<size_t>(op)] : "none";
}

Tile neighbour(Tile core, Neighbour which) {
  switch (which) {
  case Neighbour::South:
    return {core.column, core.row - 1};
  case Neighbour::West:
    return {core.column - 1, core.row};
  case Neighbour::North:
    return {core.column, core.row + 1};
  case Neighbour::Own:
    break;
  }
  return core;
}

int64_t programBytes(const Machine &machine, const CoreProgram &program) {
  int64_t bytes = static_cast<int64_t>(program.code.size()) * machine.instructionBytes;
  bool called[static_cast<size_t>(KernelId::Count)] = {};
  std::set<int32_t> users;
  for (const Instruction &at : program.code)
    if (at.op == CoreOp::Call && at.index < static_cast<size_t>(KernelId::Count) && !called[at.index]) {
      called[at.index] = true;
      bytes += infoOf(static_cast<KernelId>(at.index)).programBytes;
    } else if (at.op == CoreOp::CallUser && users.insert(at.value).second) {
      bytes += kUserProgramBytes;
    }
  return bytes;
}

std::string check(const Machine &machine, const CoreProgram &program) {
  std::string where = "the program of core " + textOf(program.tile) + " ";
  if (!machine.has(program.tile) || machine.kindOf(program.tile.row) != TileKind::Core)
    return where + "is for a tile that is no core";
  if (program.code.empty() || (program.code.back().op != CoreOp::Halt && program.code.back().op != CoreOp::Jump))
    return where + "does not end";
  if (int64_t bytes = programBytes(machine, program), most = machine.tile(TileKind::Core).programBytes; bytes > most)
    return where + "takes " + std::to_string(bytes) + " bytes of program memory, there are " + std::to_string(most);
  std::vector<size_t> depth; // before each instruction
  size_t now = 0;
  for (size_t i = 0; i < program.code.size(); ++i) {
    const Instruction &at = program.code[i];
    std::string wrong = check(machine, at, program.code.size());
    depth.push_back(now);
    if (at.op == CoreOp::Loop || at.op == CoreOp::LoopParameter)
      wrong = ++now > kDeepest ? "is a loop too deep" : wrong;
    else if (at.op == CoreOp::EndLoop && now-- == 0)
      wrong = "ends no loop";
    else if ((at.op == CoreOp::Jump || at.op == CoreOp::Halt) && now)
      wrong = "leaves a loop";
    if (!wrong.empty())
      return where + "is not sound: instruction " + std::to_string(i) + " " + wrong;
  }
  for (const Instruction &at : program.code)
    if (at.op == CoreOp::Jump && depth[static_cast<size_t>(at.value)])
      return where + "jumps into a loop";
  return now ? where + "has a loop without an end" : std::string();
}

std::string textOf(const Instruction &at) {
  std::string text(nameOf(at.op)), index = std::to_string(at.index), value = std::to_string(at.value);
  switch (at.op) {
  case CoreOp::Acquire:
  case CoreOp::Release:
  case CoreOp::Address:
  case CoreOp::Scalar:
    return text + " " + index + ", " + value;
  case CoreOp::Loop:
  case CoreOp::LoopParameter:
  case CoreOp::Jump:
  case CoreOp::CallUser:
    return text + " " + value;
  case CoreOp::Call:
    return text + " " +
           (at.index < static_cast<size_t>(KernelId::Count) ? std::string(infoOf(static_cast<KernelId>(at.index)).name)
                                                            : index);
  default:
    return text;
  }
}

} // namespace dmx::aie
