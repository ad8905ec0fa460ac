//===- Tolerances.h - how near each case must come --------------*- C++ -*-===//
#pragma once

#include <map>
#include <string>

namespace dmxc::conformance {

struct Tolerance {
  double rtol, atol;
  std::string group; ///< "core", "extended", ...; "" where the table has no column `class`
};

/// The columns `rtol`, `atol` and `class` of a table of cases by the last part of its column `case`; for names that
/// stand in it several times the first row counts. Empty when the file cannot be read.
std::map<std::string, Tolerance> readTolerances(const std::string &path);

} // namespace dmxc::conformance
