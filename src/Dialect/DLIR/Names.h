//===- Names.h - names of values in DLIR's texts ----------------*- C++ -*-===//
#pragma once

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace dmxc::dlir {

/// Gives DLIR's ops, which are registered, names for their results.
void nameValues(mlir::MLIRContext &context);

} // namespace dmxc::dlir
