//===- JsonReader.cpp - JSON that may be hostile --------------------------===//
#include "JsonReader.h"

namespace dmxc::torchfe {

bool jsonDepthIsBounded(std::string_view text) {
  constexpr int kMaxDepth = 200;
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
      if (++depth > kMaxDepth)
        return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

} // namespace dmxc::torchfe
