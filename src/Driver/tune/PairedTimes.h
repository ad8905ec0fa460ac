//===- PairedTimes.h - a candidate beside the default, in turns -*- C++ -*-===//
//
// A processor's times drift with all else that it does. What is compared runs in turns, in an order that alternates,
// and beside each pair stands one of the default with itself: what these differ by is noise, and so is any gain within
// it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gains.h"

#include "dmxc/Tools/Runtime.h"

#include <memory>

namespace dmxc::driver {

/// The bundle of the default, opened twice, and what is measured beside it. One thread.
class PairedTimes {
public:
  static Result<std::unique_ptr<PairedTimes>> open(const std::string &defaultBundle);
  Result<Ratios> compare(const std::string &candidate, size_t pairs);
  /// Nanoseconds of a run of the default.
  double defaultNs() const { return ns; }
  /// The level whose code runs: "x86-64-v3".
  const std::string &level() const { return isa; }

private:
  using Session = std::unique_ptr<tools::ModelSession>;
  static Result<Session> openOne(const std::string &bundle);
  Result<double> time(tools::ModelSession &session) const;

  Session first, again;
  uint32_t runs = 1; ///< of a measure
  double ns = 0;
  std::string isa;
};

} // namespace dmxc::driver
