//===- OnnxBridge.h - operators by the ONNX table ---------------*- C++ -*-===//
//
// What is the same operator in ONNX (LSTM, Resize, Einsum, ...) is imported once, by its row there.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Shared.h"

#include <map>
#include <string>
#include <variant>

namespace dmxc::torchfe {

using OnnxAttribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                                   std::vector<std::string>, Tensor>;

constexpr int64_t kNewestOpset = 26;

/// The results of an operator of ONNX' default domain. Null operands are absent ones.
std::vector<Val> emitOnnx(Emitter &e, const std::string &op, std::vector<Val> operands,
                          const std::map<std::string, OnnxAttribute> &attributes, size_t results = 1,
                          int64_t opset = kNewestOpset);

} // namespace dmxc::torchfe
