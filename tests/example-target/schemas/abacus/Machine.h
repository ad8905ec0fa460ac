//===- Machine.h - the abacus -----------------------------------*- C++ -*-===//
//
// What compiler and runtime share: the machine that programs are for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/queues/Program.h"

namespace dmx::abacus {

inline constexpr int64_t kTile = 16;       ///< rows and columns of the f32 that the engine multiplies
inline constexpr int64_t kTileClocks = 16; ///< that it takes for two tiles
inline constexpr int64_t kTileBytes = kTile * kTile * 4, kTileMacs = kTile * kTile * kTile;

/// DRAM has the tensors, SRAM tiles of them.
inline constexpr queues::Memory kMemories[] = {{"DRAM", 1 << 28, 16}, {"SRAM", 1 << 14, 64}};
inline constexpr std::string_view kEngineTasks[] = {"abacus.multiply"};
inline constexpr double kClockHz = 1e9;
inline constexpr queues::Machine kMachine{"abacus", kMemories, kEngineTasks,
                                          "f32",    kClockHz,  2.0 * kTileMacs / kTileClocks * kClockHz};

} // namespace dmx::abacus
