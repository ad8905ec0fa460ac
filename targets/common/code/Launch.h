//===- Launch.h - what a launch gives a kernel of blocks --------*- C++ -*-===//
#pragma once

#include "targets/common/tiles/Tiles.h"

#include "dmxc/Support/Dim.h"

#include <optional>
#include <string>
#include <vector>

namespace dmxc::kernels {

/// Threads that share a row.
struct Team {
  int64_t threads = 1; ///< of a block
  int64_t blocks = 1;  ///< of a row, which reach into each other's memory
  int64_t columns = 1; ///< rows beside each other that a block has at a time; its threads are dealt out to them in turn

  int64_t here() const { return threads / columns; } ///< that share a row, in a block
  int64_t members() const { return here() * blocks; }
  bool shares() const { return threads > 1; }
  static llvm::ArrayRef<TileField<Team>> fields();
};

/// The rows of a kernel, as who chooses a team sees them.
struct RowShape {
  Dim count;                  ///< elements of a row
  int64_t size = 1, rows = 1; ///< about how many they are, and the rows
  int64_t beside = 1;         ///< rows whose elements lie beside each other; 1: a row's own do
  int64_t bytes = 4;          ///< of an element
  double passes = 1;          ///< how often a row's elements are computed
};

/// How a tensor lies in memory, for an engine that copies boxes of it: axes from the innermost one on.
struct TensorMap {
  unsigned buffer = 0;        ///< of the task
  std::string type;           ///< "bf16", "f16"
  std::vector<Dim> sizes;     ///< elements
  std::vector<Dim> strides;   ///< bytes, of the axes but the innermost one
  std::vector<int64_t> box;   ///< elements that a copy reaches over
  Dim offset = 0;             ///< bytes into the buffer
  int64_t swizzle = 128;      ///< bytes within which it mixes 16 of them
  std::vector<int64_t> steps; ///< how manieth element of the box a copy takes; none: each
};

/// Blocks of threads, and what each of them has.
struct Launch {
  Dim grid = 1;       ///< blocks
  int64_t block = 1;  ///< threads
  int64_t shared = 0; ///< bytes of memory that a block's threads share
  std::vector<TensorMap> maps;
  bool movesRegisters = false;             ///< groups of a block's threads give registers to each other
  int64_t cluster = 1;                     ///< blocks that do a work item together
  int64_t columns = 1;                     ///< rows beside each other that they do at a time
  std::optional<std::vector<Dim>> scalars; ///< sizes that the kernel is given; nothing: its dims
};

} // namespace dmxc::kernels
