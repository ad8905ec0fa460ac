//===- Decisions.cpp - what of a region's strategy is free, and its tiles -----===//

#include "Kernels.h"

#include "targets/cpu/user/MicroKernel.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

/// Of the packings that keep the weights' values, one plan for each algorithm; the default's is the first.
static std::vector<KernelPlan> alternativesOf(dmir::RegionOp region, WeightFormat weights, const Decided &decided,
                                              Units units) {
  auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
  auto constantOf = [&](unsigned operand) { return dmir::constantTensor(region.getInputs()[operand]); };
  std::vector<KernelPlan> all;
  const MicroKernels micros = MicroKernels::of(region.getContext());
  ArrayRef<DictionaryAttr> called = micros.preferred;
  auto add = [&](Packing packing, LeftOut leftOut) {
    Choice choice;
    choice.micros = called;
    choice.constant = constant;
    choice.constantOf = constantOf;
    choice.weights = weights;
    choice.packing = packing;
    choice.leftOut = leftOut;
    choice.decided = decided;
    choice.units = units;
    Result<KernelPlan> plan = cpuKernels().plan(region.getBlock(), choice);
    if (plan && llvm::none_of(all, [&](const KernelPlan &known) { return known.algorithm == plan->algorithm; }))
      all.push_back(std::move(*plan));
  };
  auto addAll = [&](LeftOut leftOut) {
    for (Packing packing :
         {Packing::Fastest, Packing::Plain, Packing::Runs, Packing::Fours, Packing::Winograd, Packing::None})
      add(packing, leftOut);
  };
  auto usesRanges = [](const KernelPlan &plan) { return StringRef(plan.algorithm).ends_with(kRanges); };
  addAll(LeftOut::AsAsked);
  if (llvm::any_of(all, usesRanges))
    addAll(LeftOut::Nothing);
  else
    add(Packing::Fastest, LeftOut::Known);
  if (called = {}; !micros.preferred.empty())
    addAll(LeftOut::AsAsked);
  for (const DictionaryAttr &micro : micros.all) {
    called = micro;
    addAll(LeftOut::AsAsked);
  }
  return all;
}

std::vector<Decision> dmxc::cpu::decisionsOf(dmir::RegionOp region, DictionaryAttr decided, WeightFormat weights,
                                             ArrayRef<IsaLevel> levels) {
  MLIRContext *context = region.getContext();
  Builder b(context);
  Decided of{decided, {}};
  for (const IsaLevel &isa : levels)
    of.levels.push_back(isa.name);
  std::vector<Decision> free;
  std::vector<KernelPlan> all = alternativesOf(region, weights, of, unitsOf({}, levels));
  if (all.empty())
    return free;
  const KernelPlan *plan = &all.front();
  Attribute asked = decided ? decided.get(strategy::kAlgorithm) : Attribute();
  SmallVector<Attribute> names;
  for (const KernelPlan &one : all) {
    names.push_back(b.getStringAttr(one.algorithm));
    if (names.back() == asked)
      plan = &one;
  }
  if (all.size() > 1)
    free.push_back({strategy::kAlgorithm.str(), "", Domain::oneOf(names), names.front(), Effect::Algorithm,
                    "how it is computed, from weights in which form"});
  SmallVector<const Processor *> processors;
  for (const IsaLevel &isa : levels)
    processors.push_back(&isa);
  llvm::append_range(free, freeOf(*plan, processors, context));
  return free;
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

static constexpr StringRef kDotsUnit = "avx512bf16", kTilesUnit = "amx";

ArrayAttr dmxc::cpu::unitNames(Units units, MLIRContext *context) {
  SmallVector<StringRef> names;
  if (units.dots)
    names.push_back(kDotsUnit);
  if (units.tiles)
    names.push_back(kTilesUnit);
  return Builder(context).getStrArrayAttr(names);
}

Units dmxc::cpu::unitsOf(DictionaryAttr strategy, ArrayRef<IsaLevel> levels) {
  Units units;
  if (auto named = strategy ? strategy.getAs<ArrayAttr>(kUnits) : ArrayAttr()) {
    auto names = [&](StringRef unit) { return llvm::is_contained(named, StringAttr::get(named.getContext(), unit)); };
    return {names(kDotsUnit), names(kTilesUnit)};
  }
  auto given = strategy ? strategy.getAs<DictionaryAttr>(kTiles) : DictionaryAttr();
  std::vector<IsaLevel> own;
  if (given)
    levels = own = withGivenLevels({}, strategy);
  for (const IsaLevel &level : levels) {
    units.dots |= level.hasDots;
    units.tiles |= level.hasTiles;
  }
  return units;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

std::vector<IsaLevel> dmxc::cpu::withGivenLevels(ArrayRef<IsaLevel> levels, DictionaryAttr strategy) {
  std::vector<IsaLevel> all(levels.begin(), levels.end());
  auto given = strategy ? strategy.getAs<DictionaryAttr>(kTiles) : DictionaryAttr();
  for (NamedAttribute entry : given ? given.getValue() : ArrayRef<NamedAttribute>())
    if (llvm::none_of(all, [&](const IsaLevel &level) { return entry.getName() == level.name; }))
      if (std::optional<IsaLevel> level = IsaLevel::byName(entry.getName()))
        all.push_back(std::move(*level));
  return all;
}

DictionaryAttr dmxc::cpu::tilesForLevels(const KernelPlan &plan, ArrayRef<IsaLevel> levels, MLIRContext *context) {
  if (!plan.tiles)
    return {};
  NamedAttrList tiles;
  for (const IsaLevel &level : levels)
    tiles.set(level.name, plan.tiles(level));
  return tiles.getDictionary(context);
}

/// Levels that a model may get by default beyond those that its regions were decided for.
static constexpr StringRef addedLevels[] = {kVnniLevel, kDotsLevel, kTileLevel};

/// What a kernel's tiles decide, of those that are there; added levels have what v4 has, unless they have their own.
static DictionaryAttr decidedBy(DictionaryAttr strategy) {
  auto given = strategy.getAs<DictionaryAttr>(kTiles);
  NamedAttrList decided(strategy);
  for (NamedAttribute entry : given ? given.getValue() : ArrayRef<NamedAttribute>())
    decided.set(entry.getName(), entry.getValue());
  Attribute wide = given ? given.get("x86-64-v4") : Attribute();
  for (StringRef level : addedLevels)
    if (wide && !given.contains(level))
      decided.set(level, wide);
  return decided.getDictionary(strategy.getContext());
}

/// The first key of `derived` that `given` has otherwise, with its path; "" where there is none.
static std::string mismatch(DictionaryAttr given, DictionaryAttr derived, const std::string &path) {
  for (NamedAttribute entry : derived) {
    Attribute has = given.get(entry.getName());
    std::string key = path + entry.getName().str();
    auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
    if (auto nested = dyn_cast_or_null<DictionaryAttr>(has); nested && inner) {
      if (std::string found = mismatch(nested, inner, key + "."); !found.empty())
        return found;
    } else if (has ? has != entry.getValue() : !path.empty()) {
      std::string text;
      llvm::raw_string_ostream stream(text);
      stream << "'" << key << "' of its strategy is ";
      if (has)
        stream << has;
      else
        stream << "missing";
      stream << ", but must be " << entry.getValue() << "; what is left out is derived";
      return text;
    }
  }
  return "";
}

/// What is wrong with the tiles of a text (may be null): a clause; "" where nothing is.
static std::string wrongTiles(DictionaryAttr given, DictionaryAttr tiles, const KernelPlan &plan,
                              ArrayRef<IsaLevel> levels) {
  std::string wrong;
  for (const IsaLevel &level : levels)
    if (Attribute own = given ? given.get(level.name) : Attribute(); own && wrong.empty())
      wrong = wrongField(own, plan.freeTiles ? plan.freeTiles(level) : std::vector<Decision>(),
                         tiles.getAs<DictionaryAttr>(level.name), (kTiles + "." + level.name).str());
  return wrong;
}

Status dmxc::cpu::completeKernel(dlir::KernelOp kernel, ArrayRef<IsaLevel> levels) {
  DictionaryAttr strategy = kernel.getStrategy();
  MLIRContext *context = kernel.getContext();
  std::vector<IsaLevel> all = withGivenLevels(levels, strategy);
  Choice choice(strategy);
  choice.completes = true;
  choice.decided.all = decidedBy(strategy);
  choice.units = unitsOf(strategy, levels);
  choice.namesUnits = true;
  auto given = strategy.getAs<DictionaryAttr>(kTiles);
  for (const IsaLevel &level : all)
    if (given && (given.contains(level.name) || llvm::is_contained(addedLevels, level.name)))
      choice.decided.levels.push_back(level.name);
  Result<KernelPlan> plan = cpuKernels().plan(kernel.getBlock(), choice);
  if (!plan)
    return plan.takeError();
  if (!plan->tiles)
    return Status::ok();
  NamedAttrList needed(plan->own);
  needed.set(strategy::kWork, dmir::dimAttr(context, plan->work));
  needed.set(strategy::kScratch, dmir::dimAttr(context, plan->scratch));
  DictionaryAttr tiles = tilesForLevels(*plan, all, context);
  std::string problem = wrongTiles(given, tiles, *plan, all);
  if (problem.empty())
    problem = mismatch(strategy, needed.getDictionary(context), "");
  if (!problem.empty())
    return modelError("kernel '" + kernel.getSymName().str() + "': " + problem);
  needed.set(kTiles, tiles);
  NamedAttrList complete(strategy);
  for (NamedAttribute key : needed)
    complete.set(key.getName(), key.getValue());
  kernel.setStrategyAttr(complete.getDictionary(context));
  return Status::ok();
}
