//===- Inverse.cpp - inverses of square matrices --------------------------===//
#include "Contrib.h"

#include "frontends/common/ops/matrices/LinearAlgebra.h"

namespace dmxc::onnxfe {
namespace {

// In f32 or f64.
void importInverse(NodeContext &c) {
  Val x = c.operand(0), wide = c.e.cast(x, x.dtype() == DType::F64 ? DType::F64 : DType::F32);
  c.result(c.e.cast(inverse(c.e, wide).x, x.dtype()));
}

} // namespace

std::vector<OpRows> contribInverseOps() {
  constexpr TypeSet Single = bitOf(DType::F16) | bitOf(DType::F32) | bitOf(DType::F64);
  return {{"Inverse", {1}, ".>1", importInverse, "", {Single}, "", kMicrosoft}};
}

} // namespace dmxc::onnxfe
