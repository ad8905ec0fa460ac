//===- PtxBody.cpp - what stands between a kernel's brackets ------------------===//

#include "PtxParser.h"

namespace dmxrt::cuda {

/// Statements up to the bracket that closes the scope.
bool PtxParser::body() {
  if (scopes.size() > 16)
    return refuse("scopes are nested too deeply");
  scopes.emplace_back();
  size_t firstJump = jumps.size();
  while (!takeSign('}'))
    if (!statement())
      return false;
  if (!resolve(firstJump))
    return false;
  scopes.pop_back();
  while (!families.empty() && families.back().scope > scopes.size())
    families.pop_back();
  return true;
}

/// Gives the branches of the innermost scope their targets; labels of scopes around it are met later.
bool PtxParser::resolve(size_t firstJump) {
  const Scope &scope = scopes.back();
  size_t kept = firstJump;
  for (size_t i = firstJump; i < jumps.size(); ++i) { // a list's labels come behind it
    Jump jump = jumps[i];
    PtxInstruction &branch = kernel->code[jump.instruction];
    auto label = scope.labels.find(jump.wanted);
    auto list = scope.lists.find(jump.wanted);
    if (!jump.isList && label != scope.labels.end()) {
      branch.targets[jump.place] = label->second;
    } else if (jump.isList && list != scope.lists.end()) {
      branch.targets.resize(list->second.size());
      for (size_t place = 0; place < list->second.size(); ++place)
        jumps.push_back({jump.instruction, list->second[place], false, place});
    } else if (scopes.size() == 1) {
      token.line = branch.line;
      return refuse("there is no ", jump.isList ? "list of branch targets '" : "label '", jump.wanted, "'");
    } else {
      jumps[kept++] = jump;
    }
  }
  jumps.resize(kept);
  return true;
}

/// What stands up to the bracket that closes the scope, whatever it is.
bool PtxParser::passOver() {
  for (uint32_t open = 1; open; take()) {
    if (token.kind == PtxToken::End)
      return wants("}");
    open += token.is('{');
    open -= token.is('}');
  }
  return true;
}

/// .loc FILE LINE COLUMN
bool PtxParser::place() {
  PtxPlace made{token.line, 0, 0};
  uint64_t file = 0, line = 0, column = 0;
  if (!integer(file, UINT32_MAX) || !integer(line, UINT32_MAX) || !integer(column, UINT32_MAX))
    return false;
  made.file = static_cast<uint32_t>(file);
  made.ownLine = static_cast<uint32_t>(line);
  kernel->places.push_back(made);
  return true;
}

bool PtxParser::statement() {
  if (takeSign('{'))
    return body();
  if (takeName(".loc"))
    return place();
  if (takeName(".reg"))
    return registers();
  if (takeName(".local"))
    return variable(kernel->locals);
  if (takeName(".shared"))
    return variable(kernel->shared);
  if (takeName(".pragma")) {
    if (token.kind != PtxToken::Text)
      return wants("a text");
    take();
    return expect(';');
  }
  return instruction();
}

/// .reg .b32 %r<12>, %x;
bool PtxParser::registers() {
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
    } else if (!scopes.back().registers.emplace(called, first).second) {
      return refuse("register '", called, "' is declared twice");
    }
    if (kernel->registers.size() + count > kMostRegisters)
      return refuse("there are too many registers");
    kernel->registers.resize(kernel->registers.size() + count, each);
  } while (takeSign(','));
  return expect(';');
}

/// Null where there is none. Inner scopes come first.
const uint32_t *PtxParser::findRegister(std::string_view called) const {
  static thread_local uint32_t found;
  for (size_t scope = scopes.size(); scope-- > 0;) {
    const auto &single = scopes[scope].registers;
    if (auto it = single.find(called); it != single.end())
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

bool PtxParser::guard(PtxInstruction &out) {
  if (!takeSign('@'))
    return true;
  out.guardNot = takeSign('!');
  std::string_view called;
  if (!name(called))
    return false;
  const uint32_t *found = findRegister(called);
  if (!found || !kernel->registers[*found].isPredicate())
    return refuse("'", called, "' is no predicate register");
  out.guard = static_cast<int32_t>(*found);
  return true;
}

/// A label is its scope's: what is put in by assembly has the same ones many times.
bool PtxParser::label(std::string_view called) {
  auto behind = static_cast<uint32_t>(kernel->code.size());
  Scope &scope = scopes.back();
  if (scope.lists.count(called) || scope.labels.count(called))
    return refuse("label '", called, "' stands at two places");
  if (takeName(".branchtargets"))
    return branchTargets(called);
  scope.labels.emplace(called, behind);
  return true;
}

/// list: .branchtargets label, label ...;
bool PtxParser::branchTargets(std::string_view called) {
  std::vector<std::string_view> &list = scopes.back().lists[called];
  do
    if (!name(list.emplace_back()))
      return false;
  while (takeSign(','));
  return expect(';');
}

/// [label:] [@[!]p] root.modifiers operands ;
bool PtxParser::instruction() {
  PtxInstruction made;
  made.line = token.line;
  std::string_view word;
  if (!guard(made) || !name(word))
    return false;
  if (made.guard < 0 && takeSign(':'))
    return label(word);
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
  auto own = static_cast<uint32_t>(kernel->code.size());
  if (made.root == "bra" && made.operands.size() == 1) {
    made.targets.resize(1);
    jumps.push_back({own, made.operands[0].name, false, 0});
  } else if (made.root == "brx" && made.operands.size() == 2) {
    jumps.push_back({own, made.operands[1].name, true, 0});
  }
  kernel->code.push_back(std::move(made));
  return expect(';');
}

bool PtxParser::named(PtxOperand &out) {
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

/// base [+ offset] [, {coordinates}] ]
bool PtxParser::address(PtxOperand &out) {
  out.kind = PtxOperand::Address;
  if (!named(out.parts.emplace_back()))
    return false;
  bool plus = takeSign('+'), minus = takeSign('-');
  if (plus || minus) {
    if (!integer(out.bits, INT64_MAX))
      return false;
    out.bits = minus ? 0 - out.bits : out.bits;
  }
  if (takeSign(',') && (!expect('{') || !vector(out.parts.emplace_back())))
    return false;
  return expect(']');
}

bool PtxParser::vector(PtxOperand &out) {
  constexpr size_t most = 128; // an accumulator of 256 columns
  out.kind = PtxOperand::Vector;
  do {
    if (token.is('{') || token.is('['))
      return wants("a register");
    if (out.parts.size() == most)
      return refuse("a vector of more than ", most, " registers");
    if (!operand(out.parts.emplace_back()))
      return false;
  } while (takeSign(','));
  return expect('}');
}

bool PtxParser::operand(PtxOperand &out) {
  if (takeSign('['))
    return address(out);
  if (takeSign('{'))
    return vector(out);
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

} // namespace dmxrt::cuda
