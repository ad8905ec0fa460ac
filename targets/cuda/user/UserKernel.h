//===- UserKernel.h - regions that a user's kernel computes -----*- C++ -*-===//
#pragma once

#include "UserPtx.h"

#include "targets/common/roots/KernelTable.h"
#include "targets/common/user/UserKernels.h"

namespace dmxc::cuda {

using namespace kernels;

/// The row of dmir.extern. Requests are CudaRequests.
void registerUserKernels(KernelTable &table);

/// Why this target runs no body of the kernel; a clause.
std::optional<std::string> whyNoBody(dmir::ExternOp op);

/// The text of a kernel's body, which must be the one that was declared.
Result<UserText> readUserText(dmir::ExternOp op);

/// Notes on a kernel whose code it has.
void noteUserCode(dmir::ExternOp op, mlir::Operation *kernel);

} // namespace dmxc::cuda
