//===- InputShapes.h - sizes of the user's inputs ---------------*- C++ -*-===//
#pragma once

#include "Shared.h"

#include "dmxc/Dialect/DMIR/Import.h"
#include "dmxc/Support/Diagnostic.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::torchfe {

/// An input of the program; its dims are expressions over the program's symbols.
struct ProgramInput {
  std::string name;
  DType type = DType::F32;
  Dims dims;
};

/// Symbols and their bounds.
using SymbolBounds = std::map<std::string, DimBounds>;

struct ResolvedInputs {
  std::vector<ProgramInput> inputs;
  std::map<std::string, Dim> symbols; ///< what the program's symbols are: numbers, or computed from sizes of inputs
};

/// What the size of an input is called where the program has no name for it.
std::string nameOfDim(const ProgramInput &input, size_t axis);

/// Puts the sizes of --dim and --shape in the place of symbols and narrows the bounds of the others; `bounds` keeps
/// those of the symbols that are left. Nothing after an error.
std::optional<ResolvedInputs> resolveInputs(std::vector<ProgramInput> inputs, SymbolBounds &bounds,
                                            const ImportOptions &options, Diagnostics &diagnostics);

} // namespace dmxc::torchfe
