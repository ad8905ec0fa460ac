//===- MatmulRegion.h - regions around dmir.matmul --------------*- C++ -*-===//
#pragma once

#include "targets/cpu/Kernels.h"
#include "targets/cpu/code/CpuBuilder.h"

#include "targets/common/roots/Loops.h"
#include "targets/common/roots/Terms.h"

namespace dmxc::cpu {

/// Products and attention. A constant operand may be packed, and rounded as the choice says.
void registerMatmul(KernelTable &table);
/// Products of grouped rows.
void registerGroupedMatmul(KernelTable &table);
/// Whether a product takes the bits of the constants that `producer` makes its right operand of.
bool takesFewBits(mlir::Operation *root, mlir::Operation *producer);
/// The packed form that a product's right operand has in a region's strategy, if any.
mlir::DictionaryAttr packedRhsForm(dmir::MatMulOp op, mlir::DictionaryAttr strategy);
/// The name of a packed form, and whether it is one of this file's.
llvm::StringRef formName(mlir::DictionaryAttr form);
bool isMatmulForm(mlir::DictionaryAttr form);
/// Writes a packed operand ("panel16" and its rounded kinds, "quads16").
Status packMatmulOperand(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);
/// What the form's rounding costs: see roundingError. nullopt where values are kept.
std::optional<double> matmulOperandError(mlir::DictionaryAttr form, const Tensor &constant);

/// Maps this call's range of `nominal` work items to the builder's range of `own` ones.
void mapRange(CpuBuilder &b, Dim nominal, Dim own);

/// True when the epilogue has more than a few cheap ops a result element.
bool heavyEpilogue(const RegionBody &body);
bool heavyEpilogue(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace dmxc::cpu
