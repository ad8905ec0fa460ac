//===- Trial.h - work on code that may be damaged ---------------*- C++ -*-===//
#pragma once

#include "UserCode.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace dmxc::cpu {

/// Does `work` on a body in a process of its own, whose changes are lost. LLVM's readers trust what they read: fails
/// with a refusal where that process crashes, so that this one does not.
Status tryWork(const UserCode &code, llvm::function_ref<void()> work);

} // namespace dmxc::cpu
