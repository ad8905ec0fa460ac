//===- Encoded.h - device programs in text, encoded -------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Tensor.h"

#include <string>
#include <vector>

namespace dmxtest {

/// A program in DLIR, encoded; on failure `assembly` is empty and `error` has the diagnostics.
struct Encoded {
  std::string assembly, error;
};
Encoded encodeText(const std::string &dlir, bool removeConfigs = true);

/// What a program in DLIR gives by the interpreter of stages; on failure `error` says why.
struct Evaluated {
  std::vector<dmxc::Tensor> results;
  std::string error;
};
Evaluated evaluateText(const std::string &dlir, const std::vector<dmxc::Tensor> &operands);

} // namespace dmxtest
