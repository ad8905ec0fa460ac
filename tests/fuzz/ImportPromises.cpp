//===- ImportPromises.cpp - what every import must keep -------------------===//
#include "ImportPromises.h"
#include "Engine.h"

#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace dmxc;
using dmxfuzz::promise;

namespace {

/// Folding is bounded by a gigabyte in the compiler; here by what a round may take.
constexpr int64_t kFoldElements = 1 << 14;

bool isSmall(TypeRange types) {
  return llvm::all_of(types, [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() <= kFoldElements;
  });
}

/// Folds small constants, and notes that others were left.
FoldFunction smallFold(bool &leftOut) {
  return [&leftOut](Operation *op, llvm::ArrayRef<Tensor> operands,
                    std::string &why) -> std::optional<std::vector<Tensor>> {
    why = "it is not evaluated here";
    if (!reference::canEvaluate(op->getName()))
      return std::nullopt;
    if (!isSmall(op->getOperandTypes()) || !isSmall(op->getResultTypes())) {
      leftOut = true;
      return std::nullopt;
    }
    Result<std::vector<Tensor>> results = reference::evaluateOp(op, operands);
    if (results)
      return std::move(*results);
    why = results.error().message;
    promise(!why.empty(), "what cannot be folded has a reason");
    return std::nullopt;
  };
}

void checkRefusal(const Diagnostics &diagnostics) {
  promise(diagnostics.errorCount() > 0, "a refusal comes with an error");
  for (const dmxc::Diagnostic &message : diagnostics.all()) {
    promise(!message.text.empty() && !message.id.empty(), "an error says what is wrong and has an id");
    promise(message.severity != Severity::Error || message.kind != ErrorKind::Internal,
            "no model makes an internal error");
  }
}

void runFrontendPhase(MLIRContext &context, ModuleOp module) {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    said += diagnostic.str();
    return success();
  });
  PhaseContext phase;
  PassManager pm(&context);
  phases().front().build(pm, phase);
  bool passed = succeeded(pm.run(module));
  promise(passed || !said.empty(), "a phase that fails says why");
}

} // namespace

void dmxfuzz::importAndCheck(const Frontend &frontend, const std::string &path, const Frontend *other) {
  ImportOptions options;
  if (other)
    options.operators[other->name] = other->operators;
  options.path = path;
  bool leftOut = false;
  options.fold = smallFold(leftOut);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics;
  std::optional<ImportedModel> imported = frontend.import(context, options, diagnostics);
  if (!imported)
    return checkRefusal(diagnostics);
  promise(diagnostics.errorCount() == 0, "an accepted model has no errors");
  promise(succeeded(verify(*imported->module)), "the module is valid");
  if (!leftOut) // else the phase would fold what is too large here
    runFrontendPhase(context, *imported->module);
}
