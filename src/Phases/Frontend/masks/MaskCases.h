//===- MaskCases.h - what bools of masks keep, as cases that may overlap -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

namespace dmxc {

/// The cases in which a bool is `wanted`, by the "and", "or" and "not" it is made of: fewer than pieces that are apart,
/// as of a window beside rows and columns that all see. Nothing where some part of it is not known.
std::optional<llvm::SmallVector<dmir::Conditions>> casesWhere(dmir::IndexFunctions &functions, mlir::Value value,
                                                              bool wanted);

/// The same with as few cases and conditions as are seen. Cases may overlap then.
void tidyCases(const dmir::IndexFunctions &functions, llvm::SmallVectorImpl<dmir::Conditions> &cases);

} // namespace dmxc
