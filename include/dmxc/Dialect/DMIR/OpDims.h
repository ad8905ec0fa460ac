//===- OpDims.h - dims that ops have beside their types ---------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"

namespace dmxc::dmir {

/// Puts others in the place of an op's `dims`; those that are numbers then stand where numbers do. False where they
/// stand elsewhere (of a rule, the k of top_k) or stay as they are: then nothing is changed.
bool replaceDims(mlir::Operation *op, llvm::function_ref<Dim(Dim)> other);

} // namespace dmxc::dmir
