//===- Codec.cpp - instructions as bytes ----------------------------------===//
//
// ISA.md section 12. The decoder refuses everything the encoder would not have
// written (unknown numbers, padding that is not zero, terms out of order), so
// equal programs are equal bytes.
//
//===----------------------------------------------------------------------===//

#include "Isa.h"

#include <cassert>

namespace dmx::corsair {
namespace {

constexpr size_t kHeader = 4, kEntry = 12;

void put(std::vector<uint8_t> &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

uint64_t take(std::span<const uint8_t> bytes, size_t offset, int count) {
  uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= uint64_t(bytes[offset + i]) << (8 * i);
  return value;
}

size_t fieldBytes(const InstructionInfo &info) {
  size_t bytes = 0;
  for (const FieldInfo &field : info.fields)
    bytes += field.bits / 8;
  return (bytes + 3) / 4 * 4;
}

bool isSigned(const FieldInfo &field) {
  return field.kind == FieldKind::Signed || field.kind == FieldKind::Address || field.kind == FieldKind::Float;
}

int64_t extend(uint64_t value, const FieldInfo &field) {
  if (!isSigned(field) || field.bits == 64)
    return static_cast<int64_t>(value);
  int shift = 64 - field.bits;
  return static_cast<int64_t>(value << shift) >> shift;
}

std::string hex(uint64_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (; value || text.empty(); value >>= 4)
    text.insert(text.begin(), kDigits[value & 15]);
  return "0x" + text;
}

/// The 12-byte entries after the fields: terms or keys.
bool decodeEntries(std::span<const uint8_t> bytes, size_t offset, int count, Instruction &out, std::string &error) {
  const InstructionInfo &info = out.info();
  int64_t before = -1;
  for (int i = 0; i < count; ++i, offset += kEntry) {
    auto value = static_cast<int64_t>(take(bytes, offset + 4, 8));
    if (take(bytes, offset + 2, 2) != 0)
      return error = "padding is not zero", false;
    if (info.group == Group::Config) {
      auto number = static_cast<uint16_t>(take(bytes, offset, 2));
      const ConfigKeyInfo *key = findConfigKey(static_cast<ConfigKey>(number));
      if (!key || number <= before)
        return error =
                   key ? "configuration keys are not in order" : "unknown configuration key " + std::to_string(number),
               false;
      before = number;
      out.config.emplace_back(key->key, value);
      continue;
    }
    uint8_t field = bytes[offset], source = bytes[offset + 1];
    if (field >= info.fields.size())
      return error = "a term of field " + std::to_string(field) + ", which does not exist", false;
    int64_t order = int64_t(field) << 8 | source;
    if (order <= before || value == 0)
      return error = value ? "terms are not in order" : "a term with scale 0", false;
    before = order;
    out.operands[field].terms.push_back({source, value});
  }
  return true;
}

} // namespace

void encode(const Instruction &instruction, std::vector<uint8_t> &out) {
  const InstructionInfo &info = instruction.info();
  size_t entries = instruction.config.size();
  for (const Operand &operand : instruction.operands)
    entries += operand.terms.size();
  size_t start = out.size(), length = kHeader + fieldBytes(info) + entries * kEntry;
  assert(entries < 256 && instruction.operands.size() == info.fields.size());
  put(out, static_cast<uint8_t>(info.opcode), 1);
  put(out, entries, 1);
  put(out, length, 2);
  for (size_t i = 0; i < info.fields.size(); ++i)
    put(out, static_cast<uint64_t>(instruction.operands[i].base), info.fields[i].bits / 8);
  out.resize(start + kHeader + fieldBytes(info));
  for (size_t i = 0; i < instruction.operands.size(); ++i)
    for (const Term &term : instruction.operands[i].terms) {
      put(out, i, 1);
      put(out, term.source, 1);
      put(out, 0, 2);
      put(out, static_cast<uint64_t>(term.scale), 8);
    }
  for (const ConfigPair &pair : instruction.config) {
    put(out, static_cast<uint16_t>(pair.first), 2);
    put(out, 0, 2);
    put(out, static_cast<uint64_t>(pair.second), 8);
  }
}

std::optional<Instruction> decode(std::span<const uint8_t> bytes, size_t &offset, std::string &error) {
  auto bad = [&](std::string why) {
    error = "instruction at byte " + std::to_string(offset) + ": " + std::move(why);
    return std::nullopt;
  };
  if (bytes.size() < kHeader || offset > bytes.size() - kHeader)
    return bad("cut off");
  const InstructionInfo *info = findInstruction(bytes[offset]);
  if (!info)
    return bad("unknown opcode " + hex(bytes[offset]));
  int entries = bytes[offset + 1];
  size_t length = take(bytes, offset + 2, 2), fields = fieldBytes(*info);
  if (length != kHeader + fields + entries * kEntry)
    return bad(std::string(info->name) + " has length " + std::to_string(length) + " instead of " +
               std::to_string(kHeader + fields + entries * kEntry));
  if (length > bytes.size() - offset)
    return bad("cut off");
  Instruction out(info->opcode);
  size_t at = offset + kHeader;
  for (size_t i = 0; i < info->fields.size(); ++i) {
    int size = info->fields[i].bits / 8;
    out.operands[i].base = extend(take(bytes, at, size), info->fields[i]);
    at += size;
  }
  for (; at < offset + kHeader + fields; ++at)
    if (bytes[at])
      return bad("padding is not zero");
  std::string why;
  if (!decodeEntries(bytes, at, entries, out, why))
    return bad(std::string(info->name) + ": " + why);
  offset += length;
  return out;
}

} // namespace dmx::corsair
