//===- TextMutator.cpp - other text from text -----------------------------===//
#include "TextMutator.h"

#include <algorithm>
#include <climits>
#include <iterator>

int64_t dmxfuzz::oddNumber(Random &random) {
  static const int64_t numbers[] = {
      0,     1,       -1,      2,         3,         -2,      5,         7,         16,        100,       -100,
      65536, INT_MAX, INT_MIN, INT64_MAX, INT64_MIN, 1 << 20, 1LL << 31, 1LL << 40, 1LL << 46, 1LL << 62, -(1LL << 62)};
  return numbers[random() % (random() % 3 ? 8 : std::size(numbers))];
}

void dmxfuzz::changeText(std::string &text, size_t first, const std::vector<std::string> &words, Random &random) {
  if (text.size() <= first)
    return;
  size_t at = first + random() % (text.size() - first);
  switch (random() % 7) {
  case 0:
    text[at] = static_cast<char>(random());
    break;
  case 1:
    text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
    break;
  case 2:
    text.erase(at, 1 + random() % 16);
    break;
  case 3: {
    std::string part = text.substr(first + random() % (text.size() - first), 1 + random() % 40);
    text.insert(at, part);
    break;
  }
  case 4:
  case 5: {
    const std::string &word = words[random() % words.size()];
    if (random() % 2)
      text.insert(at, word);
    else
      text.replace(at, std::min(word.size(), text.size() - at), word);
    break;
  }
  default:
    text.resize(at);
  }
}
