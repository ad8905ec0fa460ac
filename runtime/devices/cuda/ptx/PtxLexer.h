//===- PtxLexer.h - words of a PTX text -------------------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string_view>

namespace dmxrt::cuda {

struct PtxToken {
  enum Kind : uint8_t {
    End,
    Name,   ///< of a register, a label, a variable, an instruction with its modifiers, a directive
    Number, ///< bits; `name` is its text
    Text,   ///< in quotes
    Sign,   ///< one character
    Bad,    ///< no word of the language
  };
  Kind kind = End;
  uint32_t line = 1;
  std::string_view name;
  uint64_t bits = 0;

  bool is(char sign) const { return kind == Sign && name[0] == sign; }
};

/// Words one after the other; comments are passed over.
class PtxLexer {
public:
  explicit PtxLexer(std::string_view text) : text(text) {}
  PtxToken next();

private:
  void skip();
  PtxToken number(size_t begin);
  std::string_view text;
  size_t at = 0;
  uint32_t line = 1;
};

} // namespace dmxrt::cuda
