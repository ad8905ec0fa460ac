//===- main.cpp - dmx-opt, mlir-opt with our dialects and passes ----------===//
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/Registry.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  // Passes see every target of this build with its default options.
  std::vector<std::unique_ptr<dmxc::TargetBackend>> targets;
  dmxc::PhaseContext context;
  context.checkStrategies = true;
  for (const dmxc::TargetInfo &info : dmxc::registeredTargets()) {
    auto target = info.create(dmxc::TargetOptions());
    if (!target) {
      llvm::errs() << "dmx-opt: error: target '" << info.name << "': " << target.error().message << "\n";
      return dmxc::exitCodeOf(target.error().kind);
    }
    context.targets.push_back(target->get());
    targets.push_back(std::move(*target));
  }
  dmxc::registerAllPasses(context);
  mlir::registerTransformsPasses();
  mlir::DialectRegistry registry;
  dmxc::driver::registerDialects(registry);
  registry.insert<mlir::transform::TransformDialect>();
  for (const dmxc::TargetInfo &info : dmxc::registeredTargets())
    if (info.registerPasses)
      info.registerPasses(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "dmx-opt: passes over DMIR and DLIR\n", registry));
}
