//===- SavedSchedule.cpp - --save-schedule --------------------------------===//
#include "Schedule.h"

#include "dmxc/Phases/Decisions.h"

#include "mlir/IR/AsmState.h"

using namespace mlir;

namespace dmxc::driver {

namespace {

/// A dictionary as scripts write it: numbers without their type.
std::string dictionaryText(DictionaryAttr dictionary) {
  std::string text;
  for (NamedAttribute entry : dictionary) {
    StringRef name = entry.getName();
    bool isWord = !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') &&
                  llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    auto inner = dyn_cast<DictionaryAttr>(entry.getValue());
    text += (text.empty() ? "" : ", ") + (isWord ? name.str() : valueText(entry.getName())) + " = " +
            (inner ? dictionaryText(inner) : valueText(entry.getValue()));
  }
  return "{" + text + "}";
}

/// A glob that this text alone matches.
std::string globOf(StringRef name) {
  std::string glob;
  for (char c : name)
    glob += (StringRef("*?[\\").contains(c) ? "\\" : "") + std::string(1, c);
  return glob;
}

/// By which names a region is found.
std::set<std::string> namesOf(dmir::RegionOp region) {
  std::set<std::string> names{dmir::nodeName(region)};
  for (Operation &op : *region.getBlock())
    if (isa<dmir::DMIRDialect>(op.getDialect()) && !isa<dmir::ConstantOp, dmir::YieldOp>(op))
      names.insert(dmir::nodeName(&op));
  names.erase("");
  return names;
}

/// A region without what is said of who decided it.
std::string planOf(dmir::RegionOp region) {
  OwningOpRef<Operation *> copy = region->clone();
  auto own = cast<dmir::RegionOp>(*copy);
  NamedAttrList strategy(own.getStrategyAttr() ? own.getStrategyAttr() : DictionaryAttr::get(region.getContext()));
  strategy.erase(strategy::kDecided);
  own.setStrategyAttr(strategy.getDictionary(region.getContext()));
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope().elideLargeElementsAttrs());
  return text;
}

/// Writes what of regions is decided as calls of match and decide.
class Writer {
public:
  Writer(ModuleOp module, const PhaseContext &context, const Schedule &schedule, Diagnostics &diagnostics,
         SavedValues which)
      : context(context), schedule(schedule), isWhole(which == SavedValues::All),
        trial(*module.getContext(), context, diagnostics), copy(module.clone()) {
    module.walk([&](dmir::RegionOp region) {
      regions.push_back(region);
      for (const std::string &name : namesOf(region))
        ++counts[name];
    });
    copy->walk([&](dmir::RegionOp region) { copies.push_back(region); });
  }

  std::string lines() {
    std::string text;
    for (auto [number, region] : llvm::enumerate(regions)) {
      const TargetBackend *target = context.target(region.getDevice());
      if (!target || !decidedOf(region) || (!isWhole && decidedOf(region).empty()))
        continue;
      std::vector<Decision> decisions = target->decisions(region, decidedOf(region));
      DictionaryAttr decided = isWhole ? chosenOf(region, copies[number], decisions) : decidedOf(region);
      if (decided.empty())
        continue;
      const std::string handle = (isWhole ? "%r" : "%b") + std::to_string(number);
      text += "    // " + region.getDevice().str() + whoDecided(region, decisions, decided) + "\n    " + handle +
              " = transform.dmx.match " + selectorOf(region, number) + " : !transform.any_op -> !transform.any_op\n" +
              "    transform.dmx.decide " + handle + " " + dictionaryText(decided) + " : !transform.any_op\n";
    }
    return text;
  }

private:
  std::string selectorOf(dmir::RegionOp region, size_t number) {
    std::string best;
    for (const std::string &name : namesOf(region))
      if (best.empty() || counts[name] < counts[best] || name == dmir::nodeName(region))
        if (best.empty() || counts[name] <= counts[best])
          best = name;
    const StringAttr glob = StringAttr::get(region.getContext(), globOf(best));
    if (best.empty())
      return "{nth = " + std::to_string(number) + "} in %m";
    if (counts[best] == 1)
      return "{node = " + valueText(glob) + "} in %m expect 1";
    auto before = llvm::count_if(ArrayRef(regions).take_front(number),
                                 [&](dmir::RegionOp other) { return namesOf(other).contains(best); });
    return "{node = " + valueText(glob) + ", nth = " + std::to_string(before) + "} in %m expect " +
           std::to_string(counts[best]);
  }

  /// All that the region has, as few words as say it: a value for all that have it in the place of one for each. What
  /// does not make the same of a region that nothing is decided of is left to its target.
  DictionaryAttr chosenOf(dmir::RegionOp region, dmir::RegionOp own, ArrayRef<Decision> decisions) {
    DictionaryAttr decided = decidedOf(region), all = decided;
    std::map<std::string, std::set<std::string>> values; // by name
    std::set<std::string> shared;
    for (const Decision &decision : decisions) {
      Attribute value = decidedValue(decided, decision);
      Attribute now = value ? value : decision.preferred;
      values[decision.name].insert(valueText(now));
      if (decision.scope.empty())
        shared.insert(decision.name); // both kinds of one name stay apart
      if (value || decision.domain.count() < 2)
        continue;
      all = withDecided(all, decision, now);
    }
    NamedAttrList joined;
    std::map<std::string, NamedAttrList> scopes;
    for (NamedAttribute entry : all) {
      auto scope = dyn_cast<DictionaryAttr>(entry.getValue());
      for (NamedAttribute inner : scope ? scope.getValue() : ArrayRef<NamedAttribute>(entry)) {
        std::string name = inner.getName().str();
        bool isJoined = !scope || (values[name].size() == 1 && !shared.contains(name));
        (isJoined ? joined : scopes[entry.getName().str()]).set(name, inner.getValue());
      }
    }
    for (auto &[name, values] : scopes)
      joined.set(name, values.getDictionary(region.getContext()));
    for (DictionaryAttr candidate : {joined.getDictionary(region.getContext()), all})
      if (makesTheSame(region, own, candidate))
        return candidate;
    return decided;
  }

  bool makesTheSame(dmir::RegionOp region, dmir::RegionOp own, DictionaryAttr candidate) {
    NamedAttrList none;
    none.set(strategy::kDecided, DictionaryAttr::get(region.getContext()));
    own.setStrategyAttr(none.getDictionary(region.getContext()));
    return trial.decide(own, candidate, "") && planOf(own) == planOf(region);
  }

  /// "; default: grain; s.mlir:4:5: rows": who decided what.
  std::string whoDecided(dmir::RegionOp region, ArrayRef<Decision> decisions, DictionaryAttr decided) {
    std::map<std::string, std::set<std::string>> deciders; // by name
    auto who = [&](const Decision &decision) {
      if (!decidedValue(decidedOf(region), decision))
        return std::string("default");
      std::string by = schedule.decider(region, decision.scope, decision.name);
      return by.empty() ? "text" : by;
    };
    for (const Decision &decision : decisions)
      deciders[decision.name].insert(who(decision));
    std::vector<std::pair<std::string, llvm::SetVector<StringRef>>> rows;
    std::vector<std::string> names;
    for (const Decision &decision : decisions)
      names.push_back(deciders[decision.name].size() == 1 ? decision.name : decision.scope + "." + decision.name);
    for (auto [decision, name] : llvm::zip_equal(decisions, names)) {
      if (!decidedValue(decided, decision))
        continue;
      const std::string by = who(decision);
      auto row = llvm::find_if(rows, [&](const auto &each) { return each.first == by; });
      if (row == rows.end())
        row = rows.insert(row, {by, {}});
      row->second.insert(name);
    }
    std::string text;
    for (const auto &[by, all] : rows)
      text += "; " + by + ": " + llvm::join(all, ", ");
    return text;
  }

  const PhaseContext &context;
  const Schedule &schedule;
  bool isWhole;
  Schedule trial; ///< what decides of the copies
  OwningOpRef<ModuleOp> copy;
  std::vector<dmir::RegionOp> regions, copies;
  std::map<std::string, int64_t> counts; ///< of regions that a name finds
};

/// What ops refer to of what stands beside them, and those themselves. Forms are known by texts, so all are taken.
llvm::SetVector<Operation *> reached(ModuleOp script, ArrayRef<Operation *> from) {
  llvm::SetVector<Operation *> all(from.begin(), from.end());
  for (auto form : script.getOps<transform::DefineFormOp>())
    all.insert(form);
  for (size_t i = 0; i < all.size(); ++i)
    all[i]->walk([&](Operation *op) {
      op->getAttrDictionary().walk([&](SymbolRefAttr symbol) {
        if (Operation *other = script.lookupSymbol(symbol.getRootReference()))
          all.insert(other);
      });
    });
  return all;
}

/// Whether a sequence, with what it includes, only finds regions and decides how they are computed.
bool onlyDecides(ModuleOp script, Operation *sequence) {
  return llvm::none_of(reached(script, sequence), [](Operation *each) {
    return each
        ->walk([](mlir::transform::TransformOpInterface op) {
          const bool decides = isa<transform::DecideOp, mlir::transform::IncludeOp, transform::DefineFormOp>(op);
          return !decides && mlir::transform::doesModifyPayload(op) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

} // namespace

std::string decidingLines(ModuleOp module, const PhaseContext &context, const Schedule &schedule,
                          Diagnostics &diagnostics, SavedValues which) {
  return Writer(module, context, schedule, diagnostics, which).lines();
}

namespace {

std::string textOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().useLocalScope());
  return text;
}

StringAttr nameOf(Operation *op) { return op->getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()); }

/// What of scripts is more than decisions, for one module: sequences with what they include, parameters with the values
/// that they had.
class Kept {
public:
  explicit Kept(const std::map<std::string, Attribute> &chosen) : chosen(chosen) {}

  /// Takes sequences of a script. Returned are calls of that which runs behind partition, if it is one of them.
  std::string add(ModuleOp script, ArrayRef<Operation *> sequences, Operation *ofPartition) {
    OwningOpRef<ModuleOp> copy = script.clone();
    std::vector<Operation *> taken;
    for (Operation *op : reached(script, sequences))
      taken.push_back(copy->lookupSymbol(nameOf(op)));
    copy->walk([&](Operation *op) {
      if (isa<transform::GuardOp, transform::FoundOp>(op)) // which reading puts there
        op->erase();
      else if (auto parameter = dyn_cast<transform::ParamOp>(op))
        if (auto value = chosen.find(parameter.getName().str()); value != chosen.end())
          parameter.setPreferredAttr(value->second);
    });
    Operation *called = ofPartition ? copy->lookupSymbol(nameOf(ofPartition)) : nullptr;
    for (Operation *op : taken)
      rename(op, *copy, op == called);
    if (auto sequence = dyn_cast_or_null<mlir::transform::NamedSequenceOp>(called)) {
      using mlir::transform::TransformDialect;
      sequence->removeAttr("dmx.at");
      if (!sequence.getArgAttr(0, TransformDialect::kArgConsumedAttrName))
        sequence.setArgAttr(0, TransformDialect::kArgReadOnlyAttrName, UnitAttr::get(copy->getContext()));
    }
    for (Operation *op : taken)
      if (owners.try_emplace(nameOf(op).str(), textOf(op)).second)
        for (StringRef line : llvm::split(owners[nameOf(op).str()], '\n'))
          ops += "  " + line.str() + "\n";
    return called ? callOf(cast<mlir::transform::NamedSequenceOp>(called)) : "";
  }

  std::string ops;

private:
  static std::string callOf(mlir::transform::NamedSequenceOp sequence) {
    std::string type, name = sequence.getName().str();
    llvm::raw_string_ostream(type) << sequence.getArgumentTypes().front();
    const bool isAny = type == "!transform.any_op";
    return (isAny ? "" : "    %" + name + " = transform.cast %m : !transform.any_op to " + type + "\n") +
           "    transform.include @" + name + " failures(propagate) (%" + (isAny ? "m" : name) + ") : (" + type +
           ") -> ()\n";
  }

  /// Gives another name to what another script has something else by the name of.
  void rename(Operation *op, ModuleOp copy, bool isCalled) {
    constexpr StringLiteral main = mlir::transform::TransformDialect::kTransformEntryPointSymbolName;
    std::string name = nameOf(op).str();
    auto isFree = [&] {
      auto owner = owners.find(name);
      return (owner == owners.end() || owner->second == textOf(op)) && name != main;
    };
    if (isFree())
      return;
    name = isCalled && name == main ? "script" : name + "_";
    while (owners.contains(name) || copy.lookupSymbol(name))
      name += "_";
    auto fresh = StringAttr::get(copy.getContext(), name);
    (void)SymbolTable::replaceAllSymbolUses(op, fresh, copy);
    SymbolTable::setSymbolName(op, fresh);
  }

  const std::map<std::string, Attribute> &chosen;
  std::map<std::string, std::string> owners; ///< texts by name
};

} // namespace

std::string Schedule::saved(ModuleOp module) const {
  Kept kept(chosen);
  std::string calls;
  for (const Script &script : scripts) {
    SmallVector<Operation *> sequences;
    Operation *ofPartition = nullptr;
    for (const Entry &entry : script.entries) {
      const bool isOurs = entry.stop == kPartition;
      if (isOurs && onlyDecides(*script.module, entry.sequence))
        continue;
      sequences.push_back(entry.sequence);
      if (isOurs)
        ofPartition = entry.sequence;
    }
    if (!sequences.empty())
      calls += kept.add(*script.module, sequences, ofPartition);
  }
  return "module attributes {transform.with_named_sequence} {\n" + kept.ops +
         "  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {\n" +
         (calls.empty() ? "" : decidedBefore + calls) +
         decidingLines(module, phases, *this, diagnostics, SavedValues::All) + "    transform.yield\n  }\n}\n";
}

} // namespace dmxc::driver
