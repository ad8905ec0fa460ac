//===- Require.h - what operators demand of a node --------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <string>

namespace dmxc::frontend {

/// Fails unless an attribute is as it must be.
inline void requireAttr(bool condition, const std::string &clause) {
  if (!condition)
    fail("op-attribute", clause);
}

/// Fails unless the operands' shapes fit.
inline void requireShape(bool condition, const std::string &clause) {
  if (!condition)
    fail("op-shape", clause);
}

/// One of a node's operands; fails unless it is there and a tensor.
inline const Val &requireTensor(llvm::ArrayRef<Val> operands, size_t i) {
  if (i >= operands.size() || !operands[i])
    fail("op-operand", "operand " + std::to_string(i) + " is missing");
  if (!operands[i].isTensor())
    fail("op-dtype", "operand " + std::to_string(i) + " is a " + operands[i].describe() + "; expected a tensor");
  return operands[i];
}

/// The same of an operand that may be left out: null where it is.
inline Val optionalTensor(llvm::ArrayRef<Val> operands, size_t i) {
  return i < operands.size() && operands[i] ? requireTensor(operands, i) : Val();
}

} // namespace dmxc::frontend
