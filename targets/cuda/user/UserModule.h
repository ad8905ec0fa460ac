//===- UserModule.h - functions in MLIR that users wrote --------*- C++ -*-===//
#pragma once

#include "UserPtx.h"

#include "targets/cuda/code/Ptx.h"

#include "dmxc/Dialect/DMIR/Kernels.h"

namespace dmxc::cuda {

/// Adds the dialects that such a text may have.
void registerTextDialects(mlir::DialectRegistry &registry);

/// Whether a body is MLIR; else it is PTX. Its file's name ends in .mlir.
bool isModule(const UserText &from);

/// The function `from.symbol` of a text, by upstream's passes, as PTX with places in sources: its entry has parameters
/// for buffers, sizes and maps. `op` says what they are. Fails with a refusal.
Result<std::string> lowerModule(const UserText &from, dmir::ExternOp op, int64_t maps, const PtxOptions &options);

} // namespace dmxc::cuda
