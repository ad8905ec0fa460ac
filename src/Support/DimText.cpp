//===- DimText.cpp - dims from their texts --------------------------------===//

#include "DimText.h"

#include <algorithm>

using namespace dmxc;

/// What importers make stays far below it (kMaxDimText of frontends/common), products of it included.
static constexpr size_t kMaxDimText = 4000;

bool dmxc::isIdentifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name.front()))
    return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

namespace {

/// Recursive descent over the canonical text (and any other with the same operators).
class Parser {
public:
  explicit Parser(std::string_view text) : text(text) {}

  std::optional<Dim> parse() {
    std::optional<Dim> dim = parseSum(0);
    skipSpace();
    return at == text.size() ? dim : std::nullopt;
  }

  bool isTooComplex = false; ///< why there is none

private:
  static constexpr int kMaxDepth = 64;

  /// Products of sums have as many terms as the sums' numbers of terms multiplied: twelve sums of five have 1820.
  std::optional<Dim> bounded(Dim dim) {
    isTooComplex |= !dim.isStatic() && dim.str().size() > kMaxDimText;
    return isTooComplex ? std::nullopt : std::optional<Dim>(dim);
  }

  void skipSpace() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(char c) {
    skipSpace();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  std::optional<Dim> parseSum(int depth);
  std::optional<Dim> parseProduct(int depth);
  std::optional<Dim> parseFactor(int depth);
  std::optional<Dim> parseNumber();
  std::optional<Dim> parseQuoted();
  std::optional<Dim> parseNamed(int depth);

  std::string_view text;
  size_t at = 0;
};

std::optional<Dim> Parser::parseSum(int depth) {
  bool negative = take('-');
  std::optional<Dim> total = parseProduct(depth);
  if (total && negative)
    total = Dim(-1) * *total;
  while (total) {
    bool minus = take('-');
    if (!minus && !take('+'))
      break;
    std::optional<Dim> next = parseProduct(depth);
    if (!next)
      return std::nullopt;
    total = bounded(minus ? *total - *next : *total + *next);
  }
  return total;
}

std::optional<Dim> Parser::parseProduct(int depth) {
  std::optional<Dim> result = parseFactor(depth);
  while (result && take('*')) {
    std::optional<Dim> next = parseFactor(depth);
    if (!next)
      return std::nullopt;
    result = bounded(*result * *next);
  }
  return result;
}

std::optional<Dim> Parser::parseFactor(int depth) {
  skipSpace();
  if (at >= text.size() || depth > kMaxDepth)
    return std::nullopt;
  if (take('(')) {
    std::optional<Dim> inner = parseSum(depth + 1);
    return inner && take(')') ? inner : std::nullopt;
  }
  if (text[at] >= '0' && text[at] <= '9')
    return parseNumber();
  return text[at] == '\'' ? parseQuoted() : parseNamed(depth);
}

std::optional<Dim> Parser::parseNumber() {
  int64_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, text[at] - '0', &number))
      return std::nullopt;
  return Dim(number);
}

std::optional<Dim> Parser::parseQuoted() {
  std::string name;
  for (++at; at < text.size() && text[at] != '\''; ++at) {
    if (text[at] == '\\')
      ++at;
    if (at == text.size())
      return std::nullopt;
    name += text[at];
  }
  return take('\'') && !name.empty() ? std::optional<Dim>(Dim::symbol(name)) : std::nullopt;
}

std::optional<Dim> Parser::parseNamed(int depth) {
  size_t end = at;
  while (end < text.size() && isIdentifier(text.substr(at, end + 1 - at)))
    ++end;
  std::string_view name = text.substr(at, end - at);
  if (name.empty())
    return std::nullopt;
  at = end;
  if (!take('('))
    return Dim::symbol(name);
  std::optional<Dim> a = parseSum(depth + 1);
  std::optional<Dim> b = a && take(',') ? parseSum(depth + 1) : std::nullopt;
  if (!b || !take(')'))
    return std::nullopt;
  for (Dim::Call call : {Dim::Call::FloorDiv, Dim::Call::Min, Dim::Call::Max, Dim::Call::Broadcast})
    if (name == dimCallName(call))
      return bounded(simplifiedCall(call, *a, *b));
  return std::nullopt;
}

} // namespace

Result<Dim> Dim::parse(std::string_view text) {
  constexpr size_t shown = 100;
  std::string start = "'" + std::string(text.substr(0, shown)) + (text.size() > shown ? "..." : "") + "'";
  if (text.size() > kMaxDimText)
    return modelError(start + " has " + std::to_string(text.size()) + " characters, more than the " +
                      std::to_string(kMaxDimText) + " of an expression over dims");
  Parser parser(text);
  if (std::optional<Dim> dim = parser.parse())
    return *dim;
  if (parser.isTooComplex)
    return modelError(start + " has more than " + std::to_string(kMaxDimText) +
                      " characters when it is multiplied out; give a part of it a name of its own");
  return modelError(start + " is no expression over dims");
}
