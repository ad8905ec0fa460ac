//===- Einsum.h - Einstein sums ---------------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <string>

namespace dmxc::frontend {

/// An Einstein sum ("ij,jk->ik") of as many operands as it has terms, as transposes and matrix products.
Val einsum(Emitter &e, std::string equation, llvm::ArrayRef<Val> operands);

} // namespace dmxc::frontend
