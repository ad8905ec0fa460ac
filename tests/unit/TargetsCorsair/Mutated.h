//===- Mutated.h - the golden vector's program, changed ---------*- C++ -*-===//
#pragma once

#include <random>
#include <string>
#include <vector>

namespace dmxtest {

/// v17.mlir without its comments.
std::vector<std::string> goldenLines();
/// Changes a number, or drops, doubles or moves a line.
std::string mutated(const std::vector<std::string> &original, std::mt19937 &random);

} // namespace dmxtest
