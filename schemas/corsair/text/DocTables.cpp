//===- DocTables.cpp - the tables of ISA-tables.md ------------------------===//

#include "../Isa.h"
#include "Text.h"

namespace dmx::corsair {
namespace {

std::string typeOf(const FieldInfo &field) {
  constexpr const char *kNames[] = {"u",        "i",    "addr",  "mask", "register",     "token", "memory",
                                    "function", "rule", "scope", "f",    "cpu function", "label"};
  std::string name = kNames[static_cast<int>(field.kind)];
  bool sized = field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed || field.kind == FieldKind::Float ||
               field.kind == FieldKind::Mask;
  return name + (sized ? std::to_string(field.bits) : "") + (field.affine ? " affine" : "");
}

void instructionTables(std::string &out) {
  out += "## Instructions\n\n| opcode | name | group | does |\n|---|---|---|---|\n";
  constexpr char kDigits[] = "0123456789abcdef";
  for (const InstructionInfo &info : instructions()) {
    auto opcode = static_cast<uint8_t>(info.opcode);
    out += std::string("| 0x") + kDigits[opcode >> 4] + kDigits[opcode & 15] + " | " + info.name + " | " +
           std::string(nameOf(info.group)) + " | " + info.doc + " |\n";
  }
  out += "\n## Fields\n";
  for (const InstructionInfo &info : instructions()) {
    if (info.fields.empty())
      continue;
    out += std::string("\n### ") + info.name + "\n\n| field | type | default | meaning |\n|---|---|---|---|\n";
    for (const FieldInfo &field : info.fields)
      out += std::string("| ") + field.name + " | " + typeOf(field) + " | " + std::to_string(field.byDefault) + " | " +
             field.doc + " |\n";
  }
}

void keyTable(std::string &out, const char *title, uint8_t units) {
  out += std::string("\n### ") + title + "\n\n| key | number | default | meaning |\n|---|---|---|---|\n";
  for (const ConfigKeyInfo &key : configKeys()) {
    if (!(key.units & units))
      continue;
    std::string value = std::to_string(key.byDefault);
    if (text::formOf(key.key) == text::KeyForm::Kind)
      value = nameOf(static_cast<ElemKind>(key.byDefault));
    if (text::formOf(key.key) == text::KeyForm::Memory)
      value = nameOf(static_cast<Memory>(key.byDefault));
    out += std::string("| ") + key.name + " | " + std::to_string(static_cast<int>(key.key)) + " | " + value + " | " +
           key.doc + " |\n";
  }
}

} // namespace

std::string isaTablesMarkdown() {
  std::string out = "# Tables of the DMX ISA\n\nWritten by `dmx-isa-tables` from InstructionTable.cpp and "
                    "ConfigTable.cpp; do not edit. ISA.md has the "
                    "semantics.\n\n";
  instructionTables(out);
  auto bit = [](Unit unit) { return static_cast<uint8_t>(1u << static_cast<int>(unit)); };
  out += "\n## Configuration keys\n";
  keyTable(out, "GM and ST: moves; GM: EXTRACT, INSERT", bit(Unit::GM) | bit(Unit::ST));
  keyTable(out, "AC: MATMUL, CONV", bit(Unit::AC));
  keyTable(out, "SIMD: EXEC_SIMD", bit(Unit::SIMD));
  out += "\n## SIMD functions\n\n| name | number | operands |\n|---|---|---|\n";
  for (int i = 0; i < kSimdFunctions; ++i) {
    auto function = static_cast<SimdFunction>(i);
    out += "| " + std::string(nameOf(function)) + " | " + std::to_string(i) + " | " +
           std::to_string(operandCount(function)) + " |\n";
  }
  out += "\n## Element kinds\n\n| name | number | bytes | tile |\n|---|---|---|---|\n";
  for (int i = 0; i < kElemKinds; ++i) {
    auto kind = static_cast<ElemKind>(i);
    auto tile = tileOf(kind);
    out += "| " + std::string(nameOf(kind)) + " | " + std::to_string(i) + " | " +
           (elementBytes(kind) ? std::to_string(elementBytes(kind)) : "") + " | " +
           (tile ? "64 x " + std::to_string(tile->depth) + ", " + std::to_string(tile->bytes()) + " bytes" : "") +
           " |\n";
  }
  out += "\n## Legal moves\n\n| from | to | may convert |\n|---|---|---|\n";
  for (int i = 0; i < kMemories; ++i) {
    auto source = static_cast<Memory>(i);
    std::string converting;
    for (int k = 0; k < kMemories; ++k)
      if (mayConvert(source, static_cast<Memory>(k)))
        converting += (converting.empty() ? "" : ", ") + std::string(nameOf(static_cast<Memory>(k)));
    out += "| " + std::string(nameOf(source)) + " | " + legalDestinations(source) + " | " + converting + " |\n";
  }
  return out;
}

} // namespace dmx::corsair
