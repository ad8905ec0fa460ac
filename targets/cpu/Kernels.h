//===- Kernels.h - the kernels of the CPU target ----------------*- C++ -*-===//
#pragma once

#include "code/IsaLevel.h"
#include "product/RoundedWeights.h"

#include "targets/common/roots/KernelTable.h"
#include "targets/common/tiles/Tiles.h"

#include "dmxc/Target/TargetBackend.h"

#include <string>
#include <vector>

namespace dmxc::cpu {

/// Key of a strategy: a dictionary by level of how its kernel is cut for the level's registers and caches, all of it.
/// Emitters read that and choose nothing.
inline constexpr llvm::StringLiteral kTiles = "tiles";

/// Key of a strategy: names of the units that its kernel is planned for. Levels without them, and those with units that
/// are not named, compute as v4 does.
inline constexpr llvm::StringLiteral kUnits = "units";

/// The algorithm of products of bf16 whose weights are packed in pairs.
inline constexpr llvm::StringLiteral kMatmulPairs = "matmul-pairs";

/// Units by their names.
mlir::ArrayAttr unitNames(Units units, mlir::MLIRContext *context);
/// The units that a strategy (may be null) names; where it names none, those of the levels that it has tiles for; where
/// it has none of these either, those of `levels`.
Units unitsOf(mlir::DictionaryAttr strategy, llvm::ArrayRef<IsaLevel> levels);

/// Those of targets/common, products and convolutions. Requests for its plans are Choices.
const KernelTable &cpuKernels();

/// What a root's constant weights are packed for. A packing that the root does not have counts as Fastest.
enum class Packing { Fastest, Plain, Runs, Fours, Pairs, Blocks, BF16, S8, Winograd, None };
/// The packing of a form's name; None for those that are no form.
Packing packingOfForm(llvm::StringRef form);

/// Writes the packed form of a constant into `out`.
Status packConstant(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

/// What is decided of a region for the levels that it is compiled for.
struct Decided {
  mlir::DictionaryAttr all; ///< null: nothing
  std::vector<std::string> levels;

  /// For one of the levels: its own values before those for all. Null for others, of which nothing is decided.
  mlir::DictionaryAttr at(const IsaLevel &level) const;
  static const IsaLevel &levelOf(const Processor &processor) { return static_cast<const IsaLevel &>(processor); }
};

/// What a plan rests on besides the body.
struct Choice : PlanRequest {
  llvm::function_ref<bool(unsigned)> constant =
      nullptr; ///< operand i is a constant of the model; asked without a strategy
  llvm::function_ref<std::optional<Tensor>(unsigned)> constantOf =
      nullptr;                               ///< that constant; nothing where its bytes are not to be had
  WeightFormat weights = WeightFormat::Kept; ///< of the constants whose bytes a product waits for
  Packing packing = Packing::Fastest;
  /// Micro-kernels (strategy::kMicroKernel) of which a product calls the first that fits; asked without a strategy.
  llvm::ArrayRef<mlir::DictionaryAttr> micros;
  Decided decided;
  Units units;             ///< of the levels that the bundle has code of
  Units addedUnits;        ///< of levels that it gets where products of bf16 have a use for them
  bool namesUnits = false; ///< also where there are none: some level has units
  bool completes = false;  ///< what a strategy lacks: forms are obeyed, sizes are chosen

  explicit Choice(mlir::DictionaryAttr strategy = {}, const IsaLevel &nominal = IsaLevel::nominal())
      : PlanRequest{nominal, strategy} {}
  static const Choice &of(const PlanRequest &request) { return static_cast<const Choice &>(request); }
  const IsaLevel &level() const { return static_cast<const IsaLevel &>(nominal); }
  /// Those that it is compiled for.
  std::vector<IsaLevel> levelsOf() const;
  /// Whether sizes are chosen; else the strategy has them.
  bool chooses() const { return !strategy || completes; }
  /// Scratch that is enough at every level, with what is decided for some.
  int64_t mostBytes(llvm::function_ref<int64_t(const IsaLevel &)> bytesAt) const;
  /// The units that a product may be planned for, of bf16 or of bytes.
  Units unitsFor(bool bf16) const;
  /// Work and scratch as the strategy has them.
  void readSizes(KernelPlan &plan) const;
};

/// Gives a plan the tiles of each level and what is free of them: `free` lists that, `choose` makes the tiles with what
/// is decided. The tiles of a level.
template <typename Tiles, typename Spec>
std::function<Tiles(const IsaLevel &)>
planTiles(KernelPlan &plan, const Spec &spec, const Decided &decided, mlir::MLIRContext *context,
          FreeTile<Tiles> (*free)(const Spec &, const IsaLevel &, mlir::DictionaryAttr),
          Tiles (*choose)(const Spec &, const IsaLevel &, const DecidedFields<Tiles> &)) {
  auto freeAt = [=](const Processor &processor) {
    const IsaLevel &isa = Decided::levelOf(processor);
    return free(spec, isa, decided.at(isa));
  };
  auto chosen = [=](const IsaLevel &isa) { return choose(spec, isa, freeAt(isa).decided()); };
  plan.tiles = [=](const Processor &processor) { return writeTile(chosen(Decided::levelOf(processor)), context); };
  plan.freeTiles = [=](const Processor &processor) { return freeAt(processor).take(); };
  return chosen;
}

/// A level's entry of kTiles, where a kernel is emitted: completeKernel has seen to it.
mlir::DictionaryAttr levelTiles(mlir::DictionaryAttr strategy, const IsaLevel &level);

/// Plans a body where a region's text has decided something: of the plans with the packings that there are it is the
/// one whose algorithm and packed forms are the given ones, or most like them; its grain is the given one. All else
/// follows from that, whatever is given.
Result<KernelPlan> planAsGiven(mlir::Block *body, mlir::DictionaryAttr given, const Choice &choice,
                               llvm::ArrayRef<mlir::DictionaryAttr> otherMicros = {});
/// The same of a region of a model as its strategy, which may be null, says, with `weights` for the constants that
/// products wait for. What is `decided` in it, for `levels`, counts before the rest. `added`: see Choice.
Result<KernelPlan> planRegion(dmir::RegionOp region, mlir::DictionaryAttr strategy, WeightFormat weights,
                              llvm::ArrayRef<IsaLevel> levels, Units added = {});
/// What is free of a region for bundles of these levels (TargetBackend::decisions).
std::vector<Decision> decisionsOf(dmir::RegionOp region, mlir::DictionaryAttr decided, WeightFormat weights,
                                  llvm::ArrayRef<IsaLevel> levels);
/// `levels` and those that a strategy, which may be null, has tiles for.
std::vector<IsaLevel> withGivenLevels(llvm::ArrayRef<IsaLevel> levels, mlir::DictionaryAttr strategy);
/// The strategy's kTiles of a plan; null where it keeps none.
mlir::DictionaryAttr tilesForLevels(const KernelPlan &plan, llvm::ArrayRef<IsaLevel> levels,
                                    mlir::MLIRContext *context);
/// Sees to it that a kernel's strategy has all that its emitter reads for these levels: what text left out is chosen,
/// and what would not do is an error that names the kernel and the key.
Status completeKernel(dlir::KernelOp kernel, llvm::ArrayRef<IsaLevel> levels);

} // namespace dmxc::cpu
