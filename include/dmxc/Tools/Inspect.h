//===- Inspect.h - what dmx-inspect does ------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Reader.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace dmxc::tools {

/// The command line of dmx-inspect (cli.md), one field a flag.
struct InspectOptions {
  std::string bundle;
  std::string what; ///< empty: summary, unless another action was asked for
  bool json = false;
  bool check = false;
  bool verify = false;
  std::string diffWith;
  std::string htmlFile;
};

/// The values of --what, in the order of the help.
const std::vector<std::string> &inspectViews();

/// Prints what was asked for to `out`. A bundle that --check or --verify finds
/// unsound, and two that --diff finds different, are ErrorKind::Mismatch.
Status inspectBundle(const InspectOptions &options, std::ostream &out);

/// One page without scripts or outside files: summary, memory map (time from
/// left to right, arena offsets from bottom to top), tables of tasks and
/// entries.
std::string inspectHtml(const bundle::Bundle &bundle);

} // namespace dmxc::tools
