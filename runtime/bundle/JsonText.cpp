//===- JsonText.cpp - values of a JSON text -------------------------------===//

#include "JsonText.h"

#include <charconv>

namespace dmxrt {
namespace {

using Kind = JsonValue::Kind;

bool isDigit(char c) { return c >= '0' && c <= '9'; }

class Reader {
public:
  Reader(std::string_view text, JsonText &out) : at(text.data()), end(text.data() + text.size()), out(out) {}

  bool document() {
    JsonValue root;
    if (!value(root, 0))
      return false;
    skipSpace();
    out.values.push_back(root);
    return at == end;
  }

private:
  const char *at, *end;
  JsonText &out;
  std::vector<JsonValue> waiting; // values of containers that are still open

  bool next(char c) {
    bool is = at != end && *at == c;
    at += is;
    return is;
  }
  void skipSpace() {
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
      ++at;
  }
  bool value(JsonValue &result, int depth);
  bool container(JsonValue &result, int depth, char close);
  bool number(JsonValue &result);
  bool word(std::string_view letters);
  bool string(std::string_view &result);
  bool unescape(std::string &result);
  bool codeUnit(uint32_t &unit);
  bool codePoint(uint32_t &point);
  bool character();
  bool multibyte();
};

bool Reader::value(JsonValue &result, int depth) {
  skipSpace();
  if (at == end)
    return false;
  switch (*at) {
  case '{':
    result.kind = Kind::Object;
    return container(result, depth, '}');
  case '[':
    result.kind = Kind::Array;
    return container(result, depth, ']');
  case '"': {
    std::string_view text;
    if (!string(text))
      return false;
    result.kind = Kind::String;
    result.count = static_cast<uint32_t>(text.size());
    result.characters = text.data();
    return true;
  }
  case 't':
    return word("true");
  case 'f':
    return word("false");
  case 'n':
    return word("null");
  default:
    return number(result);
  }
}

bool Reader::container(JsonValue &result, int depth, char close) {
  if (depth >= JsonText::kMaxDepth) {
    out.problem = JsonText::Problem::TooDeep;
    return false;
  }
  ++at;
  size_t begin = waiting.size();
  skipSpace();
  if (!next(close)) {
    do {
      JsonValue child;
      skipSpace();
      if (result.kind == Kind::Object) {
        std::string_view key;
        if (at == end || *at != '"' || !string(key))
          return false;
        child.keyCharacters = key.data();
        child.keyLength = static_cast<uint32_t>(key.size());
        skipSpace();
        if (!next(':'))
          return false;
      }
      if (!value(child, depth + 1))
        return false;
      waiting.push_back(child);
      skipSpace();
    } while (next(','));
    if (!next(close))
      return false;
  }
  result.first = out.values.size();
  result.count = static_cast<uint32_t>(waiting.size() - begin);
  out.values.insert(out.values.end(), waiting.begin() + begin, waiting.end());
  waiting.resize(begin);
  return true;
}

bool Reader::word(std::string_view letters) {
  if (!std::string_view(at, end - at).starts_with(letters))
    return false;
  at += letters.size();
  return true;
}

bool Reader::number(JsonValue &result) {
  const char *begin = at;
  auto digits = [&] {
    const char *first = at;
    while (at != end && isDigit(*at))
      ++at;
    return at != first;
  };
  next('-');
  if (!next('0') && !digits())
    return false;
  const char *whole = at;
  if (next('.') && !digits())
    return false;
  if (next('e') || next('E')) {
    if (!next('+'))
      next('-');
    if (!digits())
      return false;
  }
  // What does not fit stays an Other.
  if (at == whole && std::from_chars(begin, at, result.integer).ec == std::errc())
    result.kind = Kind::Integer;
  return true;
}

bool Reader::string(std::string_view &result) {
  const char *begin = ++at;
  while (at != end) {
    if (*at == '"') {
      result = {begin, static_cast<size_t>(at++ - begin)};
      return true;
    }
    if (*at == '\\') {
      std::string &copy = out.strings.emplace_back(begin, at);
      if (!unescape(copy))
        return false;
      result = copy;
      return true;
    }
    if (!character())
      return false;
  }
  return false;
}

/// The rest of a string with escapes, its end included.
bool Reader::unescape(std::string &result) {
  while (at != end) {
    if (next('"'))
      return true;
    if (next('\\')) {
      if (at == end)
        return false;
      char escape = *at++;
      size_t known = std::string_view("\"\\/bfnrt").find(escape);
      uint32_t point;
      if (known != std::string_view::npos)
        result += "\"\\/\b\f\n\r\t"[known];
      else if (escape != 'u' || !codePoint(point))
        return false;
      else if (point < 0x80)
        result += static_cast<char>(point);
      else {
        int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
        result += static_cast<char>(0xFF00 >> (more + 1) | point >> 6 * more);
        while (more--)
          result += static_cast<char>(0x80 | (point >> 6 * more & 0x3F));
      }
      continue;
    }
    const char *begin = at;
    if (!character())
      return false;
    result.append(begin, at);
  }
  return false;
}

bool Reader::codeUnit(uint32_t &unit) {
  if (end - at < 4)
    return false;
  auto read = std::from_chars(at, at + 4, unit, 16);
  bool valid = read.ptr == at + 4;
  at += 4;
  return valid;
}

/// After "\u": one unit, or a surrogate pair.
bool Reader::codePoint(uint32_t &point) {
  uint32_t low;
  if (!codeUnit(point) || (point >= 0xDC00 && point < 0xE000))
    return false;
  if (point < 0xD800 || point >= 0xE000)
    return true;
  if (!next('\\') || !next('u') || !codeUnit(low) || low < 0xDC00 || low >= 0xE000)
    return false;
  point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

/// One that stands for itself.
bool Reader::character() {
  unsigned char first = static_cast<unsigned char>(*at);
  if (first >= 0x80)
    return multibyte();
  ++at;
  return first >= 0x20;
}

/// A character of several bytes, by Unicode's table of well-formed UTF-8 (3-7).
bool Reader::multibyte() {
  unsigned char first = static_cast<unsigned char>(*at++);
  int more = first >= 0xC2 && first < 0xE0 ? 1 : (first & 0xF0) == 0xE0 ? 2 : first >= 0xF0 && first < 0xF5 ? 3 : 0;
  if (more == 0 || end - at < more)
    return false;
  unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (; more; --more, low = 0x80, high = 0xBF) {
    unsigned char c = static_cast<unsigned char>(*at++);
    if (c < low || c > high)
      return false;
  }
  return true;
}

} // namespace

JsonText::JsonText(std::string_view text) {
  if (text.size() > kMaxLength) {
    problem = Problem::TooLong;
  } else {
    values.reserve(text.size() / 8 + 1); // about what a graph has
    if (Reader(text, *this).document())
      return;
  }
  if (problem == Problem::None)
    problem = Problem::Invalid;
  values.assign(1, {});
}

} // namespace dmxrt
