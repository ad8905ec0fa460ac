//===- Tilings.cpp - what of a product on the array is free ---------------===//
#include "Tilings.h"

#include "place/Cost.h"
#include "place/Runs.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/TargetBackend.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kLargestTile = 128; ///< rows, columns; terms are as many steps as bytes of a row allow
static constexpr int64_t kMostSteps = 16;    ///< matrix steps along k of a tile

void aie::addFigures(NamedAttrList &list, MLIRContext *context, const Dim &flops, const Dim &bytes) {
  const std::pair<StringRef, Dim> figures[] = {{strategy::kWork, 1},
                                               {strategy::kGrain, 1},
                                               {strategy::kScratch, 0},
                                               {strategy::kFlops, flops},
                                               {strategy::kBytes, bytes}};
  for (auto [key, value] : figures)
    list.set(key, dmir::dimAttr(context, value));
}

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

/// Of a convolution in groups how many are one matrix, none left over: all that fill a block of columns at most, since
/// pixels may be beside them, then of those of as many blocks the most, up to a tile. What is more multiplies zeros.
std::set<int64_t> Tilings::groupsOf() const {
  if (!mapping.image)
    return {1};
  int64_t block = mapping.numbers.step.blockN(), outputs = mapping.image->outputs / mapping.image->together;
  std::set<int64_t> all;
  std::map<int64_t, int64_t> most; // of numbers of blocks
  for (int64_t groups = 1; groups <= mapping.image->groups; ++groups)
    if (mapping.image->groups % groups != 0)
      continue;
    else if (groups == 1 || groups * outputs <= block)
      all.insert(groups);
    else if (groups * outputs <= kLargestTile)
      most[llvm::divideCeil(groups * outputs, block)] = groups;
  for (auto [blocks, groups] : most)
    all.insert(groups);
  return all;
}

/// With tiles of a size all numbers of groups and of pixels; of these that give as many rows the least. Tiles of more
/// columns than a matrix of groups has multiply zeros.
std::vector<Tiling> Tilings::walksOf(Mapping &tried, Tiling tiling) const {
  auto block = static_cast<uint64_t>(mapping.numbers.step.blockN());
  bool isInGroups = mapping.image && mapping.image->groups > 1;
  std::vector<Tiling> all;
  for (int64_t number : groups) {
    tiling.groups = number, tiling.pixels = 1;
    tried.setTiling(tiling);
    int64_t most = tried.image && packsWeights ? tried.blockN() / tried.image->outputs : 1;
    auto pixels = std::set<int64_t>{1};
    if (most > 1)
      pixels = kernels::evenParts(ImageWalk::number(tried.image->across.out), most);
    for (int64_t each : pixels) {
      tiling.pixels = each;
      tried.setTiling(tiling);
      if (!isInGroups || llvm::alignTo(tried.n, block) >= static_cast<uint64_t>(tiling.n))
        all.push_back(tiling);
    }
  }
  return all;
}

/// Tiles that a core has room for.
bool Tilings::fits(const Tiling &tiling) const {
  return mapping.tileBytes(tiling.m, tiling.k, tiling.n) <= machine.tile(hw::TileKind::Core).dataBytes;
}
void Tilings::addTiles(Mapping &tried, Tiling tiling) const {
  for (int64_t m : sizesOf(&Tiling::m))
    for (int64_t n : sizesOf(&Tiling::n))
      for (int64_t k : sizesOf(&Tiling::k)) {
        tiling.m = m, tiling.n = n, tiling.k = k;
        if (fits(tiling))
          for (const Tiling &each : walksOf(tried, tiling)) {
            tried.setTiling(each);
            leaveOut(machine, tried);
            candidates->push_back({each, clocksOf(machine, tried), std::nullopt});
          }
      }
}

/// Tilings of as many cores: what columns have for themselves, and channels of results; of fewer columns than there are
/// only the plain form.
std::vector<Tiling> Tilings::formsOf(Tiling tiling) const {
  static constexpr struct { // panels, whether each column is a band, and rows stay
    int64_t panels;
    bool bands;
    int64_t stays;
  } kForms[] = {{1, false, 0}, {1, false, 1}, {1, true, 1}, {2, false, 1}};
  std::vector<Tiling> all;
  for (auto [panels, bands, stays] : kForms)
    for (tiling.outs = 1; tiling.outs <= 2; ++tiling.outs) {
      tiling.panels = panels, tiling.bands = bands ? tiling.herdColumns : 1, tiling.stays = stays;
      bool isPlain = !stays && tiling.outs == 1, isWide = tiling.herdColumns == most.columns;
      bool isOther = (!bands || tiling.bands > 1) && (!stays || !mapping.open) && (isPlain || isWide);
      Herd herd{tiling.herdRows, tiling.herdColumns, panels, tiling.outs, tiling.bands, stays};
      if (isOther && tiling.herdRows % panels == 0 && !refusesChannels(machine, herd))
        all.push_back(tiling);
    }
  return all;
}

Tilings::Tilings(const hw::Machine &machine, const Herd &most, Mapping whole)
    : machine(machine), most(most), mapping(std::move(whole)), packsWeights(mapping.hasPackedWeights()),
      groups(groupsOf()) {}

/// Made where the first one asks: a tiling that a text has whole is looked at by itself.
std::vector<Tilings::Candidate> &Tilings::all() const {
  if (candidates)
    return *candidates;
  candidates.emplace();
  Mapping tried = mapping;
  Tiling tiling = mapping.tiling();
  for (tiling.herdRows = most.rows; tiling.herdRows > 0; --tiling.herdRows)
    for (tiling.herdColumns = most.columns; tiling.herdColumns > 0; --tiling.herdColumns)
      for (const Tiling &form : formsOf(tiling))
        addTiles(tried, form);
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < candidates->size(); ++i)
    order.emplace_back((*candidates)[i].clocks, i);
  llvm::sort(order);
  std::vector<Candidate> sorted;
  sorted.reserve(order.size());
  for (auto [clocks, i] : order)
    sorted.push_back((*candidates)[i]);
  return *(candidates = std::move(sorted));
}

/// Whether all() has it.
bool Tilings::isOne(const Tiling &tiling) const {
  bool isOfCores = tiling.herdRows > 0 && tiling.herdRows <= most.rows && tiling.herdColumns > 0 &&
                   tiling.herdColumns <= most.columns;
  if (!isOfCores || !llvm::is_contained(formsOf(tiling), tiling))
    return false;
  for (int64_t Tiling::*size : {&Tiling::m, &Tiling::n, &Tiling::k})
    if (!llvm::is_contained(sizesOf(size), tiling.*size))
      return false;
  Mapping tried = mapping;
  return fits(tiling) && llvm::is_contained(walksOf(tried, tiling), tiling);
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

/// Places in all() of those that agree with what is decided, the cheapest first. Who lists all members asks with one
/// decision more or other last ones: each list is sifted from that of the decisions before it.
ArrayRef<uint32_t> Tilings::agreeingWith(const Decided &decided) const {
  auto values = listOf(decided);
  if (sifted.empty()) {
    sifted.emplace_back().places.resize(all().size());
    std::iota(sifted[0].places.begin(), sifted[0].places.end(), 0);
  }
  size_t same = 0;
  while (same < values.size() && same + 1 < sifted.size() && sifted[same + 1].by == values[same])
    ++same;
  sifted.resize(same + 1);
  for (const auto &[field, value] : ArrayRef(values).drop_front(same)) {
    std::vector<uint32_t> left;
    llvm::copy_if(sifted.back().places, std::back_inserter(left),
                  [&](uint32_t place) { return all()[place].tiling.*field == value; });
    sifted.push_back({{field, value}, std::move(left)});
  }
  return sifted.back().places;
}

/// nullopt where the array holds none.
std::optional<Tiling> Tilings::best(const Decided &decided) const {
  for (uint32_t place : agreeingWith(decided))
    if (Candidate &each = all()[place]; holds(each))
      return each.tiling;
  return std::nullopt;
}

/// Powers of two; the default may be another number, and so may what is `asked` for.
std::set<int64_t> Tilings::domainOf(int64_t Tiling::*field, const Decided &before, std::optional<int64_t> asked) const {
  std::set<int64_t> domain;
  bool isSize = field == &Tiling::m || field == &Tiling::n;
  auto isFree = [&](int64_t value) {
    return (!isSize || value == asked || llvm::isPowerOf2_64(static_cast<uint64_t>(value))) && !domain.contains(value);
  };
  for (uint32_t place : agreeingWith(before))
    if (Candidate &each = all()[place]; isFree(each.tiling.*field) && holds(each))
      domain.insert(each.tiling.*field);
  return domain;
}

/// The tiling that a text has, all of it, where it is one that may be.
std::optional<Tiling> Tilings::wholeOf(DictionaryAttr written) const {
  Tiling tiling = kernels::readTile<Tiling>(written);
  bool isWhole = written && written == kernels::writeTile(tiling, written.getContext());
  return isWhole && isOne(tiling) && holds(tiling) ? std::optional(tiling) : std::nullopt;
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
