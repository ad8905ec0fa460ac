//===- InspectHtml.h - sections of dmx-inspect's page -----------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "InspectView.h"

namespace dmxc::tools {

/// The view "kernels" of a bundle: tables, and of every code object that a viewer knows the memories with what lies
/// where, and the disassembly.
std::string codeSections(const bundle::Bundle &bundle, const View &kernels);

/// What devices wrote of runs: reports with their figures, traces as timelines. Files that are neither, and those of
/// kernels that the bundle does not have, are errors.
Result<std::string> reportSections(const bundle::Bundle &bundle, const std::vector<std::string> &files);
/// One figure a process, one row a thread; Chrome's trace-event format.
std::string timelineSection(const Json &trace);

/// What --report of dmxc tune has: a table, and of each region a plot of what was measured.
std::string tuningSection(const Json &report);

/// Whether a file is no bundle but what dmxc tune --db writes, lines of JSON; and what it has.
bool isTuningDatabase(const std::string &path);
Result<View> tuningView(const std::string &path);

} // namespace dmxc::tools
