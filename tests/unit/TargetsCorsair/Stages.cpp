//===- Stages.cpp - from text to a run, stage by stage --------------------===//

#include "Stages.h"

#include "schemas/corsair/text/Assembler.h"
#include "targets/corsair/encode/Encode.h"
#include "targets/corsair/passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace mlir;

namespace dmxtest {
namespace {

/// The dialects of all stages; their passes are registered with the first call.
DialectRegistry allDialects() {
  DialectRegistry list;
  list.insert<func::FuncDialect>();
  static DialectRegistry stages = [] {
    DialectRegistry made;
    dmxc::registerCorsairPasses(made);
    dmxc::corsair::registerDevice(made, dmx::corsair::builtinMachine());
    return made;
  }();
  stages.appendTo(list);
  return list;
}

} // namespace

std::string runPasses(const std::string &text, const std::string &pipeline, std::string &error) {
  MLIRContext context(allDialects(), MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler diagnostics(&context, [&](Diagnostic &d) {
    error += d.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return {};
  PassManager passes(&context, ModuleOp::getOperationName());
  llvm::raw_string_ostream errors(error);
  if (failed(parsePassPipeline(pipeline, passes, errors)) || failed(passes.run(*module)))
    return {};
  std::string result;
  llvm::raw_string_ostream out(result);
  module->print(out);
  return result;
}

Encoded encodeText(const std::string &dlir, bool removeConfigs) {
  Encoded result;
  MLIRContext context(allDialects(), MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler diagnostics(&context, [&](Diagnostic &d) {
    result.error += d.str() + "\n";
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(dlir, &context);
  if (!module)
    return result;
  SmallVector<dmxc::dlir::DeviceProgramOp> programs(module->getOps<dmxc::dlir::DeviceProgramOp>());
  if (programs.empty()) {
    result.error += "no program\n";
    return result;
  }
  dmxc::corsair::EncodeOptions options;
  options.removeConfigs = removeConfigs;
  FailureOr<dmx::corsair::Image> image = dmxc::corsair::encode(programs, dmx::corsair::builtinMachine(), options);
  if (failed(image))
    return result;
  result.assembly = dmx::corsair::disassemble(*image);
  result.image = dmx::corsair::write(*image);
  module->walk([&](dmxc::dlir::ArgumentOp argument) {
    auto data = dyn_cast_or_null<DenseResourceElementsAttr>(argument.getDataAttr());
    AsmResourceBlob *blob = data ? data.getRawHandle().getBlob() : nullptr;
    if (blob)
      result.constants[argument.getName().str()].assign(blob->getData().begin(), blob->getData().end());
  });
  return result;
}

std::string productText(int64_t m, int64_t k, int64_t n, const std::vector<float> &weights) {
  std::string hex;
  for (float value : weights) {
    uint8_t bytes[4];
    std::memcpy(bytes, &value, 4);
    for (uint8_t byte : bytes) {
      hex += "0123456789ABCDEF"[byte >> 4];
      hex += "0123456789ABCDEF"[byte & 15];
    }
  }
  auto tensor = [](int64_t rows, int64_t columns) {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
  };
  std::string a = tensor(m, k), w = tensor(k, n), c = tensor(m, n);
  return "func.func @main(%x: " + a + ") -> " + c + " {\n  %w = dmir.constant dense<\"0x" + hex + "\"> : " + w +
         "\n  %y = dmir.matmul %x, %w : (" + a + ", " + w + ") -> " + c + "\n  return %y : " + c + "\n}\n";
}

std::string lowerToDlir(const std::string &text, const StageOptions &options) {
  std::string error;
  std::string lowered =
      runPasses(text,
                "corsair-assign-formats,func.func(corsair-tile-matmul,corsair-bufferize-tiles,corsair-lower-"
                "tiles{cores=" +
                    std::to_string(options.cores) + "}),corsair-outline-spmd{split=" + options.split +
                    " quads=" + std::to_string(options.quads) +
                    "},corsair-build-dlir{resident=" + (options.resident ? "true" : "false") + "}",
                error);
  EXPECT_FALSE(lowered.empty()) << error;
  return lowered;
}

} // namespace dmxtest
