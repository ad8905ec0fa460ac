//===- TuneReport.h - what dmxc tune says of what it found ------*- C++ -*-===//
#pragma once

#include <string>
#include <vector>

namespace dmxc::driver {

/// Of one region, or of the parameters of scripts. Measures are of the whole model.
struct TunedRow {
  std::string node, device, decided;
  double before = 0, best = 0; ///< with the default, and with what was found
  size_t trials = 0;
  std::vector<double> measured; ///< in their order, the default's first
  std::string remark;           ///< why there is no figure; "" where there is
};

struct TuneReport {
  std::string model, unit; ///< "clocks", or "ns" of a processor
  std::vector<TunedRow> rows;

  /// A line a region, for people.
  std::string table() const;
  std::string json() const;
};

} // namespace dmxc::driver
