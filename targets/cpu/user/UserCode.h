//===- UserCode.h - code that users wrote -----------------------*- C++ -*-===//
#pragma once

#include "targets/cpu/code/IsaLevel.h"

#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Support/Result.h"

#include "llvm/ADT/ArrayRef.h"

#include <span>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace dmxc::cpu {

/// The body of a kernel that a level runs, of the target's: of those whose features it has the one with the most, of
/// these the first. Null where it has none.
mlir::DictionaryAttr bodyFor(mlir::ArrayAttr bodies, const IsaLevel &isa);

/// A body as kernels link it: its names are its own, whatever other bodies are called.
struct UserCode {
  std::string kernel; ///< "acme.argmax"
  std::string file;   ///< for messages
  std::string sha256; ///< of the file
  std::string symbol; ///< in the file
  std::string linked; ///< the same in what is linked
  std::string prefix; ///< of all names in what is linked
  std::string abi;    ///< its interface: "plain", of sizes and buffers; "args", of dmx_kernel_args; "micro"
  bool bitcode = false;
  std::vector<char> bytes; ///< bitcode as it is, or a relocatable object that defines `linked` alone

  /// "the kernel 'acme.argmax' (argmax.o): " + a clause.
  Error refusal(const std::string &clause) const;
};

/// Reads a body's file, which must be the one that was declared, and checks of an object that all it needs is in it,
/// that it runs nothing by itself, and that it can lie anywhere in memory.
Result<UserCode> readUserCode(llvm::StringRef kernel, mlir::DictionaryAttr body);

/// The name by which the kernel calls a body.
std::string linkedName(mlir::DictionaryAttr body);

/// Checks a relocatable object and gives its symbols the names above. Fails with a refusal.
Status adoptObject(UserCode &code, std::span<const std::byte> bytes);
/// What became of it beside the code of kernels: fails, with a refusal, where no runtime would load that.
Status checkLinked(const UserCode &code, llvm::ArrayRef<char> image);
/// Puts a body in bitcode into a kernel's module, which calls it, after the same checks.
Status linkBitcode(const UserCode &code, const IsaLevel &isa, llvm::Module &module);

} // namespace dmxc::cpu
