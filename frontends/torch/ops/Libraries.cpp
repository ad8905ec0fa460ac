//===- Libraries.cpp - operators of transformers -------------------------===//
#include "Math.h"

#include "frontends/common/ops/Product.h"

namespace dmxc::torchfe {
namespace {

/// Of transformers: rows sorted by the expert that takes them, and where each expert's rows end.
void importGroupedFallback(AtenContext &c) {
  c.result(groupedProduct(c.e, c.tensor("input"), c.tensor("weight"), c.tensor("offs")));
}

} // namespace

std::vector<AtenRow> libraryOps() {
  return {
      {"transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", importGroupedFallback},
  };
}

} // namespace dmxc::torchfe
