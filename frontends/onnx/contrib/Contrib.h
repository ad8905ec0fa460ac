//===- Contrib.h - what operators of com.microsoft share --------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"
#include "Families.h"

namespace dmxc::onnxfe {

/// Fails unless bits are 2, 4 or 8, and a block a power of two of at least 16.
void requireBits(NodeContext &c, int64_t bits);
void requireBlock(NodeContext &c, int64_t block);
/// An operand with the dims that it must have; `what` names it, `why` says where the dims come from.
Val shaped(NodeContext &c, const Val &value, const Dims &dims, const char *what, const std::string &why);

} // namespace dmxc::onnxfe
