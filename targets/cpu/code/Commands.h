//===- Commands.h - what tools would do of a level's code -------*- C++ -*-===//
#pragma once

#include "Lowering.h"

#include <span>

namespace dmxc::cpu {

/// The commands that make the code of a level from the files of --save-temps, a line each: LLVM's llc for the table and
/// each kernel, then its linker, which makes `result`.
std::string levelCommands(std::span<const KernelObject> objects, const std::string &result, unsigned optLevel);

} // namespace dmxc::cpu
