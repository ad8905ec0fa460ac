//===- Domain.cpp - the values that a choice has --------------------------===//
#include "dmxc/Dialect/DMIR/Domain.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace dmxc {

Attribute domainValue(Attribute value) {
  auto integer = dyn_cast_or_null<IntegerAttr>(value);
  if (!integer || integer.getType().isInteger(1) || integer.getValue().getSignificantBits() > 64)
    return value;
  return IntegerAttr::get(IntegerType::get(value.getContext(), 64), integer.getValue().getSExtValue());
}

std::string valueText(Attribute value) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (auto integer = dyn_cast<IntegerAttr>(value); integer && !integer.getType().isInteger(1))
    integer.getValue().print(stream, /*isSigned=*/true);
  else
    stream << value;
  return text;
}

Domain Domain::oneOf(ArrayRef<Attribute> values) {
  Domain domain;
  for (Attribute value : values)
    if (Attribute own = domainValue(value); !llvm::is_contained(domain.values, own))
      domain.values.push_back(own);
  return domain;
}

Domain Domain::range(MLIRContext *context, int64_t low, int64_t high, int64_t step) {
  Domain domain;
  domain.context = context;
  domain.low = low;
  domain.step = step;
  if (high >= low) // of unsigned numbers, which wrap where signed ones must not
    domain.steps = (static_cast<uint64_t>(high) - static_cast<uint64_t>(low)) / static_cast<uint64_t>(step) + 1;
  return domain;
}

Domain Domain::divisorsOf(MLIRContext *context, int64_t n) {
  SmallVector<int64_t> small, large;
  for (int64_t i = 1; i <= n / i; ++i)
    if (n % i == 0) {
      small.push_back(i);
      if (i != n / i)
        large.push_back(n / i);
    }
  Domain domain;
  Builder b(context);
  for (int64_t divisor : small)
    domain.values.push_back(b.getI64IntegerAttr(divisor));
  for (int64_t divisor : llvm::reverse(large))
    domain.values.push_back(b.getI64IntegerAttr(divisor));
  return domain;
}

Attribute Domain::at(uint64_t i) const {
  if (!steps)
    return values[i];
  return Builder(context).getI64IntegerAttr(low + static_cast<int64_t>(i) * step);
}

bool Domain::contains(Attribute value) const {
  Attribute own = domainValue(value);
  if (!steps)
    return llvm::is_contained(values, own);
  auto integer = dyn_cast_or_null<IntegerAttr>(own);
  if (!integer || !integer.getType().isInteger(64) || integer.getInt() < low)
    return false;
  uint64_t beyond = static_cast<uint64_t>(integer.getInt()) - static_cast<uint64_t>(low);
  return beyond % static_cast<uint64_t>(step) == 0 && beyond / static_cast<uint64_t>(step) < steps;
}

std::string Domain::str() const {
  constexpr size_t most = 24; // that a message writes out
  uint64_t all = count();
  if (all == 0)
    return "none";
  if (steps > 2) {
    std::string text = valueText(at(0)) + " to " + valueText(at(all - 1));
    return step == 1 ? text : text + " step " + std::to_string(step);
  }
  std::string text;
  for (uint64_t i = 0; i < std::min<uint64_t>(all, most); ++i)
    text += (i ? ", " : "") + valueText(at(i));
  return all <= most ? text : text + ", ... (" + std::to_string(all) + " values)";
}

} // namespace dmxc
