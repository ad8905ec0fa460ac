//===- EmulatedUnits.h - AMX and dot products in software -------*- C++ -*-===//
//
// The instructions for products of bf16 and of bytes as Intel's manual defines them, so that code that uses them can be
// tested where no processor has them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace dmxc::cpu::test {

/// LLVM IR with calls of functions of this process in the place of these instructions' intrinsics. Null, and `problem`
/// says why, where the text is none.
std::unique_ptr<llvm::Module> emulateUnits(std::string text, llvm::LLVMContext &context, std::string &problem);

/// What a processor would have refused since the last call, or what was left behind: tiles that are not configured or
/// do not fit each other, a configuration that was not released. "": nothing.
std::string unitProblem();

} // namespace dmxc::cpu::test
