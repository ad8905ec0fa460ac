//===- TextMutator.h - other text from text ---------------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace dmxfuzz {

using Random = std::mt19937;

/// Numbers at the edges of what sizes, axes and counts may be; mostly small ones, which reach further.
int64_t oddNumber(Random &random);

/// One change of the bytes behind `first`: a byte or bit, a part dropped, doubled or cut off, one of `words`.
void changeText(std::string &text, size_t first, const std::vector<std::string> &words, Random &random);

} // namespace dmxfuzz
