//===- Optional.cpp - values that may be missing ----------------------------===//
//
// Whether an optional has a value is known at compile time, as the length of a sequence is.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"

namespace dmxc::onnxfe {
namespace {

void importOptional(NodeContext &c) { c.result(c.has(0) ? c.anyOperand(0) : Val::none()); }

void importHasElement(NodeContext &c) { c.result(c.e.scalar(DType::Bool, c.has(0) && !c.anyOperand(0).isNone())); }

void importGetElement(NodeContext &c) {
  Val value = c.anyOperand(0);
  if (value.isNone())
    fail("op-operand", "the optional has no value");
  c.result(value);
}

} // namespace

std::vector<OpRows> optionalOps() {
  const char *note = "followed at compile time";
  return {
      {"Optional", {15}, ".>1", importOptional, "type", {}, note},
      {"OptionalHasElement", {15, 18}, ".>1", importHasElement, "", {}, note},
      {"OptionalGetElement", {15, 18}, ".>1", importGetElement, "", {}, note},
  };
}

} // namespace dmxc::onnxfe
