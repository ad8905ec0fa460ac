//===- Evaluate.cpp - what a text means, for dmx-opt ----------------------===//
#include "Evaluate.h"

#include "dmxc/Driver/StageEvaluation.h"
#include "dmxc/Tools/Compare.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace dmxc {
namespace {

class Evaluate : public PassWrapper<Evaluate, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Evaluate)

  explicit Evaluate(const PhaseContext &context) : context(context) {}
  Evaluate(const Evaluate &other) : PassWrapper(other), context(other.context) {}
  StringRef getArgument() const override { return "dmxc-evaluate"; }
  StringRef getDescription() const override {
    return "Print what the entry point of a text at any stop gives for random inputs, in the numbers of its targets";
  }

  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<func::FuncDialect>(); }

  void runOnOperation() override {
    OwningOpRef<func::FuncOp> declared;
    func::FuncOp entry = driver::entryAtAnyStop(getOperation(), "", declared);
    if (!entry)
      return fail(modelError("there is no entry point to evaluate: a public function, or a program"));
    std::vector<Tensor> inputs;
    for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes())) {
      Result<Tensor> input = driver::randomInput(entry, static_cast<unsigned>(i), seed);
      if (!input)
        return fail(input.error());
      inputs.push_back(std::move(*input));
    }
    Result<std::vector<Tensor>> outputs =
        reference::evaluateEntry(getOperation(), entry.getSymName(), inputs, driver::stageEvaluators(context));
    if (!outputs)
      return fail(outputs.error());
    for (auto [i, output] : llvm::enumerate(*outputs)) {
      auto name = entry.getResultAttrOfType<StringAttr>(i, dmir::kNameAttr);
      llvm::errs() << (name ? name.getValue().str() : "output" + std::to_string(i)) << ": "
                   << tools::tensorSummary(output) << "\n";
    }
  }

private:
  void fail(const Error &error) {
    emitError(getOperation().getLoc(), error.message); // without the module behind it
    signalPassFailure();
  }

  const PhaseContext &context;
  Option<uint64_t> seed{*this, "seed", llvm::cl::desc("Of the inputs, as of dmx-run --random-inputs"),
                        llvm::cl::init(1)};
};

} // namespace

void registerEvaluatePass(const PhaseContext &context) {
  registerPass([&context] { return std::make_unique<Evaluate>(context); });
}

} // namespace dmxc
