//===- Products.h - operands of products ------------------------*- C++ -*-===//
#pragma once

#include "Types.h"

#include "dmxc/Support/Tensor.h"

namespace dmxc::reference {

/// An operand of a product whose terms are of type `type`: bytes may be summed in i32, floats of 16 bits in f32.
inline Tensor productOperand(const Tensor &operand, DType type) {
  if (operand.dtype() == type)
    return operand;
  Tensor wide(type, operand.shape());
  withNumber(type, [&]<typename To>(To) {
    withNumber(operand.dtype(), [&]<typename From>(From) {
      std::transform(operand.as<From>(), operand.as<From>() + operand.numElements(), wide.as<To>(),
                     [](From x) { return static_cast<To>(x); });
    });
  });
  return wide;
}

} // namespace dmxc::reference
