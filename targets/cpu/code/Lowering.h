//===- Lowering.h - a kernel module to an object file -----------*- C++ -*-===//
#pragma once

#include "IsaLevel.h"

#include "targets/cpu/user/UserCode.h"

#include "dmxc/Support/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace dmxc::cpu {

/// A relocatable ELF object that defines kernels (hidden symbols) and needs
/// nothing else.
struct KernelObject {
  std::string name;                            ///< the module's first kernel; names the temporaries
  std::vector<std::string> kernels;            ///< symbols of all kernels in it, in order
  std::vector<std::vector<int64_t>> contracts; ///< their words (dmx_kernel.h), in the same order; may be fewer
  std::vector<char> elf;
  std::string temps;          ///< the folder that its texts were kept in; empty: none
  std::string pipeline;       ///< of LLVM, as opt takes it
  bool patched = false;       ///< stores were rewritten behind LLVM's pipeline
  std::vector<UserCode> user; ///< bodies that it calls; those in bitcode are in it already
};

struct LoweringOptions {
  /// 0..3. LLVM's loop unroller and vectorisers stay off at every level: the
  /// emitters have already chosen what is unrolled, and a second opinion causes
  /// spills.
  unsigned optLevel = 2;
  /// When not empty, `<kernel>.mlir`, `.in.bc` (before LLVM's pipeline), `.bc` and `.ll` (behind it) and `.s` are
  /// written into this existing folder.
  std::string saveTempsDir;
  /// The body that the kernel calls; null: none.
  const UserCode *user = nullptr;
};

/// Compiles a module written with KernelBuilder for one ISA level. Consumes the
/// module's content (it is lowered in place). The same module, level and
/// options give the same bytes.
///
/// Thread-safety: calls on modules of different MLIRContexts may run at the same time. One context is not enough:
/// pass managers that run in it at once load dialects into it.
///
/// Errors are internal: invalid IR, or code that would need a library function (named); but for those of a user's body.
Result<KernelObject> compileKernel(mlir::ModuleOp module, const IsaLevel &isa, const LoweringOptions &options = {});

/// LLVM's passes before code generation, as opt takes them. A body of a user that is inlined gets all of them.
std::string pipelineOf(unsigned optLevel, bool inlines = false);
/// A target machine of the level: static relocation model PIC, no fast-math.
Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const IsaLevel &isa, unsigned optLevel);
/// Runs LLVM's pipeline and code generation on `module`; the ELF object.
Result<std::vector<char>> emitObject(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel);
/// Undefined symbols of an ELF object or shared object, sorted.
Result<std::vector<std::string>> undefinedSymbols(const std::vector<char> &elf, bool dynamic);

} // namespace dmxc::cpu
