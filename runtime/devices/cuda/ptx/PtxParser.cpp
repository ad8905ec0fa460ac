//===- PtxParser.cpp - a PTX text as it stands --------------------------------===//

#include "Ptx.h"
#include "PtxLexer.h"

#include <array>

namespace dmxrt::cuda {

PtxType typeOfName(std::string_view name) {
  struct Named {
    std::string_view name;
    PtxType type;
  };
  static constexpr std::array<Named, 17> types{{{"pred", {'p', 1}},
                                                {"b8", {'b', 8}},
                                                {"b16", {'b', 16}},
                                                {"b32", {'b', 32}},
                                                {"b64", {'b', 64}},
                                                {"u8", {'u', 8}},
                                                {"u16", {'u', 16}},
                                                {"u32", {'u', 32}},
                                                {"u64", {'u', 64}},
                                                {"s8", {'s', 8}},
                                                {"s16", {'s', 16}},
                                                {"s32", {'s', 32}},
                                                {"s64", {'s', 64}},
                                                {"f16", {'f', 16}},
                                                {"bf16", {'h', 16}},
                                                {"f32", {'f', 32}},
                                                {"f64", {'f', 64}}}};
  for (const Named &each : types)
    if (each.name == name)
      return each.type;
  return {};
}

std::string PtxInstruction::name() const {
  std::string out(root);
  for (std::string_view modifier : modifiers)
    out += cat(".", modifier);
  return out;
}

namespace {

/// Limits that keep damaged texts from growing: no kernel comes near them.
constexpr uint64_t kMostRegisters = 1 << 20, kMostBytes = 1u << 30;

class Parser {
public:
  Parser(std::string_view text, bool bodies) : lexer(text), bodies(bodies) { take(); }

  Result<PtxModule> module();

private:
  void take() { token = lexer.next(); }
  bool takeSign(char sign) {
    bool found = token.is(sign);
    if (found)
      take();
    return found;
  }
  bool takeName(std::string_view name) {
    bool found = token.kind == PtxToken::Name && token.name == name;
    if (found)
      take();
    return found;
  }
  template <typename... Parts> bool refuse(const Parts &...parts) {
    if (problem.empty()) {
      problem = kernel ? cat("kernel '", kernel->name, "', line ", token.line, ": ") : cat("line ", token.line, ": ");
      problem += cat(parts...);
      if (token.kind == PtxToken::End)
        problem += ", and the text ends there";
    }
    return false;
  }
  bool wants(std::string_view what) { return refuse("'", token.name, "' stands where ", what, " is wanted"); }
  bool expect(char sign) { return takeSign(sign) || wants(std::string_view(&sign, 1)); }
  bool name(std::string_view &out) {
    if (token.kind != PtxToken::Name || token.name[0] == '.')
      return wants("a name");
    out = token.name;
    take();
    return true;
  }
  bool integer(uint64_t &out, uint64_t most) {
    if (token.kind != PtxToken::Number || token.bits > most)
      return wants(cat("a number up to ", most));
    out = token.bits;
    take();
    return true;
  }
  bool type(PtxType &out) {
    out = token.kind == PtxToken::Name && token.name[0] == '.' ? typeOfName(token.name.substr(1)) : PtxType();
    if (!out.kind)
      return wants("a type");
    take();
    return true;
  }

  bool variable(std::vector<PtxVariable> &out);
  bool entry(PtxModule &out);
  bool parameters();
  bool body();
  bool passOver();
  bool statement();
  bool registers();
  bool instruction();
  bool operand(PtxOperand &out);
  bool address(PtxOperand &out);
  bool vector(PtxOperand &out);
  bool named(PtxOperand &out);
  const uint32_t *findRegister(std::string_view name) const;

  PtxLexer lexer;
  const bool bodies;
  PtxToken token;
  std::string problem;
  PtxKernel *kernel = nullptr;
  std::vector<std::map<std::string_view, uint32_t>> scopes; // names of registers
  struct Family {
    std::string_view prefix; // %r
    uint32_t first, count;
    size_t scope;
  };
  std::vector<Family> families; // of registers named %r0, %r1 ...
};

/// [.align N] .b8 name[BYTES] [= {values}] ;
bool Parser::variable(std::vector<PtxVariable> &out) {
  PtxVariable made;
  uint64_t align = 1;
  if (takeName(".align") && !integer(align, 1 << 16))
    return false;
  if (align == 0 || (align & (align - 1)))
    return refuse("an alignment of ", align, " is no power of two");
  PtxType element;
  if (!type(element) || !name(made.name))
    return false;
  uint64_t count = 1;
  if (takeSign('[') && (!integer(count, kMostBytes) || !expect(']')))
    return false;
  made.align = static_cast<uint32_t>(align);
  made.bytes = count * element.bytes();
  if (takeSign('=')) {
    bool list = takeSign('{');
    do {
      bool minus = takeSign('-');
      uint64_t value = 0;
      if (!integer(value, UINT64_MAX))
        return false;
      value = minus ? 0 - value : value;
      for (uint32_t i = 0; i < element.bytes(); ++i)
        made.values.push_back(static_cast<std::byte>(value >> (8 * i)));
    } while (list && takeSign(','));
    if (list && !expect('}'))
      return false;
    if (made.values.size() > made.bytes)
      return refuse("variable '", made.name, "' has more values than room");
  }
  out.push_back(std::move(made));
  return expect(';');
}

/// (.param .u64 [.ptr [.global] .align N] name, ...)
bool Parser::parameters() {
  if (!expect('('))
    return false;
  if (takeSign(')'))
    return true;
  do {
    if (!takeName(".param"))
      return wants(".param");
    PtxType each;
    if (!type(each))
      return false;
    if (takeName(".ptr")) {
      takeName(".global");
      uint64_t align = 0;
      if (takeName(".align") && !integer(align, 1 << 16))
        return false;
    }
    std::string_view parameter;
    if (!name(parameter))
      return false;
    kernel->parameters.emplace_back(parameter, each);
  } while (takeSign(','));
  return expect(')');
}

bool Parser::entry(PtxModule &out) {
  std::string_view called;
  uint32_t line = token.line;
  if (!name(called))
    return false;
  for (const PtxKernel &other : out.kernels)
    if (other.name == called)
      return refuse("there are two kernels '", called, "'");
  PtxKernel made;
  made.name = called;
  made.line = line;
  kernel = &made;
  scopes.clear();
  families.clear();
  if (!parameters())
    return false;
  while (token.kind == PtxToken::Name && token.name[0] == '.') {
    uint64_t threads[3] = {1, 1, 1};
    if (!takeName(".reqntid"))
      return refuse("'", token.name, "' is no directive of a kernel that is known here");
    size_t axis = 0;
    do
      if (axis == 3 || !integer(threads[axis++], 1024))
        return wants("a number of threads");
    while (takeSign(','));
    if (threads[1] != 1 || threads[2] != 1 || threads[0] == 0)
      return refuse("blocks of more than one axis, or of no threads, are not known here");
    made.blockThreads = static_cast<uint32_t>(threads[0]);
  }
  if (!expect('{') || !(bodies ? body() : passOver()))
    return false;
  for (const PtxInstruction &each : made.code)
    if (each.root == "bra" && each.operands.size() == 1 && !made.labels.count(each.operands[0].name)) {
      token.line = each.line;
      return refuse("there is no label '", each.operands[0].name, "'");
    }
  kernel = nullptr;
  out.kernels.push_back(std::move(made));
  return true;
}

/// Statements up to the bracket that closes the scope.
bool Parser::body() {
  if (scopes.size() > 16)
    return refuse("scopes are nested too deeply");
  scopes.emplace_back();
  while (!takeSign('}'))
    if (!statement())
      return false;
  scopes.pop_back();
  while (!families.empty() && families.back().scope > scopes.size())
    families.pop_back();
  return true;
}

/// What stands up to the bracket that closes the scope, whatever it is.
bool Parser::passOver() {
  for (uint32_t open = 1; open; take()) {
    if (token.kind == PtxToken::End)
      return wants("}");
    open += token.is('{');
    open -= token.is('}');
  }
  return true;
}

bool Parser::statement() {
  if (takeSign('{'))
    return body();
  if (takeName(".reg"))
    return registers();
  if (takeName(".local"))
    return variable(kernel->locals);
  if (takeName(".pragma")) {
    if (token.kind != PtxToken::Text)
      return wants("a text");
    take();
    return expect(';');
  }
  return instruction();
}

/// .reg .b32 %r<12>, %x;
bool Parser::registers() {
  PtxType each;
  if (!type(each))
    return false;
  do {
    std::string_view called;
    if (!name(called))
      return false;
    auto first = static_cast<uint32_t>(kernel->registers.size());
    uint64_t count = 1;
    if (takeSign('<')) {
      if (!integer(count, kMostRegisters) || !expect('>'))
        return false;
      families.push_back({called, first, static_cast<uint32_t>(count), scopes.size()});
    } else if (!scopes.back().emplace(called, first).second) {
      return refuse("register '", called, "' is declared twice");
    }
    if (kernel->registers.size() + count > kMostRegisters)
      return refuse("there are too many registers");
    kernel->registers.resize(kernel->registers.size() + count, each);
  } while (takeSign(','));
  return expect(';');
}

/// Null where there is none. Inner scopes come first.
const uint32_t *Parser::findRegister(std::string_view called) const {
  static thread_local uint32_t found;
  for (size_t scope = scopes.size(); scope-- > 0;) {
    if (auto it = scopes[scope].find(called); it != scopes[scope].end())
      return &it->second;
    for (const Family &family : families) {
      if (family.scope != scope + 1 || !called.starts_with(family.prefix))
        continue;
      std::string_view digits = called.substr(family.prefix.size());
      uint64_t index = 0;
      bool plain = !digits.empty() && digits.size() < 8 && (digits == "0" || digits[0] != '0');
      for (char c : digits)
        plain = plain && c >= '0' && c <= '9', index = index * 10 + static_cast<uint64_t>(c - '0');
      if (plain && index < family.count) {
        found = family.first + static_cast<uint32_t>(index);
        return &found;
      }
    }
  }
  return nullptr;
}

/// [label:] [@[!]p] root.modifiers operands ;
bool Parser::instruction() {
  PtxInstruction made;
  made.line = token.line;
  if (takeSign('@')) {
    made.guardNot = takeSign('!');
    std::string_view guard;
    if (!name(guard))
      return false;
    const uint32_t *found = findRegister(guard);
    if (!found || !kernel->registers[*found].isPredicate())
      return refuse("'", guard, "' is no predicate register");
    made.guard = static_cast<int32_t>(*found);
  }
  std::string_view word;
  if (!name(word))
    return false;
  if (made.guard < 0 && takeSign(':')) {
    if (!kernel->labels.emplace(word, static_cast<uint32_t>(kernel->code.size())).second)
      return refuse("label '", word, "' stands at two places");
    return true;
  }
  for (size_t point = 0; point != word.npos;) {
    size_t end = word.find('.', point);
    std::string_view part = word.substr(point, end == word.npos ? end : end - point);
    if (made.root.empty())
      made.root = part;
    else
      made.modifiers.push_back(part);
    point = end == word.npos ? end : end + 1;
  }
  if (!token.is(';'))
    do
      if (!operand(made.operands.emplace_back()))
        return false;
    while (takeSign(',') || takeSign('|'));
  kernel->code.push_back(std::move(made));
  return expect(';');
}

bool Parser::named(PtxOperand &out) {
  std::string_view called;
  if (!name(called))
    return false;
  out.name = called;
  if (called == "_") {
    out.kind = PtxOperand::Nothing;
  } else if (const uint32_t *found = findRegister(called)) {
    out.kind = PtxOperand::Register;
    out.number = *found;
  } else if (called[0] == '%') {
    out.kind = PtxOperand::Special;
    out.name = called.substr(1);
  } else {
    out.kind = PtxOperand::Symbol;
  }
  return true;
}

bool Parser::address(PtxOperand &out) {
  out.kind = PtxOperand::Address;
  if (!named(out.parts.emplace_back()))
    return false;
  bool plus = takeSign('+'), minus = takeSign('-');
  if (plus || minus) {
    if (!integer(out.bits, INT64_MAX))
      return false;
    out.bits = minus ? 0 - out.bits : out.bits;
  }
  return expect(']');
}

bool Parser::vector(PtxOperand &out) {
  out.kind = PtxOperand::Vector;
  do
    if (out.parts.size() == 8 || !operand(out.parts.emplace_back()))
      return refuse("a vector of more than 8 registers");
  while (takeSign(','));
  return expect('}');
}

bool Parser::operand(PtxOperand &out) {
  if (takeSign('['))
    return address(out);
  if (takeSign('{')) {
    if (token.is('{'))
      return wants("a register");
    return vector(out);
  }
  bool minus = takeSign('-');
  if (token.kind == PtxToken::Number) {
    char form = token.name.size() > 1 ? token.name[1] : ' ';
    out.kind = form == 'f' || form == 'F'   ? PtxOperand::Float32
               : form == 'd' || form == 'D' ? PtxOperand::Float64
                                            : PtxOperand::Integer;
    if (minus && out.kind != PtxOperand::Integer)
      return wants("an integer");
    out.bits = minus ? 0 - token.bits : token.bits;
    take();
    return true;
  }
  return minus ? wants("a number") : named(out);
}

Result<PtxModule> Parser::module() {
  PtxModule out;
  auto good = [&] {
    while (token.kind != PtxToken::End && problem.empty()) {
      if (takeName(".version")) { // 8.0 is a number, a point and a number
        while (token.kind != PtxToken::End && !(token.kind == PtxToken::Name && token.name == ".target"))
          take();
      } else if (takeName(".target")) {
        if (!name(out.target))
          return false;
      } else if (takeName(".address_size")) {
        uint64_t size = 0;
        if (!integer(size, 64) || size != 64)
          return refuse("only addresses of 64 bits are known here");
      } else if (takeName(".global") || takeName(".const")) {
        if (!variable(out.globals))
          return false;
      } else {
        takeName(".visible");
        if (!takeName(".entry"))
          return refuse("'", token.name, "' is no directive that is known here");
        if (!entry(out))
          return false;
      }
    }
    return problem.empty();
  };
  if (!good())
    return badBundle(problem);
  return out;
}

} // namespace

Result<PtxModule> parsePtx(std::string_view text, bool bodies) { return Parser(text, bodies).module(); }

} // namespace dmxrt::cuda
