//===- TargetHelp.h - a target's part of the command line's texts -*- C++ -*-===//
//
// A target with a file Help.cpp says there, in its own words, what the help and the messages of dmxc show of it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <vector>

namespace dmxc {

struct TargetHelp {
  struct Example {
    std::string levels; ///< of -t, after the colon; may be empty
    std::string what;   ///< what such a compile gives
  };
  std::string levels;               ///< "fast, small; default fast": those of -t
  std::string numerics;             ///< the modes of --numerics and what they do
  std::vector<Example> examples;    ///< the first one with levels stands in messages too
  std::string defaultNumerics;      ///< the mode that is the target's own; "" = none has a name
  std::vector<std::string> aliases; ///< what users call it: "gpu"
  /// Keys of a kernel file's bodies for it, of those that say how a machine runs a body: "launch".
  std::vector<std::string> bodyKeys = {};
  std::string bodies = {}; ///< what such bodies are, where they are no objects: "a text, and its launch"
};

/// Of a registered target; empty where it says nothing. Defined beside the registry.
const TargetHelp &helpOf(const std::string &target);

} // namespace dmxc
