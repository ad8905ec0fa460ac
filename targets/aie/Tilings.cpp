//===- Tilings.cpp - what of a product on the array is free ---------------===//
#include "Tilings.h"

#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

bool Tilings::holds(const Tiling &tiling) const {
  Mapping tried = mapping;
  tried.setTiling(tiling);
  if (tiling.pixels > 1 && (!tried.hasPackedWeights() || tried.n > tried.blockN()))
    return false;
  return !refuses(machine, tried);
}

/// A fourth of the default to its double, as far as cores multiply whole blocks.
std::vector<int64_t> Tilings::sizesOf(int64_t Tiling::*field) const {
  int64_t own = mapping.tiling().*field;
  const hw::MatrixStep &step = mapping.numbers.step;
  int64_t unit = field == &Tiling::k ? step.k : field == &Tiling::m ? step.blockM() : step.blockN();
  std::vector<int64_t> sizes;
  for (int64_t size : {own / 4, own / 2, own, 2 * own})
    if (size >= unit && size % unit == 0)
      sizes.push_back(size);
  return sizes;
}

/// Of numbers that give as many rows the least.
std::vector<int64_t> Tilings::pixelsOf(const Tiling &tiling) const {
  if (!mapping.image)
    return {1};
  std::vector<int64_t> all;
  for (int64_t pixels :
       kernels::evenParts(ImageWalk::number(mapping.image->across.out),
                          std::max<int64_t>(1, tiling.herdColumns * tiling.n / mapping.image->outputs)))
    all.push_back(pixels);
  return all;
}

std::optional<Tiling> Tilings::withPixels(Tiling tiling, std::optional<int64_t> pixels) const {
  if (pixels || !mapping.image) {
    tiling.pixels = pixels.value_or(1);
  } else {
    Mapping tried = mapping;
    tried.setTiling(tiling);
    choosePixels(machine, tried);
    tiling = tried.tiling();
  }
  return holds(tiling) ? std::optional(tiling) : std::nullopt;
}

/// nullopt where the array holds none.
std::optional<Tiling> Tilings::complete(const Decided &decided) const {
  Tiling tiling = mapping.tiling();
  tiling.herdRows = decided[&Tiling::herdRows].value_or(most.rows);
  tiling.herdColumns = decided[&Tiling::herdColumns].value_or(most.columns);
  auto from = [&](int64_t Tiling::*field) { // the default first, then smaller ones
    if (std::optional<int64_t> value = decided[field])
      return std::vector<int64_t>{*value};
    std::vector<int64_t> sizes = sizesOf(field);
    sizes.erase(llvm::find(sizes, mapping.tiling().*field) + 1, sizes.end());
    return std::vector<int64_t>(sizes.rbegin(), sizes.rend());
  };
  for (int64_t m : from(&Tiling::m))
    for (int64_t n : from(&Tiling::n))
      for (int64_t k : from(&Tiling::k)) {
        tiling.m = m, tiling.n = n, tiling.k = k;
        if (std::optional<Tiling> whole = withPixels(tiling, decided[&Tiling::pixels]))
          return whole;
      }
  return std::nullopt;
}

/// A field's values rest on those before it, decided or not.
kernels::FreeTile<Tiling> Tilings::freeOf(MLIRContext *context, DictionaryAttr asked) const {
  kernels::FreeTile<Tiling> free("", context, asked);
  Decided before;
  auto add = [&](int64_t Tiling::*field, ArrayRef<int64_t> values) {
    std::optional<Tiling> preferred = complete(before);
    if (!preferred) // nothing fits, as the phases are told
      return;
    std::set<int64_t> domain;
    for (int64_t value : values) {
      Decided tried = before;
      tried.set(field, value);
      if (complete(tried))
        domain.insert(value);
    }
    free.add(field, std::move(domain), (*preferred).*field);
    before.set(field, free.decided()[field].value_or((*preferred).*field));
  };
  auto upTo = [](int64_t last) {
    std::vector<int64_t> all(static_cast<size_t>(last));
    std::iota(all.begin(), all.end(), 1);
    return all;
  };
  add(&Tiling::herdRows, upTo(most.rows));
  add(&Tiling::herdColumns, upTo(most.columns));
  for (auto field : {&Tiling::m, &Tiling::n, &Tiling::k})
    add(field, sizesOf(field));
  if (std::optional<Tiling> tiling = complete(before))
    add(&Tiling::pixels, pixelsOf(*tiling));
  return free;
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
  chosen.setTiling(complete(free.decided()).value_or(tiling)); // the phases are told where nothing fits
  DictionaryAttr whole = kernels::writeTile(chosen.tiling(), context);
  NamedAttrList given(whole); // what is left out is derived
  for (NamedAttribute each : own ? own.getValue() : ArrayRef<NamedAttribute>())
    given.set(each.getName(), each.getValue());
  std::string wrong = kernels::wrongField(given.getDictionary(context), free.take(), whole, kTiling.str());
  return wrong.empty() ? Result<Mapping>(std::move(chosen)) : modelError(wrong);
}
