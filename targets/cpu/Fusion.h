//===- Fusion.h - what the CPU target computes and fuses --------*- C++ -*-===//
//
// The answers of CpuTarget about ops and regions; see TargetBackend.h for the questions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include <optional>
#include <span>
#include <string>

namespace dmxc::cpu {

std::optional<std::string> refuses(mlir::Operation *op);
mlir::Attribute preferredResultLayout(mlir::Operation *op);
bool acceptsLayout(mlir::Operation *op, unsigned operand, mlir::Attribute layout);
llvm::SmallVector<mlir::Operation *> computedWith(mlir::Operation *root);
bool fusesProducer(mlir::Operation *root, mlir::OpOperand &use, mlir::Operation *producer);
bool yieldsProducer(mlir::Operation *root, mlir::Operation *producer);
bool fusesConsumer(mlir::Operation *root, mlir::Value result, mlir::Operation *consumer);
Status packConstant(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

/// Bytes of the operands and results.
Dim regionBytes(dmir::RegionOp region);

} // namespace dmxc::cpu
