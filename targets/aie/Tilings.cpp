//===- Tilings.cpp - what of a product on the array is free ---------------===//
#include "Tilings.h"

#include "place/Cost.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kLargestTile = 128; ///< rows, columns; terms are as many steps as bytes of a row allow
static constexpr int64_t kMostSteps = 16;    ///< matrix steps along k of a tile

bool Tilings::holds(const Tiling &tiling) const {
  Mapping tried = mapping;
  tried.setTiling(tiling);
  if (tiling.pixels > 1 && (!tried.hasPackedWeights() || tried.n > tried.blockN()))
    return false;
  return !refuses(machine, tried);
}
bool Tilings::holds(Candidate &candidate) const {
  if (!candidate.holds)
    candidate.holds = holds(candidate.tiling);
  return *candidate.holds;
}

/// Whole blocks of what cores multiply: 8 x a matrix step by that x 16; along k powers of two.
std::vector<int64_t> Tilings::sizesOf(int64_t Tiling::*field) const {
  std::vector<int64_t> sizes;
  if (field == &Tiling::k) {
    for (int64_t steps = 1; steps <= kMostSteps; steps *= 2)
      sizes.push_back(steps * mapping.numbers.stepK);
    return sizes;
  }
  int64_t unit = field == &Tiling::m ? 2 * hw::kStepM : 4 * hw::kStepN;
  for (int64_t size = unit; size <= kLargestTile; size += unit)
    sizes.push_back(size);
  return sizes;
}

/// Of numbers of pixels that give as many rows the least.
void Tilings::addPixels(Tiling tiling) {
  Mapping tried = mapping;
  tried.setTiling(tiling);
  int64_t most = 1;
  if (mapping.image && mapping.hasPackedWeights())
    most = std::max<int64_t>(1, tried.blockN() / mapping.image->outputs);
  std::set<int64_t> pixels{1};
  if (most > 1)
    pixels = kernels::evenParts(ImageWalk::number(mapping.image->across.out), most);
  for (int64_t each : pixels) {
    tiling.pixels = each;
    tried.setTiling(tiling);
    candidates.push_back({tiling, clocksOf(machine, tried), std::nullopt});
  }
}

/// Tiles that a core has room for.
void Tilings::addTiles(Tiling tiling) {
  int64_t bytes = mapping.numbers.bytes, room = machine.tile(hw::TileKind::Core).dataBytes;
  for (int64_t m : sizesOf(&Tiling::m))
    for (int64_t n : sizesOf(&Tiling::n))
      for (int64_t k : sizesOf(&Tiling::k))
        if (2 * (bytes * k * (m + n) + 4 * m * n) <= room) {
          tiling.m = m, tiling.n = n, tiling.k = k;
          addPixels(tiling);
        }
}

Tilings::Tilings(const hw::Machine &machine, const Herd &most, Mapping whole)
    : machine(machine), most(most), mapping(std::move(whole)) {
  Tiling tiling = mapping.tiling();
  for (tiling.herdRows = most.rows; tiling.herdRows > 0; --tiling.herdRows)
    for (tiling.herdColumns = most.columns; tiling.herdColumns > 0; --tiling.herdColumns)
      addTiles(tiling);
  llvm::stable_sort(candidates, [](const Candidate &one, const Candidate &other) { return one.clocks < other.clocks; });
}

/// Whether a tiling has what is decided.
static bool agrees(const Tiling &tiling, const kernels::DecidedFields<Tiling> &decided) {
  return llvm::all_of(Tiling::fields(), [&](const kernels::TileField<Tiling> &field) {
    auto member = std::get<int64_t Tiling::*>(field.member);
    return decided[member].value_or(tiling.*member) == tiling.*member;
  });
}

/// nullopt where the array holds none.
std::optional<Tiling> Tilings::best(const Decided &decided) const {
  for (Candidate &each : candidates)
    if (agrees(each.tiling, decided) && holds(each))
      return each.tiling;
  return std::nullopt;
}

std::set<int64_t> Tilings::domainOf(int64_t Tiling::*field, const Decided &before) const {
  std::set<int64_t> domain;
  for (Candidate &each : candidates)
    if (!domain.contains(each.tiling.*field) && agrees(each.tiling, before) && holds(each))
      domain.insert(each.tiling.*field);
  return domain;
}

/// A field's values rest on what is decided of those before it; what is not decided, on all that is.
kernels::FreeTile<Tiling> Tilings::freeOf(MLIRContext *context, DictionaryAttr asked) const {
  auto fieldsFrom = [&](const Decided &all) {
    kernels::FreeTile<Tiling> free("", context, asked);
    std::optional<Tiling> preferred = best(all);
    for (const kernels::TileField<Tiling> &field : Tiling::fields())
      if (auto member = std::get<int64_t Tiling::*>(field.member); preferred)
        free.add(member, domainOf(member, free.decided()), (*preferred).*member);
    return free; // of nothing where nothing fits, as the phases are told
  };
  return fieldsFrom(fieldsFrom({}).decided());
}

std::vector<Decision> Tilings::decisions(MLIRContext *context, DictionaryAttr asked) const {
  return freeOf(context, asked).take();
}

Result<Mapping> Tilings::choose(MLIRContext *context, Attribute written, DictionaryAttr decided) const {
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  if (written && !own)
    return modelError("'" + kTiling.str() + "' of its strategy is no dictionary; what is left out is derived");
  NamedAttrList asked(own);
  for (NamedAttribute each : decided ? decided.getValue() : ArrayRef<NamedAttribute>())
    asked.set(each.getName(), each.getValue());
  kernels::FreeTile<Tiling> free = freeOf(context, asked.getDictionary(context));
  Tiling tiling = mapping.tiling();
  tiling.herdRows = most.rows, tiling.herdColumns = most.columns;
  Mapping chosen = mapping;
  chosen.setTiling(best(free.decided()).value_or(tiling)); // the phases are told where nothing fits
  DictionaryAttr whole = kernels::writeTile(chosen.tiling(), context);
  NamedAttrList given(whole); // what is left out is derived
  for (NamedAttribute each : own ? own.getValue() : ArrayRef<NamedAttribute>())
    given.set(each.getName(), each.getValue());
  std::string wrong = kernels::wrongField(given.getDictionary(context), free.take(), whole, kTiling.str());
  return wrong.empty() ? Result<Mapping>(std::move(chosen)) : modelError(wrong);
}
