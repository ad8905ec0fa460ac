//===- UserKernels.h - regions that users' kernels compute ------*- C++ -*-===//
#pragma once

#include "targets/common/roots/Plans.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Support/MappedFile.h"

namespace dmxc::kernels {

/// What a kernel calls; null where no user wrote it.
dmir::ExternOp userKernelOf(dlir::KernelOp kernel);

/// The plan of a region whose root is a user's kernel, with the counts that it declares. Fails where the region holds
/// anything else.
Result<KernelPlan> planUserKernel(const RegionBody &body);

/// "the kernel 'acme.argmax' (argmax.o): " + a clause.
Error refusalOf(llvm::StringRef kernel, llvm::StringRef file, const std::string &clause);
/// Notes on a kernel that machines of an `arch` run a body of it (dmir::noteUserCode).
void noteBody(llvm::StringRef kernel, llvm::StringRef arch, mlir::DictionaryAttr body, mlir::Operation *op);
/// The file of a body, which must be the one that was declared.
Result<std::shared_ptr<const MappedFile>> openBody(llvm::StringRef kernel, mlir::DictionaryAttr body);

} // namespace dmxc::kernels
