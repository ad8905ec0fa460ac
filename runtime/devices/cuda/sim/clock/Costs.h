//===- Costs.h - what a multiprocessor does with an instruction -*- C++ -*-===//
//
// PTX is not what a GPU runs: ptxas makes one instruction of it, several or none. These are counts of what it makes, on
// units whose rates are those of compute capability 9.0 in the CUDA C++ Programming Guide (throughput of native
// arithmetic instructions). Which unit, not which instruction, is what a report shows.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string_view>

namespace dmxrt::cuda {

struct PtxInstruction;

/// What a sub-partition of a multiprocessor has; Memory is the whole multiprocessor's.
enum class Unit : uint8_t { None, Float, Integer, Double, Special, Memory, Tensor };
inline constexpr size_t kUnits = 7;
std::string_view nameOf(Unit unit);

/// What an instruction is to the clock, beyond the time that it takes.
enum class Effect : uint8_t {
  Plain,
  Access,     ///< global, local or shared memory, by its addresses
  Atomic,     ///< the same, read and written
  Matrices,   ///< ldmatrix, stmatrix
  Exchange,   ///< between lanes
  BulkCopy,   ///< TMA and plain ones
  BulkCommit, ///< of stores
  BulkWait,   ///< for stores
  Initialize, ///< an mbarrier
  Arrive,     ///< at an mbarrier
  Expect,     ///< bytes at an mbarrier
  ArriveExpecting,
  Await,    ///< a phase of an mbarrier
  Meet,     ///< bar.sync
  MeetOnly, ///< bar.arrive
  ClusterArrive,
  ClusterAwait,
  Multiply,    ///< wgmma
  ProductsEnd, ///< wgmma.commit_group
  ProductsWait,
};

/// Of a warp.
struct InstructionCost {
  Effect effect = Effect::Plain;
  Unit unit = Unit::Integer;
  uint8_t issues = 1;   ///< instructions that the warp's scheduler issues; 0: ptxas makes none
  uint8_t clocks = 2;   ///< that the unit is taken by all of them
  uint16_t latency = 4; ///< from the last issue until a result may be read
  bool isFma = false;   ///< of f32
};

InstructionCost costOf(const PtxInstruction &instruction);

} // namespace dmxrt::cuda
