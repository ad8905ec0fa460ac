//===- UnitRegions.h - what tests of units share ----------------*- C++ -*-===//
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dmxc::cpu::test {

/// Expects every function of `text` to agree with the interpreter at these levels, emulated and, where this machine has
/// them, as they are; and that a processor would have refused nothing.
void checkAt(llvm::ArrayRef<llvm::StringRef> levels, const std::string &text);
/// The assembly of a kernel of the module that was compiled last.
std::string assemblyAt(llvm::StringRef level, const std::string &kernel);
/// What in a loop over k does not stay in its register, or that there is no such loop; "": all is well.
std::string spillIn(const std::string &assembly);

} // namespace dmxc::cpu::test
