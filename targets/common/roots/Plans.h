//===- Plans.h - how a region is computed -----------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Target/Decision.h"
#include "targets/common/code/Launch.h"
#include "targets/common/code/Panels.h"
#include "targets/common/code/Processor.h"

#include "mlir/IR/BuiltinTypes.h"

#include <functional>
#include <optional>
#include <vector>

namespace dmxc::kernels {

class ElementExpr;

/// The op that gives a region its loop structure, and the region's results.
struct RegionBody {
  mlir::Block *block = nullptr;
  mlir::Operation *root = nullptr; ///< null: elementwise and data movement only
  llvm::SmallVector<mlir::Value> results;

  mlir::RankedTensorType resultType(unsigned i = 0) const;
};

/// How a nest over `dims` (outer to inner, the last one of lanes) is cut into work items: the first
/// `split` loops, and the last one in runs of `chunk` where split == dims.size() - 1.
struct WorkPlan {
  llvm::SmallVector<Dim> dims;
  unsigned split = 0;
  int64_t chunk = 0; ///< 0: the last loop is whole in every item
  Dim items = 1;
  int64_t grain = 1;
};

/// How a region is computed, for every level: what chooseStrategy records and emission obeys.
struct KernelPlan {
  std::string algorithm;
  Dim work = 1, grain = 1, scratch = 0;
  std::vector<int64_t> inPlace; ///< operands whose buffer the first result may share
  std::vector<int64_t> tile;    ///< see strategy::kTile; empty: none
  mlir::NamedAttrList packed;   ///< "<operand>" -> form
  Dim savedBytes = 0;           ///< of constants, by rounding them; of operands, where a part is read or written
  Dim savedOperations = 0;      ///< of the model's, by leaving out what is known to be zero
  llvm::SmallVector<llvm::StringRef> skips; ///< see strategy::kSkips
  mlir::NamedAttrList own;                  ///< further keys of the strategy, which the target's emitters read
  std::vector<Decision> free;               ///< of them, for all processors
  /// How loops are cut for the registers of a processor, as the strategy keeps it, and what of that is free. Null:
  /// nothing is kept.
  std::function<mlir::DictionaryAttr(const Processor &)> tiles;
  std::function<std::vector<Decision>(const Processor &)> freeTiles;
  std::optional<Launch> launch; ///< of a kernel whose work items are whole blocks'; nothing: threads'
  /// Emits the body; captures the plan's details. Does not call finish.
  std::function<void(KernelBuilder &)> emit;

  KernelPlan() = default;
  KernelPlan(std::string algorithm, const WorkPlan &cut)
      : algorithm(std::move(algorithm)), work(cut.items), grain(cut.grain) {}
};

/// Whether what is known to make no difference is left out: as --sparsity says, or decided.
enum class LeftOut { AsAsked, Nothing, Known };
/// What the names of algorithms that leave such columns out of each row end with.
inline constexpr llvm::StringLiteral kRanges = "-ranges";

/// What a plan rests on besides the body. A target whose own rows ask for more derives from it.
struct PlanRequest {
  const Processor &nominal;      ///< that plans are made for
  mlir::DictionaryAttr strategy; ///< null while it is being chosen; later it is obeyed
  /// Operands that lie in panels (KernelBuilder::setPanels). Plans do not rest on it.
  llvm::SmallVector<std::pair<unsigned, Panels>> panels = {};
  LeftOut leftOut = LeftOut::AsAsked; ///< while a strategy is being chosen

  /// Whether a kernel of the body looks at ranges alone where it can; `exact`: that gives the same for infinities and
  /// NaN, too.
  bool usesRanges(mlir::Block *block, bool exact) const;
};

/// What is free of a plan: its own keys, its tiles on these processors, and the grain.
std::vector<Decision> freeOf(const KernelPlan &plan, llvm::ArrayRef<const Processor *> processors,
                             mlir::MLIRContext *context);
/// Gives a plan the grain that is decided, if one is; `decided` may be null.
void decideGrain(KernelPlan &plan, mlir::DictionaryAttr decided);

/// The size that a plan is made for: a symbol's nominal value is the one in the region's strategy ("nominal"), or
/// before there is one a middling size within its bounds. Choices may rest on it, results may not.
int64_t nominal(mlir::Block *block, Dim size);
/// A size where its symbols have the least values that their bounds allow, but 1 where that is 0.
int64_t smallest(mlir::Block *block, Dim size);
/// The nominal values of the symbols in a region, as the strategy keeps them.
mlir::DictionaryAttr nominalSizes(mlir::Block *block);

/// Ops emitted by `emit` into a throw-away kernel, weighted by what they cost, for `lanes` elements.
double dryRunCost(mlir::Block *block, const Processor &processor, int64_t lanes,
                  llvm::function_ref<void(ElementExpr &, llvm::function_ref<mlir::Value()> opaqueIndex)> emit);

} // namespace dmxc::kernels
