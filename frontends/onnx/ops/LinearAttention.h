//===- LinearAttention.h - recurrences of more than one domain --*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// With the attributes of com.microsoft where a row has them.
void importCausalConv(NodeContext &c);
/// `inverse`: there may be more key heads than query heads, which then share those.
void importLinearAttention(NodeContext &c, bool inverse);

} // namespace dmxc::onnxfe
