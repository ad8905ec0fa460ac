//===- Processor.h - what kernels and plans ask about a machine -*- C++ -*-===//
#pragma once

#include "targets/common/code/Launch.h"
#include "targets/common/math/MathTraits.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/BuiltinOps.h"

#include <algorithm>
#include <memory>
#include <string>

namespace dmxc::kernels {

class KernelBuilder;
struct WorkPlan;

/// What a core keeps near, in bytes. Blocks and buffers of kernels are shares of it.
struct Caches {
  int64_t first = 32 << 10, second = 1 << 20;
};

/// The description of a processor, and the plan model of a target: work items must not depend on the level, so plans
/// are made for one of a target's processors and emitted for others.
struct Processor : MathTraits {
  std::string name;
  unsigned vectorBytes = 1; ///< widest vector register; 1: every vector has one lane
  unsigned vectorRegisters = 16;
  unsigned maskedBits = 0; ///< the least width of elements that masked loads and stores take; 0: there are none
  Caches caches;

  /// Lanes of a full register for an element of `bits` bits.
  int64_t lanes(unsigned bits) const { return std::max(vectorBytes * 8 / bits, 1u); }
  /// Whether masked loads and stores of `bits` are instructions.
  bool hasMasks(unsigned bits) const { return maskedBits && bits >= maskedBits; }

  /// Starts a kernel that the target can call; see KernelBuilder. A buffer listed twice is passed twice; `noalias[i]`
  /// is false for buffers that share bytes with another one (in-place results).
  virtual std::unique_ptr<KernelBuilder> makeBuilder(mlir::ModuleOp module, mlir::Location loc, llvm::StringRef name,
                                                     unsigned buffers, unsigned dims,
                                                     llvm::ArrayRef<bool> noalias = {}) const = 0;
  /// How a nest is cut into work items, for threads that take them in runs. `cost`: nanoseconds that an iteration of
  /// the innermost loop takes, roughly; small nests are not cut. `block` is the region's.
  virtual WorkPlan planWork(mlir::Block *block, llvm::ArrayRef<Dim> dims, double cost) const;
  /// Neighbouring elements that a thread takes at a time, of about `size` whose narrowest have `bits`.
  virtual int64_t neighboursOf(int64_t size, unsigned bits) const { return 1; }
  /// Threads that share a row; of a team of one each row is one thread's.
  virtual Team teamOf(const RowShape &shape) const { return {}; }
  /// Bytes of scratch that a block of a team may have at most, and the launch of a kernel with so many for each.
  virtual int64_t mostTeamScratch(const Team &team) const { return 0; }
  virtual Launch launchOfTeams(Dim items, const Team &team, int64_t scratch) const { return {}; }
  /// Rough reciprocal throughput of one op of a kernel, in cycles.
  virtual double costOf(mlir::Operation *op) const;
};

} // namespace dmxc::kernels
