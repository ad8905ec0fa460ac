//===- Text.h - pieces of the text form -------------------------*- C++ -*-===//
//
// Private to printer and assembler.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../Image.h"

namespace dmx::corsair::text {

std::string_view nameOf(Rule rule);
std::string_view nameOf(Scope scope);

/// `"text"` with escapes for quotes, backslashes and control characters.
std::string quote(std::string_view text);

/// What a configuration key's value is in text.
enum class KeyForm : uint8_t { Number, Kind, Memory };
KeyForm formOf(ConfigKey key);

/// A word of a line: `key=value`, or a value alone (key empty).
struct Token {
  std::string key, value;
  bool quoted = false;
};
/// Splits a line at blanks outside of quotes; `;` starts a comment.
bool tokenize(std::string_view line, std::vector<Token> &out, std::string &error);

bool parseInteger(std::string_view text, int64_t &out);
/// `[1,2,3]`
bool parseList(std::string_view text, std::vector<int64_t> &out);
std::string printList(const std::vector<int64_t> &values);

/// Names that instructions may use instead of numbers.
class Symbols {
public:
  virtual ~Symbols() = default;
  virtual std::optional<int64_t> function(std::string_view name) = 0;
  virtual int64_t mark(std::string_view text) = 0;
};

/// `tokens[0]` is the mnemonic. `symbols` may be null: then only numbers.
std::optional<Instruction> parseInstruction(const std::vector<Token> &tokens, Symbols *symbols, std::string &error);

} // namespace dmx::corsair::text
