//===- Inspect.h - what dmx-inspect does ------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Reader.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace dmxc::tools {

/// The command line of dmx-inspect (tools/dmx-inspect), one field a flag.
struct InspectOptions {
  std::string bundle;
  std::string what;   ///< empty: summary, unless another action was asked for
  std::string kernel; ///< limits the view "kernels"
  bool json = false;
  bool check = false;
  bool verify = false;
  std::string diffWith;
  std::string htmlFile;
  std::vector<std::string> reportFiles; ///< what a device wrote of a run, for the page
};

/// The values of --what, in the order of the help.
const std::vector<std::string> &inspectViews();

/// Prints what was asked for to `out`. A bundle that --check or --verify finds
/// unsound, and two that --diff finds different, are ErrorKind::Mismatch.
Status inspectBundle(const InspectOptions &options, std::ostream &out);

/// One page without scripts or outside files: summary, memory maps of arenas and of the code objects that a viewer
/// knows (time from left to right, addresses from bottom to top), tables of tasks and entries; of every report the
/// figures and of every trace a timeline.
Result<std::string> inspectHtml(const bundle::Bundle &bundle, const std::vector<std::string> &reportFiles = {});

/// Compares with `options.diffWith`: ErrorKind::Mismatch when they differ.
Status printDiff(const bundle::Bundle &a, const InspectOptions &options, std::ostream &out);

} // namespace dmxc::tools
