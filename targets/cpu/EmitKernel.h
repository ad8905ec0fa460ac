//===- EmitKernel.h - a region's plan and its kernel ------------*- C++ -*-===//
#pragma once

#include "IsaLevel.h"

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
  /// Emits the body; captures the plan's details. Does not call finish.
  std::function<void(KernelBuilder &)> emit;
};

/// Plans a region's body. `strategy` is null while the strategy is being chosen; later it is obeyed.
/// `constant(i)`: operand i is a constant of the model; asked only while choosing. Fails for bodies that
/// no rule of fusesProducer and fusesConsumer forms.
Result<KernelPlan> planKernel(mlir::Block *body, mlir::DictionaryAttr strategy,
                              llvm::function_ref<bool(unsigned)> constant = nullptr);

/// Emits a kernel into `module` for a level.
Status emitKernel(mlir::ModuleOp module, dlir::KernelOp kernel, const IsaLevel &isa);

} // namespace dmxc::cpu
