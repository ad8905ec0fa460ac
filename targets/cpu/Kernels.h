//===- Kernels.h - the kernels of the CPU target ----------------*- C++ -*-===//
#pragma once

#include "code/IsaLevel.h"
#include "product/RoundedWeights.h"

#include "targets/common/roots/KernelTable.h"

#include "dmxc/Target/TargetBackend.h"

namespace dmxc::cpu {

struct GemmSpec;
/// Key of a strategy: what is decided of the tiles of levels and differs from their own choice.
inline constexpr llvm::StringLiteral kTiles = "tiles";

/// Those of targets/common, products and convolutions. Requests for its plans are Choices.
const KernelTable &cpuKernels();

/// What a root's constant weights are packed for. A packing that the root does not have counts as Fastest.
enum class Packing { Fastest, Plain, Fours, Blocks, BF16, S8, Winograd, None };
/// The packing of a form's name; None for those that are no form.
Packing packingOfForm(llvm::StringRef form);

/// Writes the packed form of a constant into `out`.
Status packConstant(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

/// What a plan rests on besides the body.
struct Choice : PlanRequest {
  llvm::function_ref<bool(unsigned)> constant =
      nullptr;                               ///< operand i is a constant of the model; asked without a strategy
  WeightFormat weights = WeightFormat::Kept; ///< of the constants whose bytes a product waits for
  Packing packing = Packing::Fastest;
  mlir::DictionaryAttr tiles; ///< what is decided of tiles, by level; null: nothing
  /// Told of the product that a plan blocks, where there is one.
  llvm::function_ref<void(const GemmSpec &)> onProduct = nullptr;

  explicit Choice(mlir::DictionaryAttr strategy = {}, const IsaLevel &nominal = IsaLevel::nominal())
      : PlanRequest{nominal, strategy} {}
  static const Choice &of(const PlanRequest &request) { return static_cast<const Choice &>(request); }
  const IsaLevel &level() const { return static_cast<const IsaLevel &>(nominal); }
};

/// Plans a body where a region's text has decided something: of the plans with the packings that there are it is the
/// one whose algorithm and packed forms are the given ones, or most like them; its grain is the given one. All else
/// follows from that, whatever is given.
Result<KernelPlan> planAsGiven(mlir::Block *body, mlir::DictionaryAttr given, const Choice &choice);
/// The same of a region of a model as its strategy, which may be null, says, with `weights` for the constants that
/// products wait for. What is `decided` in it counts before the rest, but for tiles: they are `tiles`.
Result<KernelPlan> planRegion(dmir::RegionOp region, mlir::DictionaryAttr strategy, WeightFormat weights,
                              mlir::DictionaryAttr tiles = {});
/// What is free of a region for bundles of these levels (TargetBackend::decisions).
std::vector<Decision> decisionsOf(dmir::RegionOp region, mlir::DictionaryAttr decided, WeightFormat weights,
                                  llvm::ArrayRef<IsaLevel> levels);
/// The strategy's kTiles of a region that is computed by `algorithm`; empty where nothing is decided of them.
mlir::DictionaryAttr tilesOf(dmir::RegionOp region, llvm::StringRef algorithm, mlir::DictionaryAttr decided,
                             WeightFormat weights, llvm::ArrayRef<IsaLevel> levels);

} // namespace dmxc::cpu
