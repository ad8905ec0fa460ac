//===- Decide.h - how a region's ops are computed ---------------*- C++ -*-===//
//
// Decided once, in partition, and written to the ops: lldmir.deal, lldmir.gather, lldmir.bias, lldmir.plan. What the
// ops have of it already, from text, is obeyed or refused; what is left out is decided. All later phases read.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Spread.h"

#include "dmxc/Target/DecisionsMade.h"

namespace dmxc::corsair {

/// What arguments of a region are; what neither is stays on the device.
struct ArgumentKinds {
  llvm::function_ref<bool(mlir::Value)> isConstant; ///< part of the bundle
  llvm::function_ref<bool(mlir::Value)> isInput;    ///< the host brings it in every run
  bool fetchesWeights = false;                      ///< packed weights come from DDR for every product
  /// Where a constant has other numbers than zeros; null: wherever.
  llvm::function_ref<std::shared_ptr<const KeptColumns>(mlir::Value)> zeros = nullptr;
  bool computesZeros = false; ///< what zeros make no difference to is computed, too
};

/// What a quad's GM must hold at once, in bytes: shares, and what gathers make whole, from op to op. Without constants,
/// and without what is copied only because of where it lies.
int64_t peakBytes(mlir::Block *body, const Distribution &deal);

/// How many quads compute a region.
struct Team {
  int size = 0; ///< 0: the fastest of teamSizes(.., most)
  int most = 0;
};

/// Decides for all ops and inputs of a region, and for the size of the team. `inputs`: deals of inputs that the text
/// has, by argument number; may be null. `decided` (may be null) holds what plans must have; splits are written already
/// (ProductDecisions.h). Errors name the node and the key.
Result<Distribution> decide(mlir::Block *body, const hw::Machine &machine, Team team, mlir::DictionaryAttr inputs,
                            const ArgumentKinds &kinds, mlir::DictionaryAttr decided = {});

/// Deals the ops to a number of quads that have these parts of arguments. Writes nothing.
Result<Distribution> distribute(mlir::Block *body, const hw::Machine &machine, int quads,
                                const llvm::DenseMap<mlir::Value, Split> &inputs, const ArgumentKinds &kinds);
/// Whether an op, which has its attributes, reads no more of an operand than this part.
bool readsPart(mlir::Operation *op, mlir::Value operand, Split part, const Distribution &deal,
               const hw::Machine &machine, llvm::function_ref<bool(mlir::Value)> isConstant);
/// Gives each input that only one part of is read by a quad that part (DealInputs.cpp). The ops have their attributes.
/// `given`: inputs that the text has a deal of, which stays.
void dealInputs(mlir::Block *body, Distribution &deal, const hw::Machine &machine, const ArgumentKinds &kinds,
                mlir::DictionaryAttr given);

/// What a plan must have, whatever is fastest.
struct PlanChoice {
  std::optional<int> imc;
  std::optional<Sharing> sharing;
  explicit operator bool() const { return imc || sharing; }
};

/// The fastest way to spread a product. `narrow`: of a window of scores, of which fewer columns are taken at once.
Spread chooseSpread(const hw::Machine &machine, Spread product, PlanChoice choice = {}, bool narrow = false);
/// Clocks of the arrays for a product, or the batch of them.
double arrayClocks(const hw::Machine &machine, const Spread &plan);

/// While there is one, what is above ends the program.
using dmxc::DecisionsMade;

} // namespace dmxc::corsair
