//===- Space.h - the candidates of a tuner ----------------------*- C++ -*-===//
#pragma once

#include "../schedule/Schedule.h"
#include "Search.h"

#include "dmxc/Driver/Compilation.h"

namespace dmxc::driver {

/// Candidates in program order and in that of the domains' values; `points` has their positions.
template <typename Candidate> struct Space {
  std::vector<Point> points;
  std::vector<Candidate> candidates;
  /// Those whose numbers are powers of two, which divide most extents: worth trying first.
  std::vector<size_t> promising;
  size_t refused = 0; ///< values of scripts' parameters that a target refused together; no candidate has them
};

/// More candidates than this are an error: nobody would try them.
inline constexpr size_t kMostCandidates = 1 << 16;

/// "tile=8 unroll=2", with `before` in front of each.
std::string knobText(const Schedule::Values &values, const char *before = "");

/// A region that a tuner may decide of.
struct TunedRegion {
  dmir::RegionOp op;
  std::string node, device, level, fingerprint;
  std::vector<Decision> decisions; ///< where nothing more is decided than scripts do
};

/// All values of the scripts' parameters, exactly: each script is run on a copy of the module up to the first parameter
/// that is open, whose values go on. What `options` set is no parameter. False after errors.
bool scriptSpace(const Options &options, Compilation &compilation, Diagnostics &diagnostics,
                 Space<Schedule::Values> &space);

/// The regions of the module that something is free of, on devices whose clocks are simulated or on all.
std::vector<TunedRegion> tunedRegions(const Options &options, Compilation &compilation, bool onDevicesAlone);

} // namespace dmxc::driver
