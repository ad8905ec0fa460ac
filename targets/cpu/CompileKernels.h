//===- CompileKernels.h - kernels to objects for levels ---------*- C++ -*-===//
#pragma once

#include "code/Lowering.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Target/TargetBackend.h"

namespace dmxc::cpu {

/// How a kernel's strategy names its algorithm; "" where it does not.
llvm::StringRef algorithmOf(mlir::Operation *kernel);
/// Whether a kernel has a use for the levels with units for bf16.
bool multipliesPairs(mlir::Operation *kernel);

/// How the algorithms of products and convolutions of bytes in fours end.
inline constexpr llvm::StringLiteral kQuads = "-quads";

/// What the levels have of the kernels' code, in the order of `levels`: the objects that a level is linked from, each
/// of one family of kernels (code/KernelFamilies.h), in the order of their first kernels. Same kernels, same bytes, for
/// any number of threads and with any cache. Where texts are kept, those of a family stand under its first kernel.
Result<std::vector<std::vector<KernelObject>>> compileKernels(llvm::ArrayRef<mlir::Operation *> kernels,
                                                              llvm::ArrayRef<IsaLevel> levels,
                                                              const TargetOptions &options);

} // namespace dmxc::cpu
