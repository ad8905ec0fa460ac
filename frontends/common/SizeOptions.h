//===- SizeOptions.h - sizes that --dim and --shape give --------*- C++ -*-===//
#pragma once

#include "Val.h"

#include "dmxc/Dialect/DMIR/Import.h"
#include "dmxc/Support/Diagnostic.h"

#include <map>
#include <string>
#include <vector>

namespace dmxc::frontend {

/// An input of a model; its dims are numbers, or expressions over symbols.
struct ModelInput {
  std::string name;
  DType type = DType::F32;
  Dims dims;
};

/// Dims that are known at run time only, and their bounds.
using SymbolBounds = std::map<std::string, DimBounds>;

/// What a dim without a name of its own is called.
std::string nameOfDim(const std::string &input, size_t axis);

/// The sizes that the command line gives to symbols, and what is wrong with them.
class SizeOptions {
public:
  /// `id`: of all errors.
  SizeOptions(const ImportOptions &options, Diagnostics &diagnostics, std::string id)
      : options(options), diagnostics(diagnostics), id(std::move(id)) {}

  void error(const std::string &text, ErrorKind kind = ErrorKind::Usage, const std::string &help = "");
  /// The option in `text` names something that is not among `names`.
  void unknown(const std::string &text, const std::string &name, const std::vector<std::string> &names);
  /// Gives the symbol a size, as the option `by` says; another one before is an error.
  void fix(const std::string &symbol, int64_t size, const std::string &by);

  /// Nothing for a symbol that has no size.
  std::optional<int64_t> sizeOf(std::string_view symbol) const;
  const std::map<std::string, int64_t, std::less<>> &sizes() const { return known; }
  bool failed() const { return anyError; }

private:
  const ImportOptions &options;
  Diagnostics &diagnostics;
  std::string id;
  std::map<std::string, int64_t, std::less<>> known;
  bool anyError = false;
};

} // namespace dmxc::frontend
