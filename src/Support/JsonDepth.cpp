//===- JsonDepth.cpp - JSON that may be hostile ---------------------------===//
#include "dmxc/Support/JsonDepth.h"

#include <cstddef>

bool dmxc::jsonDepthIsBounded(std::string_view text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth)
        return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}
