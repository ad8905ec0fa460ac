//===- PtxWords.h - words of a PTX text -------------------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/StringRef.h"

#include <vector>

namespace dmxc::cuda {

struct PtxWord {
  enum Kind : unsigned char { Name, Number, Text, Sign, Bad, End } kind = End;
  llvm::StringRef text; ///< as it stands
  unsigned line = 1;

  bool is(llvm::StringRef other) const { return text == other; }
  /// Of what is no directive.
  bool isOwnName() const { return kind == Name && text[0] != '.'; }
};

/// All words but comments; the last one is an End. What is no word is Bad.
std::vector<PtxWord> wordsOf(llvm::StringRef text);

} // namespace dmxc::cuda
