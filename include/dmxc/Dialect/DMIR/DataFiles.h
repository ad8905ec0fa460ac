//===- DataFiles.h - files that constants may lie in ------------*- C++ -*-===//
//
// `#dmir.file` can name any file, in a text that anybody may have written. A context's constants are read from files
// that a front end admitted, or below folders that it named, and from no other: without either from none.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectInterface.h"

#include <map>
#include <mutex>
#include <set>

namespace dmxc::dmir {

/// What a context knows of them. Thread-safe.
class DataFiles : public mlir::DialectInterface::Base<DataFiles> {
public:
  explicit DataFiles(mlir::Dialect *dialect) : Base(dialect) {}
  static DataFiles &of(mlir::MLIRContext *context);

  /// Admits a file that a front end found by rules of its own. Its real path, which texts name.
  std::string admit(const std::string &path);
  /// Admits what lies below these folders.
  void admitBelow(const std::vector<std::string> &folders);
  /// Admits what lies below the folder of a text and below `named`.
  void admitBeside(const std::string &text, const std::vector<std::string> &named);

  /// The real path of a file that constants may lie in.
  Result<std::string> find(const std::string &path) const;

private:
  mutable std::mutex mutex;
  std::vector<std::string> folders;
  std::map<std::string, std::string> admitted; ///< real paths by the names that front ends gave
  mutable std::map<std::string, std::string> found;
};

/// Gives constants of a text the real paths of their files, so that what is written of it means the same in another
/// folder. Returns these; what may not be read is reported, each file once, with the first op that names it.
std::set<std::string> resolveDataFiles(mlir::ModuleOp module,
                                       llvm::function_ref<void(mlir::Operation *, const Error &)> report);

} // namespace dmxc::dmir
