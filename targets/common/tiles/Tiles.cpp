//===- Tiles.cpp - how a kernel is cut, as named numbers ------------------===//

#include "Tiles.h"

#include "dmxc/Support/Diagnostic.h"

#include "mlir/IR/Builders.h"

using namespace dmxc;
using namespace mlir;

std::optional<int64_t> kernels::numberIn(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary ? dictionary.getAs<IntegerAttr>(key) : IntegerAttr();
  if (!value || value.getValue().getSignificantBits() > 64)
    return std::nullopt;
  return value.getType().isInteger(1) ? value.getValue().getZExtValue() : value.getValue().getSExtValue();
}

Attribute kernels::tileValue(int64_t value, MLIRContext *context) { return Builder(context).getI64IntegerAttr(value); }
Attribute kernels::tileValue(bool value, MLIRContext *context) { return Builder(context).getBoolAttr(value); }

Domain kernels::numbersOf(const std::set<int64_t> &numbers, MLIRContext *context) {
  SmallVector<Attribute> values;
  for (int64_t number : numbers)
    values.push_back(tileValue(number, context));
  return Domain::oneOf(values);
}

std::set<int64_t> kernels::evenParts(int64_t count, int64_t most) {
  std::set<int64_t> sizes;
  for (int64_t size = 1; size <= std::min(most, count); ++size)
    if (int64_t parts = (count + size - 1) / size; (count + parts - 1) / parts == size)
      sizes.insert(size);
  return sizes;
}

/// What is wrong with one value, null where it is missing.
static std::string wrongValue(Attribute has, const std::string &name, ArrayRef<Decision> free, Attribute needed,
                              const std::string &key) {
  std::string text = "'" + key + "' of its strategy is " + (has ? valueText(has) : "missing");
  const auto *decision = llvm::find_if(free, [&](const Decision &one) { return one.name == name; });
  if (decision != free.end())
    return has && decision->domain.contains(has) ? "" : text + "; its values are " + decision->domain.str();
  return has && domainValue(has) == domainValue(needed)
             ? ""
             : text + ", but must be " + valueText(needed) + "; what is left out is derived";
}

std::string kernels::wrongField(Attribute written, ArrayRef<Decision> free, DictionaryAttr whole,
                                const std::string &path) {
  std::vector<std::string> names;
  std::string list;
  for (NamedAttribute field : whole) {
    names.push_back(field.getName().str());
    list += (list.empty() ? "" : ", ") + names.back();
  }
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  if (!own)
    return "'" + path + "' of its strategy is " + (written ? valueText(written) : "missing") +
           ", but must be a dictionary of " + list;
  for (NamedAttribute entry : own)
    if (std::string name = entry.getName().str(); !whole.contains(name)) {
      std::string near = nearestName(name, names);
      return "'" + path + "." + name + "' of its strategy is no field of it; it has " + list +
             (near.empty() ? "" : "; did you mean '" + near + "'?");
    }
  for (NamedAttribute field : whole) {
    std::string name = field.getName().str(), key = path + "." + name;
    auto inner = dyn_cast<DictionaryAttr>(field.getValue());
    std::string wrong = inner ? wrongField(own.get(name), {}, inner, key)
                              : wrongValue(own.get(name), name, free, field.getValue(), key);
    if (!wrong.empty())
      return wrong;
  }
  return "";
}
