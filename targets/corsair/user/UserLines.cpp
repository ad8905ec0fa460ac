//===- UserLines.cpp - instructions of a user's kernel --------------------===//
#include "UserLines.h"

#include "schemas/corsair/SimdFunctions.h"
#include "schemas/corsair/verify/AccessRules.h"
#include "schemas/corsair/verify/VerifyCode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey, hw::Memory, hw::Opcode;
using llvm::StringRef;

int64_t UserLine::key(ConfigKey key) const {
  for (auto [own, value] : config.config)
    if (own == key)
      return value;
  return hw::findConfigKey(key)->byDefault;
}

static ConfigKey shifted(ConfigKey first, int by) { return static_cast<ConfigKey>(static_cast<int>(first) + by); }

/// Of EXEC_SIMD: whether its function reads, or writes, the operand of that number: d, a, b, c.
static bool hasOperand(const UserLine &line, int number) {
  const auto function = static_cast<hw::SimdFunction>(line.instruction.get("fn"));
  return number == 0 || (number <= hw::operandCount(function) &&
                         line.key(shifted(ConfigKey::DKind, number)) != static_cast<int64_t>(hw::ElemKind::Raw));
}

std::optional<Memory> dmxc::corsair::memoryOf(const UserLine &line, StringRef field) {
  const hw::Instruction &in = line.instruction;
  auto named = [&](const char *name) { return static_cast<Memory>(in.get(name)); };
  switch (in.opcode) {
  case Opcode::Move:
  case Opcode::Extract:
  case Opcode::Insert:
    if (field == "saddr" || field == "daddr")
      return named(field == "saddr" ? "src" : "dst");
    if (field == "iaddr" &&
        llvm::is_contained({hw::Rule::Gather, hw::Rule::Scatter}, static_cast<hw::Rule>(in.get("rule"))))
      return Memory::GM;
    return std::nullopt;
  case Opcode::Transpose:
    return field == "saddr" ? std::optional(named("src")) : field == "daddr" ? std::optional(Memory::GM) : std::nullopt;
  case Opcode::Matmul:
    if (field == "st")
      return in.get("stream") ? std::optional(Memory::ST) : std::nullopt;
    return field == "ib"   ? std::optional(Memory::IB)
           : field == "wb" ? std::optional(Memory::WB)
           : field == "ob" ? std::optional(Memory::OB)
                           : std::nullopt;
  case Opcode::ExecSimd: {
    const size_t number = StringRef("dabc").find(field);
    if (field.size() != 1 || number == StringRef::npos || !hasOperand(line, static_cast<int>(number)))
      return std::nullopt;
    return static_cast<Memory>(line.key(shifted(ConfigKey::DMem, static_cast<int>(number))));
  }
  default:
    return std::nullopt;
  }
}

std::string UserNames::expanded(const UserSource &source, unsigned line, const std::string &value,
                                std::string *buffer) const {
  if (value.find('$') == std::string::npos)
    return value;
  auto refuse = [&](const std::string &clause) { throw source.refusal(line, "'" + value + "': " + clause); };
  int64_t base = 0;
  std::string terms;
  llvm::SmallVector<StringRef> parts, factors;
  StringRef(value).split(parts, '+');
  for (StringRef part : parts) {
    int64_t scale = 1, number = 0;
    std::string of;
    factors.clear();
    part.split(factors, '*');
    for (StringRef factor : factors) {
      const std::string name = factor.ltrim('$').str();
      auto scalar = scalars.find(name);
      if (!factor.starts_with("$") ? hw::text::parseInteger(std::string_view(factor), number)
                                   : scalar != scalars.end()) {
        if (__builtin_mul_overflow(scale, factor.starts_with("$") ? scalar->second : number, &scale))
          refuse("the number is too large");
      } else if (factor.starts_with("$") && !buffers.count(name)) {
        refuse("there is no '" + name + "' among the kernel's arguments and buffers");
      } else if (factor.starts_with("$") && (!buffer || !buffer->empty() || factors.size() != 1)) {
        refuse(buffer ? "a place counts from one buffer, once" : "'" + name + "' is a buffer, and no number");
      } else if (factor.starts_with("$")) {
        *buffer = name;
        scale = 0;
      } else if (of.empty()) {
        of = factor.str();
      } else {
        refuse("a term has one counter");
      }
    }
    if (!of.empty())
      terms += "+" + of + "*" + std::to_string(scale);
    else if (__builtin_add_overflow(base, scale, &base))
      refuse("the number is too large");
  }
  return std::to_string(base) + terms;
}

namespace {

/// Reads one stream.
class LineReader {
public:
  LineReader(const UserSource &source, const hw::Machine &machine, const UserNames &names, const UserText &text)
      : source(source), names(names), text(text) {
    image.machine = machine;
  }

  std::vector<UserLine> run(unsigned begin, llvm::ArrayRef<NumberedTokens> lines) {
    bool ends = false;
    for (const NumberedTokens &words : lines) {
      line = words.line;
      if (ends)
        refuse("it stands behind HALT");
      ends = take(words.tokens);
    }
    line = begin;
    if (!ends)
      refuse("the stream does not end with HALT");
    if (!loops.empty())
      refuse("the stream has a LOOP without ENDLOOP");
    return std::move(made);
  }

private:
  using Slot = std::pair<hw::Unit, int64_t>;
  /// An open loop: slots that its lines read before they set them, and those that they set.
  struct Loop {
    std::set<Slot> read, set;
  };

  [[noreturn]] void refuse(const std::string &clause) const { throw source.refusal(line, clause); }

  static bool isKnown(Opcode opcode) {
    return llvm::is_contained({Opcode::Nop, Opcode::Halt, Opcode::Loop, Opcode::EndLoop, Opcode::Signal, Opcode::Wait,
                               Opcode::Move, Opcode::Matmul, Opcode::ExecSimd, Opcode::Transpose, Opcode::Extract,
                               Opcode::Insert},
                              opcode) ||
           hw::configUnit(opcode);
  }

  /// Whether it is the last one.
  bool take(const std::vector<hw::text::Token> &words) {
    UserLine own;
    own.number = line;
    own.instruction = parsed(words, own.buffers);
    const hw::Instruction &in = own.instruction;
    if (!isKnown(in.opcode))
      refuse("a kernel of a user has no " + std::string(in.info().name) +
             ": each quad works by itself, and its queues are ordered by SIGNAL and WAIT");
    for (const hw::Operand &operand : in.operands)
      for (const hw::Term &term : operand.terms)
        if (term.source >= hw::kTermRegister && term.source < hw::kTermQuad)
          refuse("registers are not the kernel's; its terms are loop counters, Q and scalars");
    if (in.opcode == Opcode::EndLoop && loops.empty())
      refuse("no LOOP is open");
    if (hw::MaybeError wrong = hw::verifyInstruction(in, image, static_cast<int>(loops.size())))
      refuse(std::string(in.info().name) + ": " + *wrong);
    if (std::optional<hw::Unit> unit = hw::configUnit(in.opcode)) {
      configure({*unit, in.get("slot")}, in);
      return false;
    }
    if (std::optional<hw::Unit> unit = hw::access::slotUnit(in))
      own.config = configured({*unit, in.get("slot")});
    if (in.opcode == Opcode::Loop && loops.size() == hw::kMaxLoopDepth)
      refuse("more than 8 loops deep");
    if (in.opcode == Opcode::Loop)
      loops.emplace_back();
    if (in.opcode == Opcode::EndLoop)
      loops.pop_back();
    checkPlaces(own);
    if (in.opcode == Opcode::Halt)
      return true;
    made.push_back(std::move(own));
    return false;
  }

  hw::Instruction parsed(std::vector<hw::text::Token> words, std::map<std::string, std::string> &buffers) const {
    for (hw::text::Token &word : llvm::drop_begin(words)) {
      std::string buffer;
      word.value = names.expanded(source, line, word.value, &buffer);
      if (!buffer.empty())
        buffers[word.key] = buffer;
    }
    std::string why;
    std::optional<hw::Instruction> in = hw::text::parseInstruction(words, nullptr, why);
    if (!in)
      refuse(why);
    for (const auto &[field, buffer] : buffers)
      if (const int number = in->info().field(field);
          number < 0 || in->info().fields[number].kind != hw::FieldKind::Address)
        refuse(field + " is no place, and '" + buffer + "' is a buffer");
    return *in;
  }

  void configure(Slot slot, const hw::Instruction &in) {
    for (Loop &loop : loops) {
      if (loop.read.count(slot))
        refuse("it sets slot " + std::to_string(slot.second) +
               ", by which a line of the loop before it works: give each its own");
      loop.set.insert(slot);
    }
    slots[slot] = in;
  }

  hw::Instruction configured(Slot slot) {
    auto found = slots.find(slot);
    if (found == slots.end())
      refuse("slot " + std::to_string(slot.second) + " is not set in this stream");
    for (Loop &loop : loops)
      if (!loop.set.count(slot))
        loop.read.insert(slot);
    return found->second;
  }

  /// Whether a field is what the instruction writes to.
  static bool isTarget(StringRef field) { return field == "daddr" || field == "d" || field == "ob"; }

  void checkPlaces(const UserLine &own) const {
    for (const hw::FieldInfo &field : own.instruction.info().fields) {
      std::optional<Memory> memory = memoryOf(own, field.name);
      auto named = own.buffers.find(field.name);
      if (!memory) {
        if (named != own.buffers.end())
          refuse(std::string(field.name) + " is '" + named->second + "', and the instruction has no such operand");
        continue;
      }
      checkPlace(own, field.name, *memory, named == own.buffers.end() ? "" : named->second);
    }
  }

  void checkPlace(const UserLine &own, StringRef field, Memory memory, const std::string &buffer) const {
    const std::string place = field.str() + " is a place in " + std::string(hw::nameOf(memory));
    if (memory == Memory::DDR)
      refuse(place + ", which is the host's; operands and results lie in GM");
    const bool isOwn = memory == Memory::GM || memory == Memory::ST;
    if (isOwn && buffer.empty())
      refuse(place + ", which counts from a buffer of the kernel, as " + field.str() + "=$" +
             (text.operands.empty() ? "x" : text.operands.front().name));
    if (!isOwn && !buffer.empty())
      refuse(place + ", and '" + buffer + "' lies elsewhere: such places count from 0");
    if (buffer.empty())
      return;
    if (Memory other = names.buffers.at(buffer); other != memory)
      refuse(place + ", and '" + buffer + "' lies in " + std::string(hw::nameOf(other)));
    if (isTarget(field) && text.isOperand(buffer))
      refuse("it writes to '" + buffer + "', which is an operand");
    const UserTensor *tensor = text.tensor(buffer);
    const hw::ElemKind kind = kindOf(own, field);
    if (tensor && kind != hw::ElemKind::Raw && kind != tensor->kind)
      refuse(field.str() + " has elements of " + std::string(hw::nameOf(kind)) + ", and '" + buffer + "' those of " +
             std::string(hw::nameOf(tensor->kind)));
  }

  /// As what an instruction sees the elements at a place; raw: as what they are.
  static hw::ElemKind kindOf(const UserLine &own, StringRef field) {
    auto key = [&](ConfigKey which) { return static_cast<hw::ElemKind>(own.key(which)); };
    switch (own.instruction.opcode) {
    case Opcode::ExecSimd:
      return key(shifted(ConfigKey::DKind, static_cast<int>(StringRef("dabc").find(field))));
    case Opcode::Move:
    case Opcode::Extract:
    case Opcode::Insert:
      if (field == "iaddr")
        return key(ConfigKey::IndexKind);
      return field == "daddr" && key(ConfigKey::To) != hw::ElemKind::Raw ? key(ConfigKey::To) : key(ConfigKey::Kind);
    default:
      return hw::ElemKind::Raw;
    }
  }

  const UserSource &source;
  const UserNames &names;
  const UserText &text;
  hw::Image image; ///< the machine
  unsigned line = 0;
  std::map<Slot, hw::Instruction> slots;
  std::vector<Loop> loops;
  std::vector<UserLine> made;
};

} // namespace

std::vector<UserLine> dmxc::corsair::readLines(const UserSource &source, const hw::Machine &machine,
                                               const UserNames &names, const UserText &text, unsigned begin,
                                               llvm::ArrayRef<NumberedTokens> lines) {
  return LineReader(source, machine, names, text).run(begin, lines);
}
