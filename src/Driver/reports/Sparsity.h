//===- Sparsity.h - what masks leave out ------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/masks/Tiles.h"

#include "mlir/IR/BuiltinOps.h"
#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace dmxc::driver {

/// A softmax over masked scores, in a module after partition.
struct MaskedAttention {
  std::string node;
  std::string rule; ///< "" where the mask is a tensor
  std::string from; ///< where the rule was read; where there is none: what is no rule, and why
  std::string fill; ///< what takes the place of scores
  std::string rest; ///< what is left beside the rule: "'pad' of 2x1x1x64"; "" where that is nothing
  std::string algorithm;
  std::optional<dmir::TileSize> tile;     ///< in which keys are left out
  std::optional<dmir::TileCounts> counts; ///< of all batch items and heads; nothing where sizes are open
  double operations = 0;                  ///< of both products, on all scores; where sizes are known
  bool skips = false;                     ///< as the strategy says
  double issued() const;
};

/// Of a module that partition made; tiles are counted in `tile` rows and columns where that is given. Notes that
/// frontend left on ops for this are taken away, as equal kernels are to have equal texts.
std::vector<MaskedAttention> maskedAttentions(mlir::ModuleOp module, std::optional<dmir::TileSize> tile);

/// "masks: 12 of 12 masked attentions by rule, 50.4 % of their scores kept, masked keys skipped in 12"; "" where
/// nothing is masked.
std::string summaryOf(const std::vector<MaskedAttention> &all);
/// Whether a strategy says of the kernel that it leaves out `what`, of strategy::kSkips.
bool skips(mlir::DictionaryAttr strategy, llvm::StringRef what);

struct ProductFact;
/// --sparsity-report, as text or JSON.
std::string sparsityReport(const std::vector<MaskedAttention> &all, const std::vector<ProductFact> &facts, bool json);

/// Keeps what is said in the module, for bundles that are made of its texts.
void keepMasks(mlir::ModuleOp module, const std::vector<MaskedAttention> &all);
/// What a bundle says: `debug/masks.json`, and of its options "12 of 12 by rule"; "" where nothing is masked.
std::string keptMasks(mlir::ModuleOp module);
std::string keptSummary(mlir::ModuleOp module);

} // namespace dmxc::driver
