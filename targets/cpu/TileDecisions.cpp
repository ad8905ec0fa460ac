//===- TileDecisions.cpp - what decisions of tiles share ------------------===//

#include "TileDecisions.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

std::optional<int64_t> dmxc::cpu::numberIn(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary ? dictionary.getAs<IntegerAttr>(key) : IntegerAttr();
  if (!value || value.getValue().getSignificantBits() > 64)
    return std::nullopt;
  return value.getType().isInteger(1) ? value.getValue().getZExtValue() : value.getValue().getSExtValue();
}

std::optional<bool> dmxc::cpu::flagIn(DictionaryAttr dictionary, StringRef key) {
  std::optional<int64_t> value = numberIn(dictionary, key);
  return value ? std::optional(*value != 0) : std::nullopt;
}

DictionaryAttr dmxc::cpu::ofDomains(ArrayRef<Decision> decisions, DictionaryAttr decided) {
  NamedAttrList taken;
  for (const Decision &decision : decisions)
    if (Attribute value = decided ? decided.get(decision.name) : Attribute(); value && decision.domain.contains(value))
      taken.set(decision.name, value);
  return decided ? taken.getDictionary(decided.getContext()) : decided;
}

Domain dmxc::cpu::numbersOf(const std::set<int64_t> &numbers, MLIRContext *context) {
  Builder b(context);
  SmallVector<Attribute> values;
  for (int64_t number : numbers)
    values.push_back(b.getI64IntegerAttr(number));
  return Domain::oneOf(values);
}

std::set<int64_t> dmxc::cpu::evenParts(int64_t count, int64_t most) {
  std::set<int64_t> sizes;
  for (int64_t size = 1; size <= std::min(most, count); ++size)
    if (int64_t parts = (count + size - 1) / size; (count + parts - 1) / parts == size)
      sizes.insert(size);
  return sizes;
}

std::optional<int64_t> FreeTiles::number(StringRef name, std::set<int64_t> values, int64_t preferred, Effect effect,
                                         const char *help) {
  values.insert(preferred);
  return add(name, numbersOf(values, b.getContext()), b.getI64IntegerAttr(preferred), effect, help);
}

std::optional<bool> FreeTiles::flag(StringRef name, bool preferred, Effect effect, const char *help) {
  auto domain = Domain::oneOf({b.getBoolAttr(false), b.getBoolAttr(true)});
  std::optional<int64_t> value = add(name, std::move(domain), b.getBoolAttr(preferred), effect, help);
  return value ? std::optional(*value != 0) : std::nullopt;
}

std::optional<int64_t> FreeTiles::add(StringRef name, Domain domain, Attribute preferred, Effect effect,
                                      const char *help) {
  Attribute value = decided ? decided.get(name) : Attribute();
  bool has = value && domain.contains(value);
  if (domain.count() > 1)
    all.push_back({name.str(), isa.name, std::move(domain), preferred, effect, help});
  return has ? numberIn(decided, name) : std::nullopt;
}
