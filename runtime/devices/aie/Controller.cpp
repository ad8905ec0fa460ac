//===- Controller.cpp - the control stream, and who waits for what --------===//
#include "Array.h"

namespace dmxrt::aie {
namespace {

using F = hw::BdField;
using Kind = hw::ControlOp::Kind;

constexpr uint32_t kSkew = 32;
constexpr size_t kMostCores = 16, kMostAtLocks = 24, kMostAtStreams = 12; ///< of those who wait, named

size_t wordsOf(const hw::ControlOp &op) {
  std::vector<uint32_t> words;
  hw::append(words, op);
  return words.size();
}

/// "lock 3 >= 1, which is 0"
std::string textOf(int64_t lock, int64_t acquired, int64_t value) {
  return cat("lock ", lock, acquired < 0 ? " >= " : " == ", acquired < 0 ? -acquired : acquired, ", which is ", value);
}

} // namespace

bool Array::stepController() {
  if (op == kernel.control.size() || now < controlFreeAt)
    return false;
  const hw::ControlOp &at = kernel.control[op];
  controller.position = static_cast<uint32_t>(op);
  if (!execute(at))
    return false;
  size_t words = wordsOf(at);
  controlWords += words;
  controlFreeAt = now + words * static_cast<uint64_t>(machine.controlClocks) + skew(kSkew);
  controlMovedAt = now;
  ++op;
  return true;
}

bool Array::execute(const hw::ControlOp &at) {
  auto address = static_cast<uint32_t>(at.address);
  switch (at.kind) {
  case Kind::Write:
    write(address, at.value, UINT32_MAX);
    return true;
  case Kind::MaskWrite:
    write(address, at.value, at.mask);
    return true;
  case Kind::BlockWrite:
    for (size_t i = 0; i < at.data.size(); ++i)
      write(address + static_cast<uint32_t>(4 * i), at.data[i], UINT32_MAX);
    return true;
  case Kind::Patch:
    patch(at);
    return true;
  case Kind::Sync:
    return sync(at);
  case Kind::Preempt:
  case Kind::Load:
    break;
  }
  return true; // hw::verify refuses them
}

/// Takes a token of each channel, or none.
bool Array::sync(const hw::ControlOp &at) {
  for (bool take : {false, true})
    for (uint32_t column = at.tile.column; column < at.tile.column + at.columns; ++column)
      for (uint32_t row = at.tile.row; row < at.tile.row + at.rows; ++row) {
        Channel &of = channel(*find({column, row}), at.direction, at.channel);
        Moment reached = controller.now;
        sim::Counter left = of.tokens;
        if (!left.take(1, reached))
          return false;
        if (take) {
          of.tokens = left;
          controller.now = reached;
        }
      }
  return true;
}

/// Puts an argument's address into a shim's BD, whose other fields stay.
void Array::patch(const hw::ControlOp &at) {
  auto address = static_cast<uint32_t>(at.address);
  uint64_t there = static_cast<uint64_t>(argumentAddress(at.argument)) + at.offset;
  write(address, static_cast<uint32_t>(there), UINT32_MAX & ~3u);
  write(address + 4, static_cast<uint32_t>(there >> 32), 0xffff);
}

std::string Array::waits(const Channel &channel) const {
  if (!channel.running)
    return {};
  std::string text = cat(nameOf(channel.thread.number), " waits in BD ", channel.bdNumber, " for ");
  if (!channel.acquired) {
    int64_t number = channel.bd[F::AcquireLock];
    auto *self = const_cast<Array *>(this); // looks only
    return text + textOf(number, channel.bd[F::AcquireValue], self->lockOf(*self->find(channel.tile), number)->value());
  }
  return text + cat(channel.direction == Direction::S2MM ? "" : "room for ", channel.left, " words");
}

std::string Array::waits() const {
  std::string text = op < kernel.control.size()
                         ? cat("the controller waits in op ", op, " (", hw::textOf(kernel.control[op]), ")")
                         : std::string("the control stream has ended");
  auto *self = const_cast<Array *>(this); // looks only
  size_t atCores = 0;
  for (const Core &core : cores)
    if (core.waiting && atCores++ < kMostCores) {
      const hw::Instruction &at = core.program->code[core.at];
      Tile of = hw::neighbour(core.tile, static_cast<hw::Neighbour>(at.index / hw::kCoreLocks));
      text += cat("; core ", hw::textOf(core.tile), " waits in instruction ", core.at, " for tile ", hw::textOf(of),
                  "'s ", textOf(at.index % hw::kCoreLocks, at.value, self->lockOf(core, at.index)->value()));
    }
  if (atCores > kMostCores)
    text += cat(" and so do ", atCores - kMostCores, " cores more");
  for (bool locks : {true, false}) {
    size_t named = 0;
    for (const Channel &channel : channels)
      if (channel.running && channel.acquired != locks && named++ < (locks ? kMostAtLocks : kMostAtStreams))
        text += "; " + waits(channel);
  }
  return text;
}

} // namespace dmxrt::aie
