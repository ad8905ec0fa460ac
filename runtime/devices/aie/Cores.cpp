//===- Cores.cpp - cores run their programs -------------------------------===//
#include "Array.h"

#include <cstring>

namespace dmxrt::aie {

using hw::CoreOp;

/// The instruction behind the end of a loop of a program that hw::check accepts.
static size_t behindLoop(const hw::CoreProgram &program, size_t at) {
  for (int depth = 0;; ++at) {
    CoreOp op = program.code[at].op;
    depth += (op == CoreOp::Loop || op == CoreOp::LoopParameter) - (op == CoreOp::EndLoop);
    if (depth == 0)
      return at + 1;
  }
}

bool Array::step(Core &core) {
  if (!core.enabled || core.halted || now < core.freeAt)
    return false;
  const hw::Instruction &at = core.program->code[core.at];
  core.thread.position = static_cast<uint32_t>(core.at);
  core.waiting = false;
  if (!execute(core, at)) {
    core.waiting = true;
    return false;
  }
  ++core.instructions;
  const bool isSkewed = at.op == CoreOp::Acquire || at.op == CoreOp::Call;
  core.freeAt = std::max(core.freeAt, now + 1 + (isSkewed ? skew(kCoreSkew) : 0));
  return true;
}

/// False where it has to wait, or the core does not reach the lock.
bool Array::useLock(Core &core, const hw::Instruction &at) {
  Lock *lock = lockOf(core, at.index);
  if (!lock)
    return false;
  if (at.op == CoreOp::Acquire) {
    if (!lock->admits(at.value))
      return false;
    lock->take(at.value, core.thread.now);
    return true;
  }
  lock->give(at.value, core.thread.now);
  core.thread.advance();
  if (lock->value() > machine.largestLock || lock->value() < machine.smallestLock)
    fail("lock-overflow", cat("core ", hw::textOf(core.tile), " makes lock ", at.index, " ", lock->value()));
  return true;
}

/// False where it has to wait, or something is wrong.
bool Array::execute(Core &core, const hw::Instruction &at) {
  size_t next = core.at + 1;
  switch (at.op) {
  case CoreOp::Acquire:
  case CoreOp::Release:
    if (!useLock(core, at))
      return false;
    break;
  case CoreOp::Loop:
    core.loops.emplace_back(next, at.value);
    break;
  case CoreOp::LoopParameter: {
    std::byte *word = access(core, at.value, 4, false);
    if (!word)
      return false;
    int32_t times = 0;
    std::memcpy(&times, word, 4);
    if (times < 0) {
      fail("parameter",
           cat("core ", hw::textOf(core.tile), " is to loop ", times, " times, as the word at ", at.value, " says"));
      return false;
    }
    if (times == 0)
      next = behindLoop(*core.program, core.at);
    else
      core.loops.emplace_back(next, times);
    break;
  }
  case CoreOp::EndLoop:
    if (--core.loops.back().second > 0)
      next = core.loops.back().first;
    else
      core.loops.pop_back();
    break;
  case CoreOp::Address:
    core.arguments.addresses[at.index] = static_cast<uint32_t>(at.value);
    break;
  case CoreOp::Scalar:
    core.arguments.scalars[at.index] = at.value;
    break;
  case CoreOp::Call:
    if (!call(core, static_cast<hw::KernelId>(at.index)))
      return false;
    break;
  case CoreOp::CallUser:
    if (!callUser(core, static_cast<uint32_t>(at.value)))
      return false;
    break;
  case CoreOp::Jump:
    next = static_cast<size_t>(at.value);
    break;
  default:
    core.halted = true;
    next = core.at;
  }
  core.at = next;
  return fault.empty();
}

bool Array::call(Core &core, hw::KernelId kernel) {
  hw::Call call = core.arguments;
  call.kernel = kernel;
  std::string why, where = cat("core ", hw::textOf(core.tile), ", instruction ", core.at, ": ");
  std::vector<hw::Touch> touched = hw::touches(call, why);
  if (touched.empty()) {
    fail("kernel-arguments", where + why);
    return false;
  }
  std::byte *bytes[hw::kAddresses] = {};
  for (size_t i = 0; i < touched.size(); ++i) {
    const hw::Touch &touch = touched[i];
    int64_t address = call.addresses[touch.address];
    if (address % machine.accessBytes) {
      fail("misaligned", cat(where, hw::infoOf(kernel).name, " takes ", hw::infoOf(kernel).addresses[touch.address],
                             " at ", address, ", which is no multiple of ", machine.accessBytes));
      return false;
    }
    for (bool write : {false, true})
      if (write ? touch.writes : touch.reads) {
        bytes[i] = access(core, address, touch.bytes, write);
        if (!bytes[i])
          return false;
      }
  }
  compute(call, bytes);
  auto clocks = static_cast<uint64_t>(hw::clocksOf(machine, call));
  mark(core.thread, now, now + clocks, std::string(hw::infoOf(kernel).name));
  core.freeAt = now + clocks + skew(kCoreSkew);
  core.busy += clocks;
  std::string_view kind = hw::macKind(kernel);
  (kind == "i32"  ? core.i32Macs
   : kind == "i8" ? core.i8Macs
                  : core.bf16Macs) += static_cast<uint64_t>(hw::macsOf(call));
  return true;
}

/// Bytes at an address as the core sees it; null, and a fault, where it sees none.
std::byte *Array::access(Core &core, int64_t address, int64_t bytes, bool write) {
  std::string where = cat("core ", hw::textOf(core.tile), ", instruction ", core.at), why;
  for (size_t side = 0; side < 4; ++side) {
    int64_t inside = address - hw::kCoreWindow[side];
    if (inside < 0 || inside >= hw::kWindowBytes)
      continue;
    TileState *tile = find(hw::neighbour(core.tile, static_cast<hw::Neighbour>(side)));
    if (!tile || tile->kind != TileKind::Core)
      break;
    std::byte *there = tile->memory->access(inside, bytes, write, core.thread.actor(), why);
    if (!there)
      fail(why.starts_with("race")  ? "race"
           : why.starts_with("out") ? "core-bounds"
                                    : "undefined-read",
           cat(where, ": ", why));
    return there;
  }
  fail("core-bounds", cat(where, ": no memory is at ", address));
  return nullptr;
}

/// The lock by a core's number for it; null, and a fault, where there is none.
Lock *Array::lockOf(const Core &core, uint32_t number) {
  TileState *tile = find(hw::neighbour(core.tile, static_cast<hw::Neighbour>(number / hw::kCoreLocks)));
  if (tile && tile->kind == TileKind::Core)
    return &tile->locks[number % hw::kCoreLocks];
  fail("core-bounds", cat("core ", hw::textOf(core.tile), ", instruction ", core.at, ": lock ", number,
                          " is of a tile that is no core"));
  return nullptr;
}

} // namespace dmxrt::aie
