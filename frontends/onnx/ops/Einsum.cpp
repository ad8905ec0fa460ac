//===- Einsum.cpp - Einstein sums -----------------------------------------===//
#include "../NodeContext.h"

#include "frontends/common/ops/Einsum.h"

namespace dmxc::onnxfe {
namespace {

void importEinsum(NodeContext &c) {
  std::vector<Val> operands;
  for (int i = 0; i < c.numOperands(); ++i)
    operands.push_back(c.has(i) ? c.anyOperand(i) : Val());
  c.result(einsum(c.e, c.attrString("equation"), operands));
}

} // namespace

std::vector<OpRows> einsumOps() { return {{"Einsum", {12}, "T*>1", importEinsum, "equation", {types::Number}}}; }

} // namespace dmxc::onnxfe
