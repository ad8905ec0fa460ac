//===- KeyClasses.cpp - masks that keep keys a step apart ---------------------===//

#include "KeyClasses.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::dmir;
using namespace mlir;

static constexpr int64_t kMostStep = 128;

namespace {

/// low <= atom <= high, where the atom is something mod step.
struct Remainder {
  AffineExpr atom;
  int64_t step = 0, low = 0, high = 0;
};

} // namespace

static std::optional<Remainder> remainderIn(const Condition &condition) {
  int64_t constant = 0;
  SmallVector<AffineTerm> terms = termsOf(condition.expr, constant);
  auto atom = terms.size() == 1 ? dyn_cast<AffineBinaryOpExpr>(terms[0].atom) : AffineBinaryOpExpr(nullptr);
  auto by = atom && atom.getKind() == AffineExprKind::Mod ? dyn_cast<AffineConstantExpr>(atom.getRHS())
                                                          : AffineConstantExpr(nullptr);
  if (!by || std::abs(terms[0].factor) != 1 || by.getValue() < 2 || by.getValue() > kMostStep)
    return std::nullopt;
  Remainder found{atom, by.getValue(), 0, by.getValue() - 1};
  const bool isLeast = condition.isEq || terms[0].factor > 0, isMost = condition.isEq || terms[0].factor < 0;
  const int64_t bound = terms[0].factor > 0 ? -constant : constant;
  if (isLeast)
    found.low = std::max(found.low, bound);
  if (isMost)
    found.high = std::min(found.high, bound);
  return found.low <= found.high ? std::optional(found) : std::nullopt;
}

/// The remainder that a case asks for by one condition or by two.
static std::optional<Remainder> remainderOf(IntegerSet set) {
  std::optional<Remainder> found;
  for (const Condition &condition : conditionsOf(set))
    if (std::optional<Remainder> own = remainderIn(condition); own && (!found || own->atom == found->atom)) {
      if (found)
        own->low = std::max(own->low, found->low), own->high = std::min(own->high, found->high);
      found = own;
    }
  return found && found->low <= found->high ? found : std::nullopt;
}

/// Which keys have these remainders; nothing where they are no classes of them.
static std::optional<KeyClasses> classesOf(const Remainder &remainder, unsigned rank) {
  int64_t shift = 0;
  SmallVector<AffineTerm> terms = termsOf(cast<AffineBinaryOpExpr>(remainder.atom).getLHS(), shift);
  int64_t ofRow = 0, ofKey = 0;
  for (const AffineTerm &term : terms) {
    auto dim = dyn_cast<AffineDimExpr>(term.atom);
    if (!dim || dim.getPosition() + 2 < rank)
      return std::nullopt;
    (dim.getPosition() + 1 == rank ? ofKey : ofRow) = term.factor;
  }
  const int64_t count = remainder.high - remainder.low + 1;
  KeyClasses classes{remainder.step, ofRow != 0, count, 0, {}, {}};
  if (std::abs(ofKey) != 1 || (ofRow ? ofRow != -ofKey || count != 1 : ofKey != 1 || count * 2 > remainder.step))
    return std::nullopt;
  // key == row + shift - low where the row's factor is 1; key == low - shift, and on.
  const int64_t from = ofRow > 0 ? shift - remainder.low : remainder.low - shift;
  classes.shift = from - llvm::divideFloorSigned(from, remainder.step) * remainder.step;
  return classes;
}

std::optional<KeyClasses> dmxc::cpu::findClasses(const Rule &rule) {
  if (rule.rank < 2 || rule.tiles)
    return std::nullopt;
  std::optional<Remainder> remainder;
  std::optional<KeyClasses> classes;
  for (IntegerSet set : rule.cases)
    if (remainder = remainderOf(set); remainder && (classes = classesOf(*remainder, rule.rank)))
      break;
  if (!classes)
    return std::nullopt;
  classes->inside = classes->outside = rule;
  classes->inside.cases.clear(), classes->outside.cases.clear();
  for (IntegerSet set : rule.cases) {
    std::optional<Remainder> own = remainderOf(set);
    if (own && own->atom == remainder->atom && own->low == remainder->low && own->high == remainder->high) {
      Conditions rest;
      for (const Condition &condition : conditionsOf(set))
        if (std::optional<Remainder> one = remainderIn(condition); !one || one->atom != remainder->atom)
          rest.push_back(condition);
      const auto &own = rest.empty() ? wholeCase(rule.rank, rule.symbols(), set.getContext())
                                     : caseOf(rule.rank, rule.symbols(), rest);
      classes->inside.cases.insert(classes->inside.cases.begin(), own); // it may keep whole tiles
      continue;
    }
    classes->inside.cases.push_back(set);
    auto elsewhere = [&](AffineExpr expr) {
      Conditions all = conditionsOf(set);
      all.push_back({expr, false});
      classes->outside.cases.push_back(caseOf(rule.rank, rule.symbols(), all));
    };
    if (remainder->low > 0)
      elsewhere(-remainder->atom + (remainder->low - 1));
    if (remainder->high + 1 < remainder->step)
      elsewhere(remainder->atom - (remainder->high + 1));
  }
  return classes;
}
