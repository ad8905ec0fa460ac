//===- VerifyCode.cpp - what can be checked of code before a run ----------===//

#include "VerifyCode.h"

#include <algorithm>
#include <set>

namespace dmx::corsair {
namespace {

std::string str(int64_t value) { return std::to_string(value); }

/// Inclusive range of a field's base by its kind; labels and functions are
/// looked up in the image.
struct Range {
  int64_t min, max;
};

Range rangeOf(const FieldInfo &field, const Image &image) {
  auto below = [](size_t count) { return Range{0, static_cast<int64_t>(count) - 1}; };
  switch (field.kind) {
  case FieldKind::Register:
    return below(kRegisters);
  case FieldKind::Token:
    return below(kTokens);
  case FieldKind::Memory:
    return below(kMemories);
  case FieldKind::Function:
    return below(kSimdFunctions);
  case FieldKind::Rule:
  case FieldKind::Scope:
    return below(4);
  case FieldKind::CpuFunction:
    return below(image.functions.size());
  case FieldKind::Label:
    return below(image.marks.size());
  case FieldKind::Unsigned:
  case FieldKind::Mask:
    return field.bits >= 63 ? Range{0, INT64_MAX} : Range{0, (int64_t(1) << field.bits) - 1};
  case FieldKind::Signed:
  case FieldKind::Address:
  case FieldKind::Float:
    if (field.bits == 64)
      return {INT64_MIN, INT64_MAX};
    return {-(int64_t(1) << (field.bits - 1)), (int64_t(1) << (field.bits - 1)) - 1};
  }
  return {0, 0};
}

MaybeError verifyTerms(const FieldInfo &field, const Operand &operand, int depth) {
  if (operand.terms.empty())
    return std::nullopt;
  if (!field.affine)
    return std::string("field ") + field.name + " may not have terms";
  int before = -1;
  for (const Term &term : operand.terms) {
    bool loop = term.source < kTermLoop + kMaxLoopDepth;
    bool known =
        loop || (term.source >= kTermRegister && term.source < kTermRegister + kRegisters) || term.source == kTermQuad;
    if (!known)
      return std::string("field ") + field.name + " has a term of unknown source " + str(term.source);
    if (term.source <= before || term.scale == 0)
      return std::string("field ") + field.name + " has terms out of order or with scale 0";
    before = term.source;
    if (loop && term.source - kTermLoop >= depth)
      return std::string("field ") + field.name + " names loop L" + str(term.source) + ", but " + str(depth) +
             " loops enclose it";
  }
  return std::nullopt;
}

MaybeError verifyKeys(const Instruction &instruction) {
  std::optional<Unit> unit = configUnit(instruction.opcode);
  if (!unit)
    return instruction.config.empty() ? MaybeError() : MaybeError("only CONFIG has keys");
  int before = -1;
  for (auto [key, value] : instruction.config) {
    const ConfigKeyInfo *info = findConfigKey(key);
    if (!info || !(info->units >> static_cast<int>(*unit) & 1))
      return "the unit has no key " + (info ? std::string(info->name) : str(static_cast<int>(key)));
    if (static_cast<int>(key) <= before)
      return std::string("keys out of order at ") + info->name;
    before = static_cast<int>(key);
    if (value < info->min || value > info->max)
      return std::string("key ") + info->name + " is " + str(value) + ", allowed are " + str(info->min) + " to " +
             str(info->max);
  }
  return std::nullopt;
}

MaybeError verifyMove(const Instruction &in) {
  auto source = static_cast<Memory>(in.get("src")), destination = static_cast<Memory>(in.get("dst"));
  if (!isLegalMove(source, destination))
    return "illegal move from " + std::string(nameOf(source)) + " to " + std::string(nameOf(destination)) + "; from " +
           std::string(nameOf(source)) + " legal destinations are: " + legalDestinations(source);
  const Operand &quads = in.operands[in.info().field("quads")];
  if ((quads.base || !quads.terms.empty()) && destination != Memory::GM)
    return "quads are named, but the destination is not GM";
  if ((quads.base || !quads.terms.empty()) && source != Memory::GM && source != Memory::DDR)
    return "only moves from GM and DDR reach other quads";
  return std::nullopt;
}

MaybeError verifyProduct(const Instruction &in, const Machine &machine) {
  int64_t imc = in.get("imc"), ppr = in.get("ppr"), groups = in.get("groups");
  if (ppr > machine.maxPprMode)
    return "ppr is " + str(ppr) + ", the machine has at most " + str(machine.maxPprMode);
  if (imc < 1 || imc > int64_t(1) << ppr)
    return "imc is " + str(imc) + ", with ppr " + str(ppr) + " allowed are 1 to " + str(int64_t(1) << ppr);
  if (groups < 1 || in.get("core") + groups * imc > machine.cores)
    return "core + groups * imc is " + str(in.get("core") + groups * imc) + ", a slice has " + str(machine.cores) +
           " cores";
  if (in.get("stream") > 1)
    return std::string("stream is neither 0 nor 1");
  const Operand &rows = in.operands[in.info().field("rows")];
  if (rows.terms.empty() && (rows.base < 1 || rows.base > 64))
    return "rows is " + str(rows.base) + ", allowed are 1 to 64";
  return std::nullopt;
}

MaybeError verifyReshape(const Instruction &in) {
  auto source = static_cast<Memory>(in.get("src")), destination = static_cast<Memory>(in.get("dst"));
  auto rule = static_cast<Rule>(in.get("rule"));
  if (source != Memory::GM && source != Memory::DRE && source != Memory::DDR)
    return "the source is " + std::string(nameOf(source)) + ", allowed are DDR, GM and DRE";
  if (destination != Memory::GM && destination != Memory::DDR)
    return "the destination is " + std::string(nameOf(destination)) + ", allowed are GM and DDR";
  if (in.opcode == Opcode::Extract ? rule == Rule::Scatter : rule == Rule::Gather || rule == Rule::Window)
    return std::string(in.info().name) + " does not have this rule";
  return std::nullopt;
}

MaybeError verifyTranspose(const Instruction &in) {
  auto source = static_cast<Memory>(in.get("src"));
  if (source != Memory::GM && source != Memory::DRE)
    return "the source is " + std::string(nameOf(source)) + ", allowed are GM and DRE";
  int64_t size = in.get("esize");
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return "esize is " + str(size) + ", allowed are 1, 2, 4 and 8";
  return std::nullopt;
}

/// Rules of single instructions beyond the ranges of their fields.
MaybeError verifyMeaning(const Instruction &in, const Machine &machine) {
  switch (in.opcode) {
  case Opcode::Move:
    return verifyMove(in);
  case Opcode::Matmul:
  case Opcode::Conv:
    return verifyProduct(in, machine);
  case Opcode::Transpose:
    return verifyTranspose(in);
  case Opcode::Extract:
  case Opcode::Insert:
    return verifyReshape(in);
  case Opcode::Send:
  case Opcode::Recv:
    if (in.get("n") < 1 || in.get("n") > 8 || in.get("reg") + in.get("n") > kRegisters)
      return "registers " + str(in.get("reg")) + " and " + str(in.get("n")) + " from there on; a message has 1 to 8";
    return std::nullopt;
  case Opcode::Barrier:
    if (in.get("queues") < 1 || in.get("queues") > 0xf)
      return "queues is " + str(in.get("queues")) + ", allowed are 1 to 15";
    return std::nullopt;
  case Opcode::CpuLd:
  case Opcode::CpuSt:
    if (int64_t size = in.get("esize"); size != 1 && size != 4 && size != 8)
      return "esize is " + str(size) + ", allowed are 1, 4 and 8";
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

/// Masks of units: not empty, within the machine.
MaybeError verifyMasks(const Instruction &in, const Machine &machine) {
  auto check = [&](const char *name, int count, bool mayBeEmpty) -> MaybeError {
    int index = in.info().field(name);
    if (index < 0 || in.info().fields[index].kind != FieldKind::Mask || !in.operands[index].terms.empty())
      return std::nullopt;
    int64_t value = in.operands[index].base;
    if ((value == 0 && !mayBeEmpty) || value >> count)
      return std::string(name) + " is " + str(value) + ", the machine has " + str(count);
    return std::nullopt;
  };
  if (MaybeError wrong = check("slices", machine.slices, false))
    return wrong;
  if (MaybeError wrong = check("cores", machine.cores, false))
    return wrong;
  if (MaybeError wrong = check("quads", machine.quadCount(), in.opcode == Opcode::Move))
    return wrong;
  if (int index = in.info().field("slice"); index >= 0 && in.operands[index].base >= machine.slices)
    return "slice is " + str(in.operands[index].base) + ", a quad has " + str(machine.slices);
  if (int index = in.info().field("slot"); index >= 0 && in.operands[index].base >= kConfigSlots)
    return "slot is " + str(in.operands[index].base) + ", there are " + str(kConfigSlots);
  return std::nullopt;
}

std::string at(const Code &code, size_t position, const std::string &what) {
  return "'" + code.name + "' at " + std::to_string(position) + " (" + code.instructions[position].info().name +
         "): " + what;
}

/// What the text form can write without quotes.
bool isName(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$-") == name.npos;
}

} // namespace

MaybeError verifyInstruction(const Instruction &in, const Image &image, int depth) {
  const InstructionInfo &info = in.info();
  if (in.operands.size() != info.fields.size())
    return std::string("has ") + str(in.operands.size()) + " operands instead of " + str(info.fields.size());
  size_t entries = in.config.size();
  for (size_t i = 0; i < in.operands.size(); ++i) {
    const FieldInfo &field = info.fields[i];
    Range range = rangeOf(field, image);
    int64_t base = in.operands[i].base;
    if (base < range.min || base > range.max)
      return std::string("field ") + field.name + " is " + str(base) + ", allowed are " + str(range.min) + " to " +
             str(range.max);
    if (MaybeError wrong = verifyTerms(field, in.operands[i], depth))
      return wrong;
    entries += in.operands[i].terms.size();
  }
  if (entries > 255)
    return std::string("more than 255 terms or keys");
  if (MaybeError wrong = verifyKeys(in))
    return wrong;
  if (MaybeError wrong = verifyMasks(in, image.machine))
    return wrong;
  return verifyMeaning(in, image.machine);
}

MaybeError verifyStream(const Code &code, const Image &image) {
  size_t count = code.instructions.size();
  if (count == 0 || code.instructions.back().opcode != Opcode::Halt)
    return "'" + code.name + "' does not end with HALT";
  int depth = 0;
  for (size_t i = 0; i < count; ++i) {
    const Instruction &in = code.instructions[i];
    if (in.info().group == Group::CpuCode)
      return at(code, i, "CPU bytecode in a stream");
    if (in.opcode == Opcode::Halt && i + 1 != count)
      return at(code, i, "HALT before the end");
    if (in.opcode == Opcode::EndLoop && --depth < 0)
      return at(code, i, "no LOOP is open");
    if (MaybeError wrong = verifyInstruction(in, image, depth))
      return at(code, i, *wrong);
    if (in.opcode == Opcode::Loop && ++depth > kMaxLoopDepth)
      return at(code, i, "more than 8 loops deep");
  }
  if (depth)
    return "'" + code.name + "' has " + str(depth) + " LOOP without ENDLOOP";
  return std::nullopt;
}

MaybeError verifyFunction(const Code &code, const Image &image) {
  int64_t count = static_cast<int64_t>(code.instructions.size());
  if (count == 0 || code.instructions.back().opcode != Opcode::CpuRet)
    return "'" + code.name + "' does not end with CPU_RET";
  for (int64_t i = 0; i < count; ++i) {
    const Instruction &in = code.instructions[i];
    if (in.info().group != Group::CpuCode)
      return at(code, i, "only CPU bytecode stands in functions");
    if (MaybeError wrong = verifyInstruction(in, image, 0))
      return at(code, i, *wrong);
    if (int index = in.info().field("to");
        index >= 0 && (in.operands[index].base < 0 || in.operands[index].base >= count))
      return at(code, i, "branches to " + str(in.operands[index].base) + " of " + str(count) + " instructions");
  }
  return std::nullopt;
}

MaybeError verify(const Image &image) {
  auto unique = [](const auto &list, const char *what) -> MaybeError {
    std::vector<std::string_view> names;
    for (const auto &item : list)
      names.push_back(item.name);
    std::sort(names.begin(), names.end());
    auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end())
      return std::string("two ") + what + " are named '" + std::string(*twice) + "'";
    return std::nullopt;
  };
  if (MaybeError wrong = unique(image.streams, "streams"))
    return wrong;
  if (MaybeError wrong = unique(image.functions, "functions"))
    return wrong;
  if (MaybeError wrong = unique(image.kernels, "kernels"))
    return wrong;
  for (const auto *list : {&image.streams, &image.functions})
    for (const Code &code : *list)
      if (!isName(code.name))
        return "'" + code.name + "' is no name: letters, digits, '_', '.', '$', '-'";
  std::set<std::string_view> marks(image.marks.begin(), image.marks.end());
  if (marks.size() != image.marks.size())
    return std::string("two marks have the same text");
  for (const Code &code : image.streams)
    if (MaybeError wrong = verifyStream(code, image))
      return "stream " + *wrong;
  for (const Code &code : image.functions)
    if (MaybeError wrong = verifyFunction(code, image))
      return "function " + *wrong;
  for (const Kernel &kernel : image.kernels)
    if (MaybeError wrong = verifyKernel(kernel, image))
      return "kernel '" + kernel.name + "': " + *wrong;
  return std::nullopt;
}

} // namespace dmx::corsair
