//===- InputShapes.h - sizes of the user's inputs ---------------*- C++ -*-===//
#pragma once

#include "Shared.h"

#include "frontends/common/SizeOptions.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::torchfe {

struct ResolvedInputs {
  std::vector<ModelInput> inputs;
  std::map<std::string, Dim> symbols; ///< what the program's symbols are: numbers, or computed from sizes of inputs
};

/// Puts the sizes of --dim and --shape in the place of symbols and narrows the bounds of the others; `bounds` keeps
/// those of the symbols that are left. Nothing after an error.
std::optional<ResolvedInputs> resolveInputs(std::vector<ModelInput> inputs, SymbolBounds &bounds,
                                            const ImportOptions &options, Diagnostics &diagnostics);

} // namespace dmxc::torchfe
