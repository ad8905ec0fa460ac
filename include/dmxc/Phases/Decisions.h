//===- Decisions.h - what was decided of regions ----------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Sparsity.h"
#include "dmxc/Target/TargetBackend.h"

namespace dmxc {

/// The `decided` dictionary of a region's strategy; empty where there is none. What text has may be of any type: then
/// null.
mlir::DictionaryAttr decidedOf(dmir::RegionOp region);

/// `decided` with the entries of `added`, which replace those of the same name and scope.
mlir::DictionaryAttr mergeDecided(mlir::DictionaryAttr decided, mlir::DictionaryAttr added);

/// `decided` with a value of a decision.
mlir::DictionaryAttr withDecided(mlir::DictionaryAttr decided, const Decision &decision, mlir::Attribute value);

/// What `decided` has for a decision; null where it leaves it open.
mlir::Attribute decidedValue(mlir::DictionaryAttr decided, const Decision &decision);

/// The strategy of a region by its target, with what the region's own has `decided`. Refuses what the target has no
/// decision or no value for; the sentence names the node and what there is.
Result<mlir::DictionaryAttr> completeStrategy(const TargetBackend &target, dmir::RegionOp region);

struct PhaseContext;

/// The same of a region that the context's target may compute, and where what the region's strategy has already, from
/// text, is what the target derives; else a sentence of the key.
Result<mlir::DictionaryAttr> checkedStrategy(const PhaseContext &context, dmir::RegionOp region);

/// Keys of a strategy that describe the task or who chose what, not the kernel: kernels have none of them.
inline constexpr llvm::StringLiteral taskKeys[] = {strategy::kDecided, strategy::kFlops, strategy::kBytes,
                                                   strategy::kInPlace, strategy::kSkips, dmir::kFactsKey};

} // namespace dmxc
