//===- Tolerances.h - how near each case must come --------------*- C++ -*-===//
#pragma once

#include <map>
#include <string>

namespace dmxc::conformance {

struct Tolerance {
  double rtol, atol;
};

/// The columns `rtol` and `atol` of a table of cases by the last part of its column `case`; for names that stand in it
/// several times the first row counts. Empty when the file cannot be read.
std::map<std::string, Tolerance> readTolerances(const std::string &path);

} // namespace dmxc::conformance
