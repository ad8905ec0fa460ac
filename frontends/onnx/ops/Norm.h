//===- Norm.h - normalisations of more than one domain ----------*- C++ -*-===//
#pragma once

#include "../NodeContext.h"

namespace dmxc::onnxfe {

/// x / sqrt(mean(x^2) + epsilon) * scale; the second result, where it is wanted, is 1 / sqrt(mean(x^2) + epsilon).
void importRMSNorm(NodeContext &c);

} // namespace dmxc::onnxfe
