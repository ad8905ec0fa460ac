//===- UserSignature.h - whether a function fits its kernel -----*- C++ -*-===//
#pragma once

#include "UserPtx.h"

#include "dmxc/Dialect/DMIR/Kernels.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace dmxc::cuda {

/// Whether a function takes what the kernel's operands, results, scalars and maps are, and gives nothing back.
Status checkSignature(const UserText &from, mlir::FunctionOpInterface function, dmir::ExternOp op, int64_t maps);

/// Fails for ops that upstream's passes lower to something else than they say.
Status checkTraps(const UserText &from, mlir::FunctionOpInterface function, int64_t block);

} // namespace dmxc::cuda
