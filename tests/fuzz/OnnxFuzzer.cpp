//===- OnnxFuzzer.cpp - any bytes as an ONNX model ------------------------===//
//
// The whole import and the frontend phase. Must end with a valid module or with an error that says something; a crash,
// a hang and a huge allocation are findings.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "Folder.h"
#include "ModelMutator.h"
#include "onnx/OnnxFrontend.h"

#include "dmxc/Phases/Phases.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include <cstring>

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
  buildFrontendPhase(pm, phase);
  bool passed = succeeded(pm.run(module));
  promise(passed || !said.empty(), "a phase that fails says why");
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const dmxfuzz::Folder folder;
  ImportOptions options;
  options.path = folder.write("model.onnx", std::string(reinterpret_cast<const char *>(data), size));
  bool leftOut = false;
  options.fold = smallFold(leftOut);
  MLIRContext context(MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics;
  std::optional<ImportedModel> imported = onnxFrontend().import(context, options, diagnostics);
  if (!imported) {
    checkRefusal(diagnostics);
    return 0;
  }
  promise(diagnostics.errorCount() == 0, "an accepted model has no errors");
  promise(succeeded(verify(*imported->module)), "the module is valid");
  if (!leftOut) // else the phase would fold what is too large here
    runFrontendPhase(context, *imported->module);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  dmxfuzz::Random random(seed);
  onnx::ModelProto model;
  if (random() % 8 == 0 || !model.ParsePartialFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, capacity);
  for (unsigned changes = 1 + random() % 3; changes; --changes)
    dmxfuzz::changeModel(model, random);
  std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > capacity)
    return LLVMFuzzerMutate(data, size, capacity);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

/// libFuzzer alone asks for it.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t capacity, unsigned seed) {
  dmxfuzz::Random random(seed);
  onnx::ModelProto model, other;
  if (!model.ParsePartialFromArray(first, static_cast<int>(firstSize)) ||
      !other.ParsePartialFromArray(second, static_cast<int>(secondSize)))
    return 0;
  dmxfuzz::joinModels(model, other, random);
  std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > capacity)
    return 0;
  std::memcpy(out, bytes.data(), bytes.size());
  return bytes.size();
}
