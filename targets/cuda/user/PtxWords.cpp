//===- PtxWords.cpp - words of a PTX text ----------------------------------===//

#include "PtxWords.h"

#include "llvm/ADT/StringExtras.h"

using namespace dmxc::cuda;
using namespace llvm;

namespace {

bool isFirst(char c) { return isAlpha(c) || c == '_' || c == '$' || c == '%' || c == '.'; }
bool isNext(char c) { return isAlnum(c) || c == '_' || c == '$' || c == '.'; }

class Splitter {
public:
  explicit Splitter(StringRef text) : text(text) {}

  PtxWord next() {
    skip();
    if (at >= text.size())
      return {PtxWord::End, text.substr(text.size()), line};
    size_t begin = at;
    char c = text[at++];
    auto made = [&](PtxWord::Kind kind) { return PtxWord{kind, text.slice(begin, at), line}; };
    if (c == '"') {
      size_t end = text.find_first_of("\"\n", at);
      bool closed = end != StringRef::npos && text[end] == '"';
      at = closed ? end + 1 : text.size();
      return made(closed ? PtxWord::Text : PtxWord::Bad);
    }
    bool isNumber = isDigit(c);
    if (!isNumber && !isFirst(c))
      return made(StringRef("{}[]()<>,;:=+-@!|").contains(c) ? PtxWord::Sign : PtxWord::Bad);
    // Two colons join the parts of a modifier: shared::cta.
    while (at < text.size() && (isNext(text[at]) || text.substr(at, 2) == "::"))
      at += text[at] == ':' ? 2 : 1;
    return made(isNumber ? PtxWord::Number : PtxWord::Name);
  }

private:
  void skip() {
    while (at < text.size()) {
      size_t end = 0;
      if (text.substr(at).starts_with("//"))
        end = text.find('\n', at);
      else if (text.substr(at).starts_with("/*"))
        end = text.find("*/", at + 2) == StringRef::npos ? StringRef::npos : text.find("*/", at + 2) + 2;
      else if (isSpace(text[at]))
        end = at + 1;
      else
        return;
      end = std::min(end, text.size());
      line += static_cast<unsigned>(text.slice(at, end).count('\n'));
      at = end;
    }
  }

  StringRef text;
  size_t at = 0;
  unsigned line = 1;
};

} // namespace

std::vector<PtxWord> dmxc::cuda::wordsOf(StringRef text) {
  std::vector<PtxWord> words;
  Splitter splitter(text);
  do
    words.push_back(splitter.next());
  while (words.back().kind != PtxWord::End);
  return words;
}
