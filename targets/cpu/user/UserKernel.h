//===- UserKernel.h - a region that a user's kernel computes ----*- C++ -*-===//
#pragma once

#include "UserCode.h"
#include "targets/common/user/UserKernels.h"
#include "targets/cpu/Kernels.h"
#include "targets/cpu/code/CpuBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace dmxc::cpu {

/// The row of dmir.extern.
void registerUserKernels(KernelTable &table);

/// Emits a kernel that calls the body for the level, and returns its code; the words of its contract.
Result<std::vector<int64_t>> emitUserKernel(mlir::ModuleOp module, dlir::KernelOp kernel, const IsaLevel &isa);

/// Calls a body, which the kernel's module declares then.
mlir::LLVM::CallOp callBody(CpuBuilder &b, mlir::DictionaryAttr body, mlir::Type result,
                            llvm::ArrayRef<mlir::Value> operands);

/// Notes on a kernel which code of users it has at a level (dmir::kUserCodeAttr).
void noteUserCode(llvm::ArrayRef<UserCode> used, const IsaLevel &isa, mlir::Operation *kernel);

/// Why some level runs no body of the kernel; a clause.
std::optional<std::string> whyNoBody(dmir::ExternOp op, llvm::ArrayRef<IsaLevel> levels);

} // namespace dmxc::cpu
