//===- Tilings.cpp - what of a product on the array is free ---------------===//
#include "Tilings.h"

#include "place/Cost.h"
#include "place/Runs.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kLargestTile = 128; ///< rows, columns; terms are as many steps as bytes of a row allow
static constexpr int64_t kMostSteps = 16;    ///< matrix steps along k of a tile

Mapping Tilings::at(const Tiling &tiling) const {
  Mapping tried = mapping;
  tried.setTiling(tiling);
  leaveOut(machine, tried);
  return tried;
}

/// With all of b, too: later phases have the runs of the text.
bool Tilings::holds(const Tiling &tiling) const {
  Mapping tried = mapping;
  tried.setTiling(tiling);
  if (tiling.pixels > 1 && (!packsWeights || tried.n > tried.blockN()))
    return false;
  return !refuses(machine, tried);
}
bool Tilings::holds(Candidate &candidate) const {
  if (!candidate.holds)
    candidate.holds = holds(candidate.tiling);
  return *candidate.holds;
}

/// Whole blocks of what cores multiply, of larger ones every second; along k powers of two.
std::vector<int64_t> Tilings::sizesOf(int64_t Tiling::*field) const {
  const hw::MatrixStep &step = mapping.numbers.step;
  std::vector<int64_t> sizes;
  if (field == &Tiling::k) {
    for (int64_t steps = 1; steps <= kMostSteps; steps *= 2)
      sizes.push_back(steps * step.k);
    return sizes;
  }
  int64_t unit = field == &Tiling::m ? step.blockM() : step.blockN();
  for (int64_t size = unit; size <= kLargestTile; size += size < kLargestTile / 2 ? unit : 2 * unit)
    sizes.push_back(size);
  return sizes;
}

/// Of numbers of pixels that give as many rows the least.
void Tilings::addPixels(Mapping &tried, Tiling tiling) {
  tried.setTiling(tiling);
  int64_t most = tried.image && packsWeights ? tried.blockN() / tried.image->outputs : 1;
  const std::set<int64_t> all =
      most > 1 ? kernels::evenParts(ImageWalk::number(tried.image->across.out), most) : std::set<int64_t>{1};
  for (int64_t pixels : all) {
    tiling.pixels = pixels;
    tried.setTiling(tiling);
    leaveOut(machine, tried);
    candidates.push_back({tiling, clocksOf(machine, tried), std::nullopt});
  }
}

/// Of a convolution in groups all numbers of groups in a matrix that leave none over.
void Tilings::addWalks(Mapping &tried, Tiling tiling) {
  int64_t groups = mapping.image ? mapping.image->groups : 1;
  for (tiling.groups = 1; tiling.groups <= groups; ++tiling.groups)
    if (groups % tiling.groups == 0)
      addPixels(tried, tiling);
}

/// Tiles that a core has room for.
void Tilings::addTiles(Mapping &tried, Tiling tiling) {
  int64_t room = machine.tile(hw::TileKind::Core).dataBytes;
  for (int64_t m : sizesOf(&Tiling::m))
    for (int64_t n : sizesOf(&Tiling::n))
      for (int64_t k : sizesOf(&Tiling::k))
        if (mapping.tileBytes(m, k, n) <= room) {
          tiling.m = m, tiling.n = n, tiling.k = k;
          addWalks(tried, tiling);
        }
}

/// What columns have for themselves, and channels of results; of fewer columns than there are only the plain form.
void Tilings::addHerds(Mapping &tried, Tiling tiling) {
  static constexpr struct { // panels, whether each column is a band, and rows stay
    int64_t panels;
    bool bands;
    int64_t stays;
  } kForms[] = {{1, false, 0}, {1, false, 1}, {1, true, 1}, {2, false, 1}};
  for (auto [panels, bands, stays] : kForms)
    for (tiling.outs = 1; tiling.outs <= 2; ++tiling.outs) {
      tiling.panels = panels, tiling.bands = bands ? tiling.herdColumns : 1, tiling.stays = stays;
      bool isPlain = !stays && tiling.outs == 1, isWide = tiling.herdColumns == most.columns;
      bool isOther = (!bands || tiling.bands > 1) && (!stays || !mapping.open) && (isPlain || isWide);
      Herd herd{tiling.herdRows, tiling.herdColumns, panels, tiling.outs, tiling.bands, stays};
      if (isOther && tiling.herdRows % panels == 0 && !refusesChannels(machine, herd))
        addTiles(tried, tiling);
    }
}

Tilings::Tilings(const hw::Machine &machine, const Herd &most, Mapping whole)
    : machine(machine), most(most), mapping(std::move(whole)), packsWeights(mapping.hasPackedWeights()) {
  Mapping tried = mapping;
  Tiling tiling = mapping.tiling();
  for (tiling.herdRows = most.rows; tiling.herdRows > 0; --tiling.herdRows)
    for (tiling.herdColumns = most.columns; tiling.herdColumns > 0; --tiling.herdColumns)
      addHerds(tried, tiling);
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < candidates.size(); ++i)
    order.emplace_back(candidates[i].clocks, i);
  llvm::sort(order);
  std::vector<Candidate> sorted;
  sorted.reserve(order.size());
  for (auto [clocks, i] : order)
    sorted.push_back(candidates[i]);
  candidates = std::move(sorted);
}

/// What is decided of each field.
static SmallVector<std::pair<int64_t Tiling::*, int64_t>> listOf(const kernels::DecidedFields<Tiling> &decided) {
  SmallVector<std::pair<int64_t Tiling::*, int64_t>> all;
  for (const kernels::TileField<Tiling> &field : Tiling::fields()) {
    auto member = std::get<int64_t Tiling::*>(field.member);
    if (std::optional<int64_t> value = decided[member])
      all.emplace_back(member, *value);
  }
  return all;
}
static bool agrees(const Tiling &tiling, ArrayRef<std::pair<int64_t Tiling::*, int64_t>> decided) {
  return llvm::all_of(decided, [&](const auto &one) { return tiling.*one.first == one.second; });
}

/// nullopt where the array holds none.
std::optional<Tiling> Tilings::best(const Decided &decided) const {
  auto values = listOf(decided);
  for (Candidate &each : candidates)
    if (agrees(each.tiling, values) && holds(each))
      return each.tiling;
  return std::nullopt;
}

/// Powers of two; the default may be another number, and so may what is `asked` for.
std::set<int64_t> Tilings::domainOf(int64_t Tiling::*field, const Decided &before, std::optional<int64_t> asked) const {
  std::set<int64_t> domain;
  auto values = listOf(before);
  bool isSize = field == &Tiling::m || field == &Tiling::n;
  auto isFree = [&](int64_t value) {
    return (!isSize || value == asked || llvm::isPowerOf2_64(static_cast<uint64_t>(value))) && !domain.contains(value);
  };
  for (Candidate &each : candidates)
    if (isFree(each.tiling.*field) && agrees(each.tiling, values) && holds(each))
      domain.insert(each.tiling.*field);
  return domain;
}

/// The tiling that a text has, all of it, where it is one that may be.
std::optional<Tiling> Tilings::wholeOf(DictionaryAttr written) const {
  Tiling tiling = kernels::readTile<Tiling>(written);
  bool isWhole = written && written == kernels::writeTile(tiling, written.getContext());
  auto found = isWhole ? llvm::find_if(candidates, [&](const Candidate &each) { return each.tiling == tiling; })
                       : candidates.end();
  return found != candidates.end() && holds(*found) ? std::optional(tiling) : std::nullopt;
}

/// A field's values rest on what is decided of those before it; what is not decided, on all that is.
kernels::FreeTile<Tiling> Tilings::freeOf(MLIRContext *context, DictionaryAttr asked) const {
  auto fieldsFrom = [&](const Decided &all) {
    kernels::FreeTile<Tiling> free("", context, asked);
    std::optional<Tiling> preferred = best(all);
    for (const kernels::TileField<Tiling> &field : Tiling::fields())
      if (auto member = std::get<int64_t Tiling::*>(field.member); preferred)
        free.add(member, domainOf(member, free.decided(), kernels::numberIn(asked, field.key)), (*preferred).*member);
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
  if (std::optional<Tiling> whole = decided ? std::nullopt : wholeOf(own))
    return at(*whole);
  NamedAttrList asked(own);
  for (NamedAttribute each : decided ? decided.getValue() : ArrayRef<NamedAttribute>())
    asked.set(each.getName(), each.getValue());
  kernels::FreeTile<Tiling> free = freeOf(context, asked.getDictionary(context));
  Tiling tiling = mapping.tiling();
  tiling.herdRows = most.rows, tiling.herdColumns = most.columns;
  Mapping chosen = at(best(free.decided()).value_or(tiling)); // the phases are told where nothing fits
  if (std::optional<std::string> why = written ? refuses(machine, chosen) : std::nullopt; why && !best({}))
    return modelError(*why);
  DictionaryAttr whole = kernels::writeTile(chosen.tiling(), context);
  NamedAttrList given(whole); // what is left out is derived
  for (NamedAttribute each : own ? own.getValue() : ArrayRef<NamedAttribute>())
    given.set(each.getName(), each.getValue());
  std::string wrong = kernels::wrongField(given.getDictionary(context), free.take(), whole, kTiling.str());
  return wrong.empty() ? Result<Mapping>(std::move(chosen)) : modelError(wrong);
}
