//===- PtxLexer.cpp - words of a PTX text -------------------------------------===//

#include "PtxLexer.h"

#include <algorithm>
#include <charconv>

namespace dmxrt::cuda {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isFirst(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%'; }
/// Points join an instruction with its modifiers and a special register with its part.
bool isNext(char c) { return isFirst(c) || isDigit(c) || c == '.'; }

} // namespace

void PtxLexer::skip() {
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n')
      ++line;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      end = end == text.npos ? text.size() : end + 2;
      for (; at < end; ++at)
        line += text[at] == '\n';
    } else {
      return;
    }
  }
}

/// 12, 0x1f, 0f3f800000, 0d3ff0000000000000; a U behind an integer says nothing.
PtxToken PtxLexer::number(size_t begin) {
  PtxToken token{PtxToken::Number, line, {}, 0};
  int base = 10;
  if (text[at] == '0' && at + 1 < text.size())
    switch (text[at + 1]) {
    case 'x':
    case 'X':
    case 'f':
    case 'F':
    case 'd':
    case 'D':
      base = 16;
      at += 2;
      break;
    default:
      break;
    }
  const char *first = text.data() + at, *last = text.data() + text.size();
  auto [end, failed] = std::from_chars(first, last, token.bits, base);
  at += static_cast<size_t>(end - first);
  if (at < text.size() && text[at] == 'U')
    ++at;
  token.name = text.substr(begin, at - begin);
  char form = token.name.size() > 1 ? token.name[1] : ' ';
  bool wrongLength = ((form == 'f' || form == 'F') && token.name.size() != 10) ||
                     ((form == 'd' || form == 'D') && token.name.size() != 18);
  if (failed != std::errc() || end == first || wrongLength || (at < text.size() && isNext(text[at])))
    token.kind = PtxToken::Bad;
  return token;
}

PtxToken PtxLexer::next() {
  skip();
  if (at >= text.size())
    return {PtxToken::End, line, {}, 0};
  size_t begin = at;
  char c = text[at];
  if (isDigit(c))
    return number(begin);
  if (isFirst(c) || (c == '.' && at + 1 < text.size() && isFirst(text[at + 1]))) {
    // Two colons join the parts of a modifier: shared::cta.
    auto joins = [&] { return text.substr(at, 2) == "::" && at + 2 < text.size() && isFirst(text[at + 2]); };
    for (++at; at < text.size() && (isNext(text[at]) || joins()); ++at)
      at += text[at] == ':';
    return {PtxToken::Name, line, text.substr(begin, at - begin), 0};
  }
  if (c == '"') {
    size_t end = text.find_first_of("\"\n", at + 1);
    bool closed = end != text.npos && text[end] == '"';
    at = closed ? end + 1 : text.size();
    return {closed ? PtxToken::Text : PtxToken::Bad, line, text.substr(begin, at - begin), 0};
  }
  ++at;
  constexpr std::string_view signs = "{}[]()<>,;:=+-@!|";
  return {signs.find(c) == signs.npos ? PtxToken::Bad : PtxToken::Sign, line, text.substr(begin, 1), 0};
}

} // namespace dmxrt::cuda
