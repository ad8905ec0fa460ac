//===- Passes.h - from kernels to an array's words --------------*- C++ -*-===//
//
// The stage schedule.grid (aie-grid), then aie-place, aie-route, aie-control, aie-encode, in that order; the text
// between any two can be read back.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/aie/dialect/Aie.h"

#include "dmxc/Target/TargetBackend.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/Pass.h"

namespace dmxc {

#define GEN_PASS_DECL
#include "Passes.h.inc"

/// Registers the passes under their names, and the dialects of the stages.
void registerAiePasses(mlir::DialectRegistry &registry);

/// The stages that kernels of the target go through in phase schedule.
llvm::ArrayRef<TargetStage> stagesAieTarget();

namespace aie {
/// The target, as its stage knows it.
class GridTarget : public TargetBackend {
public:
  /// Puts the program of a kernel of the array, which may be one of a text that was changed, in its place.
  virtual Status writeGrid(dlir::KernelOp kernel) const = 0;
};

/// Dialects that texts of the array have.
void insertDialects(mlir::DialectRegistry &registry);
/// The files that tools of the platform take: of an overlay a CDO, of a kernel its control stream, a hex word a line.
std::string cdoOf(const hw::Overlay &overlay);
std::string instsOf(const hw::Image &image, const hw::KernelCode &kernel);
/// False where it could not be written.
bool writeFile(llvm::StringRef path, llvm::StringRef content);
} // namespace aie
} // namespace dmxc
