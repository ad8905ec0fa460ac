//===- Descent.cpp - one decision of a region after the other -------------===//
#include "Descent.h"

#include "dmxc/Phases/Decisions.h"

using namespace mlir;

namespace dmxc::driver {

/// How far estimates are trusted: what they expect to be slower by more is not measured.
static constexpr double kTrust = 1.25;

std::optional<Descent::Found> Descent::run() {
  // What is decided of the whole region is in the record, so that it stays where defaults change.
  DictionaryAttr decided = settled(DictionaryAttr::get(region.getContext()));
  found.decided = decided;
  if (!attempt(decided))
    return std::nullopt;
  found.first = found.value;
  tryWhole(std::max<size_t>(left / 2, 1), /*trusts=*/true);
  for (size_t depth = 0; left && tryEach(depth); ++depth) {
  }
  tryWhole(left, /*trusts=*/false);
  return found;
}

/// Measures what was not measured yet, and keeps it if it is the best. False where that failed.
bool Descent::attempt(DictionaryAttr decided) {
  if (!left || !tried.insert(decided.getAsOpaquePointer()).second)
    return false;
  --left;
  ++found.trials;
  std::optional<double> value = measure(decided);
  if (!value)
    return false;
  if (found.measured.empty() || *value < found.value) {
    found.value = *value;
    found.decided = decided;
  }
  found.measured.push_back(*value);
  return true;
}

/// What is `wanted` of the whole region, one decision after the other: what is free rests on those before, so that
/// others take a value of their own where there is none such any more. Without what is wanted of products, which is for
/// another team.
DictionaryAttr Descent::settled(DictionaryAttr wanted) {
  DictionaryAttr decided = decidedOf(region);
  while (true) {
    const std::vector<Decision> all = target.decisions(region, decided);
    auto next = llvm::find_if(
        all, [&](const Decision &decision) { return decision.scope.empty() && !decidedValue(decided, decision); });
    if (next == all.end())
      return decided;
    Attribute value = decidedValue(wanted, *next);
    decided = withDecided(decided, *next, value && next->domain.contains(value) ? value : next->preferred);
  }
}

std::vector<Attribute> Descent::othersOf(const Decision &decision, DictionaryAttr decided) {
  const Attribute own = decidedValue(decided, decision);
  std::vector<Attribute> values;
  for (uint64_t i = 0; i < std::min<uint64_t>(decision.domain.count(), 256); ++i)
    if (Attribute value = decision.domain.at(i); value != (own ? own : decision.preferred))
      values.push_back(value);
  return values;
}

bool Descent::isHopeless(DictionaryAttr decided) {
  std::optional<double> best = target.estimate(region, found.decided), now = target.estimate(region, decided);
  return best && (!now || *now > kTrust * *best);
}

/// Values for the whole region, the estimate's best first; `trusts`: without those that it speaks against.
void Descent::tryWhole(size_t most, bool trusts) {
  const DictionaryAttr before = decidedOf(region);
  std::vector<std::pair<double, DictionaryAttr>> all;
  for (const Decision &decision : target.decisions(region, before))
    if (decision.scope.empty() && !decidedValue(before, decision))
      for (Attribute value : othersOf(decision, before)) {
        DictionaryAttr decided = settled(withDecided(found.decided, decision, value));
        all.emplace_back(target.estimate(region, decided).value_or(0), decided);
      }
  llvm::stable_sort(all, [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[estimate, decided] : all)
    if (most && left && !tried.contains(decided.getAsOpaquePointer()) && !(trusts && isHopeless(decided))) {
      attempt(decided);
      --most;
    }
}

/// Of each product's decisions the value that comes `depth` behind the first of its domain, where targets put what they
/// expect to be fastest. False where there was none to try.
bool Descent::tryEach(size_t depth) {
  bool any = false;
  std::vector<Decision> decisions = target.decisions(region, found.decided);
  for (size_t i = 0; i < decisions.size() && left; ++i) {
    const Decision decision = decisions[i];
    const DictionaryAttr best = found.decided;
    if (decision.scope.empty() || !counts(decision) || decidedValue(decidedOf(region), decision))
      continue;
    std::vector<Attribute> values = othersOf(decision, best);
    if (depth >= values.size())
      continue;
    any = true;
    // What follows in a scope rests on this value.
    NamedAttrList own;
    if (auto scope = best.getAs<DictionaryAttr>(decision.scope))
      for (size_t j = 0; j < i; ++j)
        if (Attribute value = decisions[j].scope == decision.scope ? scope.get(decisions[j].name) : Attribute())
          own.set(decisions[j].name, value);
    own.set(decision.name, values[depth]);
    NamedAttrList all(best);
    all.set(decision.scope, own.getDictionary(region.getContext()));
    DictionaryAttr decided = all.getDictionary(region.getContext());
    if (isHopeless(decided) || !attempt(decided) || found.decided == best)
      continue;
    decisions = target.decisions(region, found.decided); // which rest on what is decided
  }
  return any;
}

} // namespace dmxc::driver
