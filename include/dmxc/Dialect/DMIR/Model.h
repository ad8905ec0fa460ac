//===- Model.h - facts of a whole model -------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Constraints.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

#include <set>
#include <string>

namespace dmxc::dmir {

/// Module: i64, how many nodes the model file has, by name; what ops have no name of, counts by the op's own.
inline constexpr llvm::StringLiteral kNodesAttr = "dmir.nodes";
/// Module, since partition: array of {target, nodes, reason}, for people: what the bundle says of each target's share.
inline constexpr llvm::StringLiteral kPlacementAttr = "dmir.placement";
/// Softmax, until partition is done: text, for people: where its mask was read as a rule, or what is no rule in it.
inline constexpr llvm::StringLiteral kMaskFromAttr = "dmir.mask_from", kMaskUnknownAttr = "dmir.mask_unknown";
/// Module, since partition: array of dictionaries, for people: what each masked attention leaves out.
inline constexpr llvm::StringLiteral kMasksAttr = "dmir.masks";
/// Module: array of dictionaries of texts, for people: in which formats nodes are computed.
inline constexpr llvm::StringLiteral kFormatsAttr = "dmir.formats";
/// The integers or shorter floats (dmir.constant, dlir.buffer) that --numerics made of weights: {bytes = in the model,
/// kept = COUNT, error = f64: RMS of the differences over the RMS of the weights}.
inline constexpr llvm::StringLiteral kRoundedAttr = "dmir.rounded";
mlir::DictionaryAttr roundedFact(mlir::MLIRContext *context, int64_t bytes, int64_t kept, double error);
/// What such an attribute says of the error.
double roundedError(mlir::DictionaryAttr rounded);
/// A cast of weights that --numerics asks for: the constant that it becomes has kRoundedAttr.
inline constexpr llvm::StringLiteral kRoundsWeightsAttr = "dmir.rounds_weights";
/// A product whose operands stay as they are, whatever the mode of --numerics.
inline constexpr llvm::StringLiteral kKeepsPrecisionAttr = "dmir.keeps_precision";
/// Function: array of {size, lower_bound} in bytes, or in units of `unit` bytes (#dmir.dims of one): the arenas that
/// placements name.
inline constexpr llvm::StringLiteral kArenasAttr = "dmir.arenas";
/// Whether an attribute is one of them.
bool isArena(mlir::Attribute attr);
/// Module: "off" where kernels are to look at what masks leave out, too.
inline constexpr llvm::StringLiteral kSparsityAttr = "dmir.sparsity";
/// A product of a region that has several: dictionary of what a strategy says of a single one (`skips`, `flops`,
/// `facts`).
inline constexpr llvm::StringLiteral kProductAttr = "dmir.product";

/// The nodes that were read by name, and those that the module's ops have besides; as nodeName says them.
std::set<std::string> nodeNames(mlir::ModuleOp module, const llvm::StringSet<> &read = {});
/// Gives the module kNodesAttr.
void setNodeCount(mlir::ModuleOp module, const std::set<std::string> &nodes);

/// The names of the nodes that a (fused) location is of, in order, each once; as nodeName says them.
void collectNodes(mlir::Location loc, llvm::SetVector<mlir::StringAttr> &nodes);

/// The size that choices and counts assume of a symbol without a value: long enough for cutting work to pay, short
/// enough for a row to fit the cache; within the symbol's bounds, as `wanted` is then.
inline constexpr int64_t kNominalSize = 128;
int64_t nominalSize(mlir::Operation *op, llvm::StringRef symbol, int64_t wanted = kNominalSize);

/// Whether numbers meet a condition.
bool holds(DimConstraint::Kind kind, int64_t lhs, int64_t rhs);

} // namespace dmxc::dmir
