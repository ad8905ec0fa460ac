//===- Decisions.cpp - what was decided of regions ------------------------===//
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Phases/Phases.h"

#include "dmxc/Dialect/DMIR/Forms.h"
#include "dmxc/Support/Diagnostic.h"

#include <set>

using namespace mlir;

namespace dmxc {

DictionaryAttr decidedOf(dmir::RegionOp region) {
  DictionaryAttr strategy = region.getStrategyAttr();
  Attribute decided = strategy ? strategy.get(strategy::kDecided) : Attribute();
  return decided ? dyn_cast<DictionaryAttr>(decided) : DictionaryAttr::get(region.getContext());
}

DictionaryAttr mergeDecided(DictionaryAttr decided, DictionaryAttr added) {
  NamedAttrList merged(decided);
  for (NamedAttribute entry : added) {
    auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
    auto before = dyn_cast_or_null<DictionaryAttr>(decided.get(entry.getName()));
    if (inner && before)
      merged.set(entry.getName(), mergeDecided(before, inner));
    else
      merged.set(entry.getName(), inner ? Attribute(inner) : domainValue(entry.getValue()));
  }
  return merged.getDictionary(decided.getContext());
}

DictionaryAttr withDecided(DictionaryAttr decided, const Decision &decision, Attribute value) {
  Builder b(decided.getContext());
  DictionaryAttr one = b.getDictionaryAttr(b.getNamedAttr(decision.name, value));
  return mergeDecided(decided, decision.scope.empty() ? one : b.getDictionaryAttr(b.getNamedAttr(decision.scope, one)));
}

Attribute decidedValue(DictionaryAttr decided, const Decision &decision) {
  if (!decision.scope.empty())
    if (auto scope = dyn_cast_or_null<DictionaryAttr>(decided.get(decision.scope)))
      if (Attribute value = scope.get(decision.name))
        return value;
  Attribute value = decided.get(decision.name);
  return value && !isa<DictionaryAttr>(value) ? value : Attribute();
}

namespace {

/// Compares what is decided with what may be.
class Checker {
public:
  Checker(const TargetBackend &target, dmir::RegionOp region, ArrayRef<Decision> decisions)
      : whose("the " + target.name().str() + " target "), node("node '" + dmir::nodeName(region) + "'"),
        decisions(decisions) {}

  Status check(DictionaryAttr decided) const {
    for (NamedAttribute entry : decided) {
      StringRef key = entry.getName();
      auto scope = dyn_cast<DictionaryAttr>(entry.getValue());
      if (!scope) {
        if (Status s = checkValue(key, std::nullopt, entry.getValue()); !s)
          return s;
        continue;
      }
      if (llvm::none_of(decisions, [&](const Decision &decision) { return decision.scope == key; }))
        return unknown(key, scopes(), "nothing to decide for");
      for (NamedAttribute inner : scope)
        if (Status s = checkValue(inner.getName(), key, inner.getValue()); !s)
          return s;
    }
    return Status::ok();
  }

private:
  Status checkValue(StringRef name, std::optional<StringRef> scope, Attribute value) const {
    bool isKnown = false;
    for (const Decision &decision : decisions) {
      if (decision.name != name || (scope && decision.scope != *scope))
        continue;
      isKnown = true;
      if (!decision.domain.contains(value))
        return modelError(whose + "refuses " + name.str() + " = " + valueText(value) + " for " + node +
                          (decision.scope.empty() ? "" : " at " + decision.scope) + "; its values are " +
                          decision.domain.str());
    }
    return isKnown ? Status::ok() : unknown(name, names(scope), "no decision");
  }

  Status unknown(StringRef name, const std::vector<std::string> &known, StringRef what) const {
    std::string near = nearestName(name.str(), known), list;
    for (const std::string &one : known)
      list += (list.empty() ? "" : ", ") + one;
    return modelError(whose + "has " + what.str() + " '" + name.str() + "' for " + node + "; it has " +
                      (list.empty() ? "none" : list) + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  std::vector<std::string> names(std::optional<StringRef> scope) const {
    std::set<std::string> names;
    for (const Decision &decision : decisions)
      if (!scope || decision.scope == *scope)
        names.insert(decision.name);
    return {names.begin(), names.end()};
  }

  std::vector<std::string> scopes() const {
    std::set<std::string> names;
    for (const Decision &decision : decisions)
      if (!decision.scope.empty())
        names.insert(decision.scope);
    return {names.begin(), names.end()};
  }

  std::string whose, node;
  ArrayRef<Decision> decisions;
};

} // namespace

Result<DictionaryAttr> completeStrategy(const TargetBackend &target, dmir::RegionOp region) {
  DictionaryAttr decided = decidedOf(region);
  if (!decided)
    return modelError("'decided' of its strategy is no dictionary; write decided = {NAME = VALUE}");
  if (!decided.empty())
    if (Status s = Checker(target, region, target.decisions(region, decided)).check(decided); !s)
      return s.takeError();
  Result<DictionaryAttr> strategy = target.chooseStrategy(region);
  if (!strategy || decided.empty())
    return strategy;
  NamedAttrList all(*strategy);
  all.set(strategy::kDecided, decided);
  return all.getDictionary(region.getContext());
}

static std::string textOf(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

/// What of a strategy is not as the target derives it; nullopt where nothing is. `path` is that of the dictionary.
static std::optional<std::string> difference(DictionaryAttr given, DictionaryAttr derived,
                                             const std::string &path = "") {
  for (NamedAttribute entry : given) {
    std::string key = path + entry.getName().str();
    Attribute needed = derived.get(entry.getName());
    auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
    if (needed == entry.getValue() || (!needed && inner && inner.empty()))
      continue;
    if (!needed)
      return "'" + key + "' of its strategy is " + textOf(entry.getValue()) + ", but it has none; leave it out";
    if (auto other = dyn_cast<DictionaryAttr>(needed); inner && other) {
      if (auto found = difference(inner, other, key + "."))
        return found;
      continue;
    }
    return "'" + key + "' of its strategy is " + textOf(entry.getValue()) + ", but must be " + textOf(needed) +
           "; what is left out is derived";
  }
  return std::nullopt;
}

Result<DictionaryAttr> checkedStrategy(const PhaseContext &context, dmir::RegionOp region) {
  const TargetBackend *target = context.target(region.getDevice());
  if (!target)
    return modelError("the region is for the device '" + region.getDevice().str() +
                      "', which is no target of this compile");
  for (TypeRange types : {TypeRange(region.getInputs()), TypeRange(region.getResultTypes())})
    if (target->runsOnHost() && llvm::any_of(types, [](Type type) { return dmir::formBytesOf(type).has_value(); }))
      return modelError("it reads or gives a tensor in a form that another target has for itself");
  for (Operation &op : region.getBlock()->without_terminator())
    if (auto refusal = context.checkStrategies && !isa<dmir::ConstantOp>(op) ? context.refusal(*target, &op)
                                                                             : std::nullopt) // of who reads constants
      return modelError("'" + op.getName().getStringRef().str() + "' cannot be in a region of '" +
                        target->name().str() + "': " + *refusal);
  DictionaryAttr given = region.getStrategyAttr();
  Result<DictionaryAttr> strategy = completeStrategy(*target, region);
  if (!strategy || !given)
    return strategy;
  if (std::optional<std::string> found = difference(given, *strategy))
    return modelError(*found);
  return strategy;
}

} // namespace dmxc
