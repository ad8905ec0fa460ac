//===- Stay.h - rows of a that stay in memory tiles -------------*- C++ -*-===//
//
// Rows of a block come once, along all of k: of a matrix as they lie, of an image the pixels of their windows, each one
// time. Memory tiles send them to the cores again for each block beside the first, walking over windows as a shim
// would; the cores put them into the order of matrix steps.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Mapping.h"

namespace dmxc::aie {

struct Stay {
  /// By which rows leave the memory tile, in elements: the terms of a matrix step after each other, of each all rows.
  struct Walk {
    int64_t offset;
    llvm::SmallVector<std::pair<int64_t, int64_t>, 3> dims; ///< counts and steps, the outermost first
  };

  Stay(const hw::Machine &machine, const Mapping &mapping);

  std::optional<std::string> why; ///< a clause where the array does not hold them
  std::vector<Walk> walks;        ///< of a part for a block, one BD each
  int64_t slot = 0;               ///< elements of a part
  int64_t planes = 1, length = 0; ///< of an image, and elements of each
  int64_t uses = 1;               ///< blocks beside each other for which rows come once
  int64_t turns = 1;              ///< two where the next ones come meanwhile
  int64_t chunks = 1;             ///< pieces of a panel of b that comes by a channel of rows of a
  bool once = false;              ///< one time in a run by a channel that brings panels of b behind it, tile after tile

  /// Parts of a column that come by a channel of its shim.
  static int64_t partsOf(const Herd &herd, int64_t channel) {
    return (herd.parts() - channel + herd.panels - 1) / herd.panels;
  }
  /// Rows of a chunk of a panel.
  int64_t chunkRows(const Mapping &mapping) const { return mapping.tilesOfB() / chunks * mapping.numbers.k; }

private:
  void layOut(const hw::Machine &machine, const Mapping &mapping);
  void choose(const hw::Machine &machine, const Mapping &mapping);
  bool holds(const hw::Machine &machine, const Mapping &mapping) const;
};

} // namespace dmxc::aie
