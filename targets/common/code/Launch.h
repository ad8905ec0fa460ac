//===- Launch.h - what a launch gives a kernel of blocks --------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Dim.h"

#include <string>
#include <vector>

namespace dmxc::kernels {

/// How a tensor lies in memory, for an engine that copies boxes of it: axes from the innermost one on.
struct TensorMap {
  unsigned buffer = 0;      ///< of the task
  std::string type;         ///< "bf16", "f16"
  std::vector<Dim> sizes;   ///< elements
  std::vector<Dim> strides; ///< bytes, of the axes but the innermost one
  std::vector<int64_t> box; ///< elements that a copy reaches over
  Dim offset = 0;           ///< bytes into the buffer
};

/// Blocks of threads, and what each of them has.
struct Launch {
  Dim grid = 1;       ///< blocks
  int64_t block = 1;  ///< threads
  int64_t shared = 0; ///< bytes of memory that a block's threads share
  std::vector<TensorMap> maps;
  bool movesRegisters = false; ///< groups of a block's threads give registers to each other
};

} // namespace dmxc::kernels
