//===- Transform.h - dmxc's ops of schedules --------------------*- C++ -*-===//
//
// transform.dmx.*: an extension of MLIR's transform dialect. What decides is the host of the interpreter: the driver.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Domain.h"
#include "dmxc/Support/Result.h"

#include "mlir/Dialect/Transform/IR/TransformAttrs.h"
#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"

#define GET_TYPEDEF_CLASSES
#include "dmxc/Dialect/Transform/TransformTypes.h.inc"

#define GET_OP_CLASSES
#include "dmxc/Dialect/Transform/TransformOps.h.inc"

namespace dmxc::transform {

/// What the ops ask while a script runs. Not thread-safe; one a compile.
class ScheduleHost {
public:
  virtual ~ScheduleHost();
  /// Adds `decided` to what is decided of a region, or of a product in one, and derives the region's strategy; `by` is
  /// what the script says. An error is a sentence without an end; nothing is changed then.
  virtual Status decide(mlir::Operation *op, mlir::DictionaryAttr decided, DecideOp by) = 0;
  /// Whether a region, or a product in one, has a decision of this name.
  virtual bool hasDecision(mlir::Operation *op, llvm::StringRef name) const = 0;
  /// The value of a parameter that has these values; one of them. `preferred` is its default, one of them too, or null
  /// where there is none.
  virtual Result<mlir::Attribute> parameter(ParamOp op, const Domain &domain, mlir::Attribute preferred) = 0;
  /// What `run_pass` can be given.
  virtual std::vector<std::string> passNames() const = 0;
};

/// Gives the ops of one application their host.
class ScheduleExtension : public mlir::transform::TransformState::Extension {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScheduleExtension)
  ScheduleExtension(mlir::transform::TransformState &state, ScheduleHost &host) : Extension(state), host(host) {}
  ScheduleHost &host;
};

/// Makes the transform dialect, with these ops, known to a registry.
void registerTransformExtension(mlir::DialectRegistry &registry);

/// Puts a guard before each op of a script that needs one.
void addGuards(mlir::Operation *script);

/// Whether an op multiplies matrices, or is a convolution.
bool isProduct(mlir::Operation *op);

/// "; did you mean 'x'?" where one of `names` is near.
std::string nearName(llvm::StringRef text, llvm::ArrayRef<std::string> names);

} // namespace dmxc::transform
