//===- Encoded.h - device programs in text, encoded -------------*- C++ -*-===//
#pragma once

#include <string>

namespace dmxtest {

/// A program in DLIR, encoded; on failure `assembly` is empty and `error` has the diagnostics.
struct Encoded {
  std::string assembly, error;
};
Encoded encodeText(const std::string &dlir, bool removeConfigs = true);

} // namespace dmxtest
