//===- Printer.cpp - instructions and images as text ----------------------===//

#include "Assembler.h"
#include "Text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace dmx::corsair {
namespace text {

std::string_view nameOf(Rule rule) {
  constexpr std::string_view kNames[] = {"strided", "gather", "scatter", "window"};
  return kNames[static_cast<int>(rule)];
}

std::string_view nameOf(Scope scope) {
  constexpr std::string_view kNames[] = {"queues", "quad", "chiplet", "card"};
  return kNames[static_cast<int>(scope)];
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", c);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

KeyForm formOf(ConfigKey key) {
  using K = ConfigKey;
  switch (key) {
  case K::Kind:
  case K::To:
  case K::IndexKind:
  case K::ActKind:
  case K::WeightKind:
  case K::DKind:
  case K::AKind:
  case K::BKind:
  case K::CKind:
    return KeyForm::Kind;
  case K::ImgMem:
  case K::DMem:
  case K::AMem:
  case K::BMem:
  case K::CMem:
    return KeyForm::Memory;
  default:
    return KeyForm::Number;
  }
}

std::string printList(const std::vector<int64_t> &values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i)
    out += (i ? "," : "") + std::to_string(values[i]);
  return out + "]";
}

} // namespace text

namespace {

using namespace text;

std::string hex(int64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, value < 0 ? "-0x%llx" : "0x%llx",
                static_cast<unsigned long long>(value < 0 ? 0 - static_cast<uint64_t>(value) : value));
  return buffer;
}

/// The shortest decimal that reads back to the same bits; else the bits.
std::string printFloat(int64_t base) {
  auto bits = static_cast<uint32_t>(base);
  auto value = std::bit_cast<float>(bits);
  char buffer[40];
  if (std::isfinite(value))
    return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  std::snprintf(buffer, sizeof buffer, "0x%08x", bits);
  return buffer;
}

std::string printBase(const FieldInfo &field, int64_t base, const Image *image) {
  switch (field.kind) {
  case FieldKind::Address:
  case FieldKind::Mask:
    return hex(base);
  case FieldKind::Float:
    return printFloat(base);
  case FieldKind::Memory:
    return std::string(nameOf(static_cast<Memory>(base)));
  case FieldKind::Function:
    return std::string(nameOf(static_cast<SimdFunction>(base)));
  case FieldKind::Rule:
    return std::string(nameOf(static_cast<Rule>(base)));
  case FieldKind::Scope:
    return std::string(nameOf(static_cast<Scope>(base)));
  case FieldKind::Label:
    return image ? quote(image->marks[base]) : std::to_string(base);
  case FieldKind::CpuFunction:
    return image ? "@" + image->functions[base].name : std::to_string(base);
  default:
    return std::to_string(base);
  }
}

std::string printTerm(const Term &term) {
  std::string source = "Q";
  if (term.source < kTermRegister)
    source = "L" + std::to_string(term.source - kTermLoop);
  else if (term.source < kTermQuad)
    source = "R" + std::to_string(term.source - kTermRegister);
  return "+" + source + (term.scale == 1 ? "" : "*" + std::to_string(term.scale));
}

std::string printKey(ConfigKey key, int64_t value) {
  switch (formOf(key)) {
  case KeyForm::Kind:
    return std::string(nameOf(static_cast<ElemKind>(value)));
  case KeyForm::Memory:
    return std::string(nameOf(static_cast<Memory>(value)));
  case KeyForm::Number:
    break;
  }
  return std::to_string(value);
}

} // namespace

InstructionText textOf(const Instruction &in, const Image *image) {
  const InstructionInfo &info = in.info();
  InstructionText out{info.name, {}};
  size_t first = 0;
  if (in.opcode == Opcode::Move) {
    out.mnemonic += "_" + printBase(info.fields[0], in.operands[0].base, image) + "2" +
                    printBase(info.fields[1], in.operands[1].base, image);
    first = 2;
  }
  for (size_t i = first; i < info.fields.size(); ++i) {
    const Operand &operand = in.operands[i];
    bool isName = image && (info.fields[i].kind == FieldKind::Label || info.fields[i].kind == FieldKind::CpuFunction);
    if (operand.base == info.fields[i].byDefault && operand.terms.empty() && !isName)
      continue;
    std::string value = printBase(info.fields[i], operand.base, image);
    for (const Term &term : operand.terms)
      value += printTerm(term);
    out.fields.emplace_back(info.fields[i].name, std::move(value));
  }
  for (auto [key, value] : in.config)
    out.fields.emplace_back(findConfigKey(key)->name, printKey(key, value));
  return out;
}

std::string InstructionText::line() const {
  std::string out = mnemonic;
  for (const auto &[name, value] : fields)
    out += " " + name + "=" + value;
  return out;
}

std::string print(const Argument &argument) {
  std::string out = "  .argument " + quote(argument.name) + " " + std::string(nameOf(argument.role)) + " " +
                    std::string(nameOf(argument.type)) + " shape=" + printList(argument.shape) +
                    " form=" + std::string(nameOf(argument.form));
  if (!argument.perm.empty())
    out += " perm=" + printList({argument.perm.begin(), argument.perm.end()});
  if (argument.role == Role::Scalar)
    out += " reg=" + std::to_string(argument.reg);
  out += "\n";
  for (const Piece &piece : argument.pieces) {
    out += "    .piece " + std::string(nameOf(piece.memory)) + " unit=" + std::to_string(piece.unit) +
           " addr=" + hex(static_cast<int64_t>(piece.address)) + " begin=" + printList(piece.begin) +
           " extent=" + printList(piece.extent);
    if (!piece.strides.empty())
      out += " strides=" + printList(piece.strides);
    out += "\n";
  }
  return out;
}

std::string print(const Launch &launch, const Image &image) {
  std::string out = "    .launch quad=" + std::to_string(launch.quad);
  for (size_t queue = 0; queue < launch.streams.size(); ++queue)
    if (launch.streams[queue] != kNoStream)
      out += " q" + std::to_string(queue) + "=" + image.streams[launch.streams[queue]].name;
  for (size_t i = 0; i < launch.registers.size(); ++i)
    if (launch.registers[i])
      out += " R" + std::to_string(i) + "=" + std::to_string(launch.registers[i]);
  return out + "\n";
}

namespace {

void printCode(std::string &out, const char *directive, const Code &code, const Image &image) {
  out += std::string(directive) + " " + code.name + "\n";
  size_t depth = 1;
  for (const Instruction &in : code.instructions) {
    depth -= in.opcode == Opcode::EndLoop;
    out += std::string(2 * depth, ' ') + textOf(in, &image).line() + "\n";
    depth += in.opcode == Opcode::Loop;
  }
}

void printProgram(std::string &out, const char *directive, const Program &program, const Image &image) {
  if (program.launches.empty())
    return;
  out += std::string("  ") + directive + "\n";
  for (const Launch &launch : program.launches)
    out += print(launch, image);
}

void printKernel(std::string &out, const Kernel &kernel, const Image &image) {
  out += ".kernel " + quote(kernel.name) + "\n  .footprint";
  for (int i = 0; i < kMemories; ++i)
    if (kernel.footprint.bytes[i])
      out += " " + std::string(nameOf(static_cast<Memory>(i))) + "=" +
             hex(static_cast<int64_t>(kernel.footprint.bytes[i]));
  out += "\n";
  if (kernel.repeatedMacs)
    out += "  .repeated_macs " + std::to_string(kernel.repeatedMacs) + "\n";
  for (const Argument &argument : kernel.arguments)
    out += print(argument);
  if (!kernel.dimRegisters.empty()) {
    std::vector<int64_t> list;
    for (uint32_t reg : kernel.dimRegisters)
      list.push_back(reg == kNoRegister ? -1 : int64_t(reg));
    out += "  .dims " + printList(list) + "\n";
  }
  printProgram(out, ".init", kernel.init, image);
  printProgram(out, ".main", kernel.main, image);
}

} // namespace

std::string print(const Instruction &instruction) { return textOf(instruction).line(); }

std::string disassemble(const Image &image) {
  std::string out = "; machine " + image.machine.name + "\n";
  for (const std::string &mark : image.marks)
    out += ".mark " + quote(mark) + "\n";
  for (const Code &code : image.functions)
    printCode(out, ".function", code, image);
  for (const Code &code : image.streams)
    printCode(out, ".stream", code, image);
  for (const Kernel &kernel : image.kernels)
    printKernel(out, kernel, image);
  return out;
}

} // namespace dmx::corsair
