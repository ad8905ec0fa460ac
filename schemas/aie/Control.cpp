//===- Control.cpp - words of the control stream --------------------------===//
#include "Control.h"

#include <cstdio>

namespace dmx::aie {
namespace {

using Kind = ControlOp::Kind;
constexpr uint32_t kVersion = 0x0100; ///< 0.1, the form with opcodes in words of their own
constexpr size_t kHeaderWords = 4;

uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

/// Words of an op by its first ones; 0 where there is no such op, or not so many words.
size_t wordsOf(std::span<const uint32_t> at) {
  auto given = [&](size_t word) -> size_t { return at.size() > word && at[word] % 4 == 0 ? at[word] / 4 : 0; };
  switch (static_cast<Kind>(at[0] & 0xff)) {
  case Kind::Write:
    return 6;
  case Kind::BlockWrite:
    return given(3) > 4 ? given(3) : 0;
  case Kind::MaskWrite:
    return 7;
  case Kind::Preempt:
    return 1;
  case Kind::Load:
  case Kind::Sync:
    return 4;
  case Kind::Patch:
    return 12;
  }
  return 0;
}

ControlOp read(std::span<const uint32_t> at) {
  ControlOp op;
  op.kind = static_cast<Kind>(at[0] & 0xff);
  switch (op.kind) {
  case Kind::Write:
  case Kind::MaskWrite:
    op.address = at[2];
    op.value = at[4];
    op.mask = op.kind == Kind::MaskWrite ? at[5] : 0;
    break;
  case Kind::BlockWrite:
    op.tile = {at[1] & 0xff, at[1] >> 8 & 0xff};
    op.address = at[2];
    op.data.assign(at.begin() + 4, at.end());
    break;
  case Kind::Preempt:
    op.value = at[0] >> 8;
    break;
  case Kind::Load:
    op.value = at[0] >> 16;
    op.offset = at[1];
    op.address = uint64_t(at[3]) << 32 | at[2];
    break;
  case Kind::Sync:
    op.direction = at[2] & 1 ? Direction::MM2S : Direction::S2MM;
    op.tile = {at[2] >> 16 & 0xff, at[2] >> 8 & 0xff};
    op.rows = at[3] >> 8 & 0xff;
    op.columns = at[3] >> 16 & 0xff;
    op.channel = at[3] >> 24;
    break;
  case Kind::Patch:
    op.address = at[6];
    op.argument = at[8];
    op.offset = uint64_t(at[11]) << 32 | at[10];
    break;
  }
  return op;
}

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

} // namespace

std::string_view nameOf(Kind kind) {
  switch (kind) {
  case Kind::Write:
    return "write";
  case Kind::BlockWrite:
    return "blockwrite";
  case Kind::MaskWrite:
    return "maskwrite";
  case Kind::Preempt:
    return "preempt";
  case Kind::Load:
    return "load";
  case Kind::Sync:
    return "sync";
  case Kind::Patch:
    return "patch";
  }
  return "unknown";
}

ControlOp writeOp(uint32_t address, uint32_t value) {
  ControlOp op;
  op.address = address;
  op.value = value;
  return op;
}
ControlOp blockWriteOp(uint32_t address, std::vector<uint32_t> data) {
  ControlOp op;
  op.kind = Kind::BlockWrite;
  op.address = address;
  op.tile = tileOf(address);
  op.data = std::move(data);
  return op;
}
ControlOp maskWriteOp(uint32_t address, uint32_t value, uint32_t mask) {
  ControlOp op = writeOp(address, value);
  op.kind = Kind::MaskWrite;
  op.mask = mask;
  return op;
}
ControlOp syncOp(Tile tile, Direction direction, uint32_t channel) {
  ControlOp op;
  op.kind = Kind::Sync;
  op.tile = tile;
  op.direction = direction;
  op.channel = channel;
  return op;
}
ControlOp patchOp(uint32_t address, uint32_t argument, uint64_t offset) {
  ControlOp op = writeOp(address, 0);
  op.kind = Kind::Patch;
  op.argument = argument;
  op.offset = offset;
  return op;
}

ControlHeader headerOf(const Machine &machine) {
  return {machine.rows, machine.generation, machine.memoryRows, machine.columns};
}

void append(std::vector<uint32_t> &words, const ControlOp &op) {
  auto put = [&](std::initializer_list<uint32_t> list) { words.insert(words.end(), list); };
  uint32_t code = static_cast<uint32_t>(op.kind);
  switch (op.kind) {
  case Kind::Write:
    return put({code, 0, low(op.address), 0, op.value, 24});
  case Kind::BlockWrite:
    put({code, op.tile.row << 8 | op.tile.column, low(op.address), static_cast<uint32_t>(16 + 4 * op.data.size())});
    words.insert(words.end(), op.data.begin(), op.data.end());
    return;
  case Kind::MaskWrite:
    return put({code, 0, low(op.address), 0, op.value, op.mask, 28});
  case Kind::Preempt:
    return put({op.value << 8 | code});
  case Kind::Load:
    return put({op.value << 16 | code, low(op.offset), low(op.address), high(op.address)});
  case Kind::Sync:
    return put({code, 16, op.tile.column << 16 | op.tile.row << 8 | (op.direction == Direction::MM2S),
                op.channel << 24 | op.columns << 16 | op.rows << 8});
  case Kind::Patch:
    return put({code, 48, 0, 0, 0, 0, low(op.address), 0, op.argument, 0, low(op.offset), high(op.offset)});
  }
}

std::vector<uint32_t> encode(const ControlHeader &header, std::span<const ControlOp> ops) {
  std::vector<uint32_t> words = {header.rows << 24 | header.generation << 16 | kVersion,
                                 header.memoryRows << 8 | header.columns, static_cast<uint32_t>(ops.size()), 0};
  for (const ControlOp &op : ops)
    append(words, op);
  words[3] = static_cast<uint32_t>(4 * words.size());
  return words;
}

std::optional<std::vector<ControlOp>> decodeControl(std::span<const uint32_t> words, ControlHeader &header,
                                                    std::string &error) {
  if (words.size() < kHeaderWords || (words[0] & 0xffff) != kVersion || words[1] >> 16) {
    error = "the control stream has no header of version 0.1";
    return std::nullopt;
  }
  if (words[3] != 4 * words.size()) {
    error = "the control stream says that it has " + std::to_string(words[3]) + " bytes, it has " +
            std::to_string(4 * words.size());
    return std::nullopt;
  }
  header = {words[0] >> 24, words[0] >> 16 & 0xff, words[1] >> 8 & 0xff, words[1] & 0xff};
  std::vector<ControlOp> ops;
  std::vector<uint32_t> again;
  for (std::span<const uint32_t> rest = words.subspan(kHeaderWords); !rest.empty();) {
    std::string which = "op " + std::to_string(ops.size()) + " of the control stream ";
    size_t count = wordsOf(rest);
    if (count == 0 || count > rest.size()) {
      error = which + (count ? "ends behind the stream" : "has no known opcode or length: " + hex(rest[0]));
      return std::nullopt;
    }
    ControlOp op = read(rest.first(count));
    again.clear();
    append(again, op);
    if (!std::equal(again.begin(), again.end(), rest.begin(), rest.begin() + static_cast<ptrdiff_t>(count))) {
      error = which + "(" + std::string(nameOf(op.kind)) + ") sets bits that it does not have";
      return std::nullopt;
    }
    ops.push_back(std::move(op));
    rest = rest.subspan(count);
  }
  if (ops.size() != words[2]) {
    error = "the control stream says that it has " + std::to_string(words[2]) + " ops, it has " +
            std::to_string(ops.size());
    return std::nullopt;
  }
  return ops;
}

std::string textOf(const ControlOp &op) {
  std::string text(nameOf(op.kind));
  switch (op.kind) {
  case Kind::Write:
    return text + " " + hex(op.address) + " = " + hex(op.value);
  case Kind::MaskWrite:
    return text + " " + hex(op.address) + " = " + hex(op.value) + " mask " + hex(op.mask);
  case Kind::BlockWrite:
    text += " " + hex(op.address) + " =";
    for (uint32_t word : op.data)
      text += " " + hex(word);
    return text;
  case Kind::Preempt:
    return text + " level " + std::to_string(op.value);
  case Kind::Load:
    return text + " configuration " + std::to_string(op.value) + " of " + std::to_string(op.offset) + " bytes at " +
           hex(op.address);
  case Kind::Sync:
    return text + " " + textOf(op.tile) + " " + std::string(nameOf(op.direction)) + " " + std::to_string(op.channel) +
           " columns " + std::to_string(op.columns) + " rows " + std::to_string(op.rows);
  case Kind::Patch:
    return text + " " + hex(op.address) + " argument " + std::to_string(op.argument) + " + " +
           std::to_string(op.offset);
  }
  return text;
}

} // namespace dmx::aie
