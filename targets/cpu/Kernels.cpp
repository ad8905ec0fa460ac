//===- Kernels.cpp - the kernels of the CPU target ----------------------------===//

#include "Kernels.h"

#include "targets/cpu/conv/ConvRegion.h"
#include "targets/cpu/product/MatmulRegion.h"
#include "targets/cpu/product/SparseWeights.h"
#include "targets/cpu/user/MicroKernel.h"
#include "targets/cpu/user/UserKernel.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "llvm/ADT/StringSwitch.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

const KernelTable &dmxc::cpu::cpuKernels() {
  static const KernelTable kernels = [] {
    KernelTable table;
    registerRoots(table);
    registerMatmul(table);
    registerGroupedMatmul(table);
    registerConv(table);
    registerUserKernels(table);
    return table;
  }();
  return kernels;
}

Packing dmxc::cpu::packingOfForm(StringRef form) {
  if (std::optional<WeightFormat> format = formatOfForm(form))
    return *format == WeightFormat::BF16 ? Packing::BF16 : *format == WeightFormat::S8 ? Packing::S8 : Packing::Plain;
  return llvm::StringSwitch<Packing>(form)
      .Case("convpanel16", Packing::Plain)
      .Case(kRunsForm, Packing::Runs)
      .Case("quads16", Packing::Fours)
      .Case("pairs16", Packing::Pairs)
      .Case("blocks16", Packing::Blocks)
      .Case("convquads16", Packing::Fours)
      .Case("convpairs16", Packing::Pairs)
      .Case("convwinograd16", Packing::Winograd)
      .Default(Packing::None);
}

Status dmxc::cpu::packConstant(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  StringRef name = formName(form);
  if (isMatmulForm(form))
    return packMatmulOperand(form, constant, out);
  if (name.starts_with("conv"))
    return packConvOperand(form, constant, out);
  return Error{ErrorKind::Internal, "the cpu target knows no packed form '" + name.str() + "'"};
}

/// How much of what text decided a plan has: exact forms say more than their names.
static int agreement(const KernelPlan &plan, DictionaryAttr given) {
  MLIRContext *context = given.getContext();
  auto packed = given.getAs<DictionaryAttr>(strategy::kPacked);
  DictionaryAttr own = plan.packed.getDictionary(context);
  bool sameNames = !packed || llvm::all_of(own, [&](NamedAttribute entry) {
    auto form = packed.getAs<DictionaryAttr>(entry.getName());
    return form && formName(form) == formName(cast<DictionaryAttr>(entry.getValue()));
  });
  Attribute algorithm = given.get(strategy::kAlgorithm);
  bool sameAlgorithm = !algorithm || algorithm == StringAttr::get(context, plan.algorithm);
  return 2 * sameAlgorithm + 2 * (!packed || packed == own) + sameNames;
}

/// In the place of `best` that of the plans with the packings that there are which is more as given.
static void findAsGiven(KernelPlan &best, Block *block, DictionaryAttr given, Choice choice) {
  constexpr int whole = 5; // of agreement
  for (LeftOut leftOut : {LeftOut::AsAsked, LeftOut::Nothing, LeftOut::Known})
    for (Packing packing : {Packing::Fastest, Packing::Plain, Packing::Runs, Packing::Fours, Packing::BF16, Packing::S8,
                            Packing::Winograd, Packing::None}) {
      if (agreement(best, given) == whole)
        return;
      choice.packing = packing;
      choice.leftOut = leftOut;
      Result<KernelPlan> plan = cpuKernels().plan(block, choice);
      if (plan && agreement(*plan, given) > agreement(best, given))
        best = std::move(*plan);
    }
}

Result<KernelPlan> dmxc::cpu::planAsGiven(Block *block, DictionaryAttr given, const Choice &choice,
                                          ArrayRef<DictionaryAttr> otherMicros) {
  Result<KernelPlan> best = cpuKernels().plan(block, choice);
  if (!best || !given)
    return best;
  findAsGiven(*best, block, given, choice);
  Choice other = choice;
  if (other.micros = {}; !choice.micros.empty())
    findAsGiven(*best, block, given, other);
  for (const DictionaryAttr &micro : otherMicros) {
    other.micros = micro;
    findAsGiven(*best, block, given, other);
  }
  decideGrain(*best, given);
  return best;
}

/// A strategy in which what is decided stands in the place of what is derived.
static DictionaryAttr givenOf(DictionaryAttr strategy, DictionaryAttr decided) {
  if (!decided)
    return strategy;
  NamedAttrList given(strategy);
  if (Attribute algorithm = decided.get(strategy::kAlgorithm)) {
    given.set(strategy::kAlgorithm, algorithm);
    given.erase(strategy::kPacked);
  }
  if (Attribute grain = decided.get(strategy::kGrain))
    given.set(strategy::kGrain, grain);
  return given.getDictionary(strategy.getContext());
}

Result<KernelPlan> dmxc::cpu::planRegion(dmir::RegionOp region, DictionaryAttr strategy, WeightFormat weights,
                                         ArrayRef<IsaLevel> levels, Units added) {
  auto constant = [&](unsigned operand) { return dmir::isConstant(region.getInputs()[operand]); };
  Choice choice;
  choice.constant = constant;
  auto constantOf = [&](unsigned operand) { return dmir::constantTensor(region.getInputs()[operand]); };
  choice.constantOf = constantOf;
  choice.weights = weights;
  choice.decided.all = strategy ? strategy.getAs<DictionaryAttr>(strategy::kDecided) : DictionaryAttr();
  for (const IsaLevel &level : levels)
    choice.decided.levels.push_back(level.name);
  choice.units = unitsOf(strategy, levels);
  choice.namesUnits = unitsOf({}, levels).any();
  if (!strategy || !(strategy.contains(kTiles) || strategy.contains(kUnits)))
    choice.addedUnits = added;
  MicroKernels micros = MicroKernels::of(region.getContext());
  // What text has stands in the place of what a kernel file prefers.
  if (Attribute written = strategy ? strategy.get(strategy::kMicroKernel) : Attribute()) {
    Result<MicroKernel> micro = MicroKernel::of(written);
    if (!micro)
      return modelError("'ukernel' of its strategy would not do: " + micro.error().message);
    micros.preferred = {micro->attr()};
  }
  choice.micros = micros.preferred;
  return planAsGiven(region.getBlock(), givenOf(strategy, choice.decided.all), choice, micros.all);
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

DictionaryAttr Decided::at(const IsaLevel &level) const {
  if (!all || !llvm::is_contained(levels, level.name))
    return {};
  NamedAttrList merged;
  for (NamedAttribute entry : all)
    if (!mlir::isa<DictionaryAttr>(entry.getValue()))
      merged.set(entry.getName(), entry.getValue());
  if (auto own = all.getAs<DictionaryAttr>(level.name))
    for (NamedAttribute entry : own)
      merged.set(entry.getName(), entry.getValue());
  return merged.getDictionary(all.getContext());
}

int64_t Choice::mostBytes(llvm::function_ref<int64_t(const IsaLevel &)> bytesAt) const {
  int64_t most = level().mostBytes(bytesAt);
  for (const IsaLevel &isa : levelsOf())
    most = std::max(most, bytesAt(isa));
  return most;
}

std::vector<IsaLevel> Choice::levelsOf() const {
  std::vector<IsaLevel> levels;
  for (const std::string &name : decided.levels)
    if (std::optional<IsaLevel> isa = IsaLevel::byName(name))
      levels.push_back(std::move(*isa));
  return levels;
}

DictionaryAttr dmxc::cpu::levelTiles(DictionaryAttr strategy, const IsaLevel &level) {
  return strategy.getAs<DictionaryAttr>(kTiles).getAs<DictionaryAttr>(level.name);
}

Units Choice::unitsFor(bool bf16) const {
  if (strategy && strategy.contains(kUnits))
    return unitsOf(strategy, {});
  return {units.dots || (bf16 && addedUnits.dots), units.tiles || (bf16 && addedUnits.tiles)};
}

void Choice::readSizes(KernelPlan &plan) const {
  plan.work = dmir::dimOfAttr(strategy.get(strategy::kWork), 1);
  plan.scratch = dmir::dimOfAttr(strategy.get(strategy::kScratch));
}
