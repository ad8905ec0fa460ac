//===- Decide.h - how a region's ops are computed ---------------*- C++ -*-===//
//
// Decided once, in partition, and written to the ops: lldmir.deal, lldmir.gather, lldmir.bias, lldmir.plan. What the
// ops have of it already, from text, is obeyed or refused; what is left out is decided. All later phases read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "MatmulPlan.h"

namespace dmxc::corsair {

/// Decides for all ops of a region, and for the size of the team (`quads`; 0: the fastest). `isConstant`: the argument
/// is one. Errors name the node and the key.
Result<Distribution> decide(mlir::Block *body, const hw::Machine &machine, int quads,
                            llvm::function_ref<bool(mlir::Value)> isConstant);

/// Deals the ops to a number of quads. Writes nothing.
Result<Distribution> distribute(mlir::Block *body, const hw::Machine &machine, int quads,
                                llvm::function_ref<bool(mlir::Value)> isConstant);

MatmulPlan planMatmul(const hw::Machine &machine, int64_t m, int64_t n, int64_t k, int64_t batch = 1);
/// The plan of a convolution: rows are output pixels, K is kernel positions times blocks of 64 channels.
MatmulPlan planConv(const hw::Machine &machine, int64_t pixels, int64_t channelsOut, int64_t kChunks);

/// While there is one, this thread decides nothing: what is above ends the program.
class DecisionsMade {
public:
  DecisionsMade();
  ~DecisionsMade();
  DecisionsMade(const DecisionsMade &) = delete;
  DecisionsMade &operator=(const DecisionsMade &) = delete;
  static void check();
};

} // namespace dmxc::corsair
