//===- ProductDecisions.h - what of a region's products is free -*- C++ -*-===//
//
// A product's decisions have its node's name as their scope: decided = {quads = 8, "layer/fc" = {split = "rows"}}. They
// are written to the op as lldmir.deal and lldmir.plan, which is what everything later reads. Products whose node's
// name others have, too, have no decisions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Decide.h"

#include "dmxc/Target/Decision.h"

namespace dmxc::corsair {

/// Products of a body that have decisions, by scope.
llvm::SmallVector<std::pair<std::string, mlir::Operation *>> namedProducts(mlir::Block *body);

/// Whether a split of some product is decided: it is one for a known team.
bool decidesSplits(mlir::Block *body, mlir::DictionaryAttr decided);
/// Writes the splits that are decided (`decided` may be null) for a team to their products; an error where the text has
/// another one.
Status writeSplits(mlir::Block *body, mlir::DictionaryAttr decided, int quads);
/// What is decided of the plan of a product.
PlanChoice planChoiceOf(mlir::Operation *product, mlir::DictionaryAttr decided);

/// What is free of the products of a body that nothing is written to, for a team, given what is decided. `fresh` makes
/// a copy of the body.
std::vector<Decision> productDecisions(mlir::Block *body, const hw::Machine &machine, int quads,
                                       const ArgumentKinds &kinds, mlir::DictionaryAttr decided);

} // namespace dmxc::corsair
