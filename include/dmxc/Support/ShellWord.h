//===- ShellWord.h - texts as a shell takes them ----------------*- C++ -*-===//
#pragma once

#include <string>

namespace dmxc {

/// One word of a command: in quotes where it has to be.
std::string shellWord(const std::string &text);

} // namespace dmxc
