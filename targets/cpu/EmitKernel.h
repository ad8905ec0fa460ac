//===- EmitKernel.h - a region's plan and its kernel ------------*- C++ -*-===//
#pragma once

#include "IsaLevel.h"
#include "RoundedWeights.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Target/TargetBackend.h"

#include <functional>
#include <string>
#include <vector>

namespace dmxc::cpu {

class KernelBuilder;

/// How a region is computed, for every ISA level: what chooseStrategy records and emission obeys.
struct KernelPlan {
  std::string algorithm;
  Dim work = 1, grain = 1, scratch = 0;
  std::vector<int64_t> inPlace; ///< operands whose buffer the first result may share
  mlir::NamedAttrList packed;   ///< "<operand>" -> form
  int64_t savedBytes = 0;       ///< of constants, by rounding them
  /// Emits the body; captures the plan's details. Does not call finish.
  std::function<void(KernelBuilder &)> emit;
};

/// What a strategy's choice rests on besides the body.
struct Choice {
  llvm::function_ref<bool(unsigned)> constant; ///< operand i is a constant of the model
  WeightFormat weights = WeightFormat::Kept;   ///< of the constants whose bytes a product waits for
};

/// Plans a region's body. `strategy` is null while the strategy is being chosen; later it is obeyed, and there is no
/// choice. Fails for bodies that no rule of fusesProducer and fusesConsumer forms.
Result<KernelPlan> planKernel(mlir::Block *body, mlir::DictionaryAttr strategy, const Choice &choice = {});

/// Emits a kernel into `module` for a level.
Status emitKernel(mlir::ModuleOp module, dlir::KernelOp kernel, const IsaLevel &isa);

} // namespace dmxc::cpu
