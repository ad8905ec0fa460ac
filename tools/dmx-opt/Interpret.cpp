//===- Interpret.cpp - schedules on texts, for dmx-opt --------------------===//
#include "Interpret.h"

#include "dmxc/Dialect/Transform/Transform.h"

#include "mlir/Dialect/Transform/Transforms/TransformInterpreterUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace dmxc {
namespace {

class Interpret : public PassWrapper<Interpret, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Interpret)

  Interpret() = default;
  Interpret(const Interpret &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "transform-interpreter"; }
  StringRef getDescription() const override {
    return "Run the transform script that stands in the text, or in --transform-preload-library, with dmxc's checks";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<mlir::transform::TransformDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation(), library = mlir::transform::detail::getPreloadedTransformModule(&getContext());
    Operation *entry = mlir::transform::detail::findTransformEntryPoint(module, library, entryPoint);
    if (!entry)
      return signalPassFailure();
    transform::addGuards(module);
    const LogicalResult done = mlir::transform::applyTransformNamedSequence(
        module, entry, library, mlir::transform::TransformOptions().enableExpensiveChecks());
    module.walk([](Operation *op) {
      if (isa<transform::GuardOp, transform::FoundOp>(op))
        op->erase();
    });
    if (failed(done))
      signalPassFailure();
  }

private:
  Option<std::string> entryPoint{
      *this, "entry-point", llvm::cl::desc("The sequence that is run"),
      llvm::cl::init(mlir::transform::TransformDialect::kTransformEntryPointSymbolName.str())};
};

} // namespace

void registerInterpreterPass() {
  registerPass([] { return std::make_unique<Interpret>(); });
}

} // namespace dmxc
