//===- Runs.h - tiles of b that are zero and stay away ----------*- C++ -*-===//
//
// Of a constant b each block of columns has runs of pairs of tiles along k. The others are not in DDR, rows of a that
// would meet them are not read, and cores take fewer pairs for the block. All cores of a block take the same.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Mapping.h"

namespace dmxc::aie {

/// Gives the mapping the runs with which it costs least, or none where all pairs cost no more.
void leaveOut(const hw::Machine &machine, Mapping &mapping);
/// nullopt where the array takes these runs, which may be those of a text; else a clause that says why not.
std::optional<std::string> refusesRuns(const hw::Machine &machine, const Mapping &mapping);

/// Blocks beside each other of which cores take the same number of pairs.
struct Stretch {
  int64_t blocks, pairs;
};
/// Of the blocks of all columns; what cores have code for. One where they need not tell blocks apart.
llvm::SmallVector<Stretch> stretchesOf(const Mapping &mapping);

/// Multiplications of the model without those that are left out.
Dim issuedMacs(const Mapping &mapping);
/// Of the tiles of b as many as cores do not take.
double shareLeftOut(const Mapping &mapping);

} // namespace dmxc::aie
