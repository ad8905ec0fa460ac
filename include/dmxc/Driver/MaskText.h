//===- MaskText.h - rules of masks as users write them ----------*- C++ -*-===//
//
//     (b, h, i, j): j <= i and |i - j| < 512 or j // 64 == i // 64
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dmxc::driver {

/// A part of a rule: an integer, or what is true or not.
struct MaskTerm {
  enum Kind { Number, Axis, Add, Sub, Mul, FloorDiv, Mod, Abs, Less, LessEqual, Equal, NotEqual, And, Or, Not };
  Kind kind = Number;
  int64_t number = 0; ///< of Axis: which one
  std::vector<MaskTerm> operands;
};

struct MaskText {
  std::vector<std::string> axes;
  MaskTerm rule;
};

/// An error has the text with a caret below the place where it is wrong.
Result<MaskText> parseMaskText(const std::string &text);

/// INPUT=RULE of --mask.
Result<std::pair<std::string, std::string>> parsePromise(const std::string &text);

} // namespace dmxc::driver
