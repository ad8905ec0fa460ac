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

/// What a root's constant weights are packed for. A packing that the root does not have counts as Fastest.
enum class Packing { Fastest, Plain, Quads, BF16, S8, Winograd, None };
/// The packing of a form's name; None for those that are no form.
Packing packingOfForm(llvm::StringRef form);

/// What a strategy's choice rests on besides the body.
struct Choice {
  llvm::function_ref<bool(unsigned)> constant; ///< operand i is a constant of the model
  WeightFormat weights = WeightFormat::Kept;   ///< of the constants whose bytes a product waits for
  Packing packing = Packing::Fastest;
};

/// Plans a region's body. `strategy` is null while the strategy is being chosen; later it is obeyed, and there is no
/// choice. Fails for bodies that no rule of fusesProducer and fusesConsumer forms.
Result<KernelPlan> planKernel(mlir::Block *body, mlir::DictionaryAttr strategy, const Choice &choice = {});

/// Plans a body where a region's text has decided something: of the plans with the packings that there are it is the
/// one whose algorithm and packed forms are the given ones, or most like them; its grain is the given one. All else
/// follows from that, whatever is given.
Result<KernelPlan> planAsGiven(mlir::Block *body, mlir::DictionaryAttr given, const Choice &choice);

/// Emits a kernel into `module` for a level; the words of its contract (dmx_kernel.h).
Result<std::vector<int64_t>> emitKernel(mlir::ModuleOp module, dlir::KernelOp kernel, const IsaLevel &isa);

} // namespace dmxc::cpu
