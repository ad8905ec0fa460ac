//===- Ptx.h - a kernel module to PTX ---------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace dmxc::cuda {

/// The lines that stand before kernels in a PTX text; `version`: 80 of PTX 8.0.
std::string ptxHeader(unsigned version = 80);

struct PtxOptions {
  unsigned optLevel = 2;       ///< 0..3
  int64_t block = 128;         ///< threads that a block of the kernel has
  int64_t cluster = 1;         ///< blocks of one
  bool movesRegisters = false; ///< warpgroups give registers to each other: a block has a multiprocessor's to itself
  std::string saveTempsDir;    ///< a folder for `<kernel>.mlir`, `.ll` and `.ptx`; empty: none
};

/// Loads what instructions of GPUs are in kernels. Call once for a context, before kernels are built in it.
void loadInstructions(mlir::MLIRContext &context);

/// What tools would do of a kernel's texts in a folder, a line each: llc, and ptxas where this machine has it.
std::string ptxCommands(const std::string &folder, const std::string &kernel, unsigned optLevel);

/// Optimises a module for sm_90a; its whole text. Of a kernel that is saved by that name.
Result<std::string> assemble(llvm::Module &module, const std::string &kernel, const PtxOptions &options);

/// Compiles a module with one kernel, written with CudaBuilder, for sm_90a; its text without the header. Consumes the
/// module's content. The same module and options give the same text. Calls on modules of different contexts may run at
/// the same time. Errors are internal: invalid IR, or code that would call a function.
Result<std::string> compileKernel(mlir::ModuleOp module, const PtxOptions &options);

} // namespace dmxc::cuda
