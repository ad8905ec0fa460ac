//===- InstructionParser.cpp - one line of assembly -----------------------===//

#include "Assembler.h"
#include "Text.h"

#include <bit>
#include <charconv>

namespace dmx::corsair {
namespace text {
namespace {

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Reads a quoted text from `at`, which stands on the opening quote.
bool readQuoted(std::string_view line, size_t &at, std::string &out) {
  for (++at; at < line.size(); ++at) {
    char c = line[at];
    if (c == '"')
      return ++at, true;
    if (c == '\\' && at + 1 < line.size()) {
      c = line[++at];
      if (c == 'x') {
        unsigned value = 0;
        if (at + 2 >= line.size() ||
            std::from_chars(line.data() + at + 1, line.data() + at + 3, value, 16).ptr != line.data() + at + 3)
          return false;
        at += 2;
        c = static_cast<char>(value);
      }
    }
    out += c;
  }
  return false;
}

template <typename E, typename Name> std::optional<int64_t> byName(std::string_view text, int count, Name name) {
  for (int i = 0; i < count; ++i)
    if (name(static_cast<E>(i)) == text)
      return i;
  return std::nullopt;
}

std::optional<int64_t> memoryNumber(std::string_view text) {
  return byName<Memory>(text, kMemories, [](Memory memory) { return corsair::nameOf(memory); });
}

std::optional<int64_t> parseFloat(const std::string &text) {
  int64_t bits;
  if (text.starts_with("0x") && parseInteger(text, bits) && bits >= 0 && bits <= 0xffffffff)
    return static_cast<int32_t>(bits);
  float value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return std::bit_cast<int32_t>(value);
}

/// The part of a value before its terms.
std::optional<int64_t> parseBase(const FieldInfo &field, const std::string &text, bool quoted, Symbols *symbols) {
  int64_t number;
  switch (field.kind) {
  case FieldKind::Memory:
    return memoryNumber(text);
  case FieldKind::Function:
    if (std::optional<SimdFunction> function = simdFunctionFromName(text))
      return static_cast<int64_t>(*function);
    return std::nullopt;
  case FieldKind::Rule:
    return byName<Rule>(text, 4, [](Rule rule) { return nameOf(rule); });
  case FieldKind::Scope:
    return byName<Scope>(text, 4, [](Scope scope) { return nameOf(scope); });
  case FieldKind::Float:
    return parseFloat(text);
  case FieldKind::Label:
    if (quoted && symbols)
      return symbols->mark(text);
    break;
  case FieldKind::CpuFunction:
    if (text.starts_with("@") && symbols)
      return symbols->function(std::string_view(text).substr(1));
    break;
  default:
    break;
  }
  if (quoted || !parseInteger(text, number))
    return std::nullopt;
  return number;
}

bool parseTerm(std::string_view text, Term &term) {
  size_t star = std::min(text.find('*'), text.size());
  std::string_view source = text.substr(0, star);
  term.scale = 1;
  if (star < text.size() && !parseInteger(text.substr(star + 1), term.scale))
    return false;
  if (source == "Q")
    return term.source = kTermQuad, true;
  int64_t number;
  if (source.size() < 2 || !parseInteger(source.substr(1), number) || number < 0)
    return false;
  if (source[0] == 'L' && number < kMaxLoopDepth)
    return term.source = static_cast<uint8_t>(kTermLoop + number), true;
  if (source[0] == 'R' && number < kRegisters)
    return term.source = static_cast<uint8_t>(kTermRegister + number), true;
  return false;
}

bool parseOperand(Instruction &in, int index, const Token &token, Symbols *symbols, std::string &error) {
  const FieldInfo &field = in.info().fields[index];
  auto bad = [&] { return error = std::string("field ") + field.name + " does not take '" + token.value + "'", false; };
  std::string_view rest = token.value;
  // A '+' inside a float ("1e+10") or a quoted text separates nothing.
  size_t plus = field.affine ? std::min(rest.find('+'), rest.size()) : rest.size();
  std::string first(rest.substr(0, plus));
  std::vector<Term> terms;
  Term term;
  int64_t base = 0;
  if (field.affine && !token.quoted && parseTerm(first, term))
    terms.push_back(term);
  else if (auto value = parseBase(field, first, token.quoted, symbols))
    base = *value;
  else
    return bad();
  while (plus < rest.size()) {
    rest.remove_prefix(plus + 1);
    plus = std::min(rest.find('+'), rest.size());
    if (!parseTerm(rest.substr(0, plus), term))
      return bad();
    terms.push_back(term);
  }
  in.set(field.name, base, std::move(terms));
  return true;
}

bool parseKey(Instruction &in, const ConfigKeyInfo &key, const Token &token, std::string &error) {
  std::optional<int64_t> value;
  int64_t number;
  KeyForm form = formOf(key.key);
  if (form == KeyForm::Kind) {
    if (auto kind = elemKindFromName(token.value))
      value = static_cast<int64_t>(*kind);
  } else if (form == KeyForm::Memory) {
    value = memoryNumber(token.value);
  } else if (parseInteger(token.value, number)) {
    value = number;
  }
  if (!value)
    return error = std::string("key ") + key.name + " does not take '" + token.value + "'", false;
  in.key(key.key, *value);
  return true;
}

/// The instruction of a mnemonic; of a move with its endpoints set.
std::optional<Instruction> parseMnemonic(const std::string &name, std::string &error) {
  if (name.starts_with("MOVE_")) {
    size_t two = name.find('2', 5);
    auto source = memoryNumber(std::string_view(name).substr(5, two == std::string::npos ? 0 : two - 5));
    auto destination = memoryNumber(std::string_view(name).substr(two == std::string::npos ? name.size() : two + 1));
    if (!source || !destination) {
      error = "unknown mnemonic '" + name + "'";
      return std::nullopt;
    }
    return Instruction(Opcode::Move).set("src", *source).set("dst", *destination);
  }
  for (const InstructionInfo &info : instructions())
    if (info.name == name && info.opcode != Opcode::Move)
      return Instruction(info.opcode);
  error = "unknown mnemonic '" + name + "'";
  return std::nullopt;
}

} // namespace

bool tokenize(std::string_view line, std::vector<Token> &out, std::string &error) {
  out.clear();
  for (size_t at = 0;;) {
    while (at < line.size() && isBlank(line[at]))
      ++at;
    if (at == line.size() || line[at] == ';')
      return true;
    Token token;
    for (; at < line.size() && !isBlank(line[at]) && line[at] != ';'; ++at) {
      if (line[at] == '=' && token.key.empty() && !token.quoted) {
        token.key = std::move(token.value);
        token.value.clear();
      } else if (line[at] == '"') {
        token.quoted = true;
        if (!readQuoted(line, at, token.value))
          return error = "a text without end", false;
        break;
      } else {
        token.value += line[at];
      }
    }
    out.push_back(std::move(token));
  }
}

bool parseInteger(std::string_view text, int64_t &out) {
  bool negative = text.starts_with('-');
  text.remove_prefix(negative);
  int base = text.starts_with("0x") ? 16 : 10;
  text.remove_prefix(base == 16 ? 2 : 0);
  uint64_t value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failed != std::errc() || end != text.data() + text.size() || value > uint64_t(INT64_MAX) + negative)
    return false;
  out = static_cast<int64_t>(negative ? 0 - value : value);
  return true;
}

bool parseList(std::string_view text, std::vector<int64_t> &out) {
  out.clear();
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    return false;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    int64_t value;
    if (!parseInteger(text.substr(0, comma), value))
      return false;
    out.push_back(value);
    if (comma + 1 == text.size())
      return false;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

std::optional<Instruction> parseInstruction(const std::vector<Token> &tokens, Symbols *symbols, std::string &error) {
  auto in = parseMnemonic(tokens[0].value, error);
  if (!in || !tokens[0].key.empty())
    return error = in ? "a mnemonic is expected" : error, std::nullopt;
  std::optional<Unit> unit = configUnit(in->opcode);
  for (size_t i = 1; i < tokens.size(); ++i) {
    const Token &token = tokens[i];
    int field = in->info().field(token.key);
    bool hidden = in->opcode == Opcode::Move && field >= 0 && field < 2; // src, dst: in the mnemonic
    const ConfigKeyInfo *key = unit ? findConfigKey(token.key, *unit) : nullptr;
    bool done = field >= 0 && !hidden ? parseOperand(*in, field, token, symbols, error)
                : key                 ? parseKey(*in, *key, token, error)
                                      : (error = std::string(in->info().name) + " has no field '" +
                                                 (token.key.empty() ? token.value : token.key) + "'",
                                         false);
    if (!done)
      return std::nullopt;
  }
  return in;
}

} // namespace text

std::optional<Instruction> parseInstruction(std::string_view line, std::string &error) {
  std::vector<text::Token> tokens;
  if (!text::tokenize(line, tokens, error))
    return std::nullopt;
  if (tokens.empty()) {
    error = "an empty line";
    return std::nullopt;
  }
  return text::parseInstruction(tokens, nullptr, error);
}

} // namespace dmx::corsair
