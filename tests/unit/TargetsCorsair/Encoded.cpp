//===- Encoded.cpp - device programs in text, encoded ---------------------===//

#include "Encoded.h"

#include "schemas/corsair/text/Assembler.h"
#include "targets/corsair/dialect/Corsair/Corsair.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/encode/Encode.h"
#include "targets/corsair/interpret/Interpreter.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace dmxtest {

namespace {

/// A text that has a program, or what is wrong with it.
struct Parsed {
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::string error;
  SmallVector<dmxc::dlir::DeviceProgramOp> programs;
};

} // namespace

static Parsed parse(const std::string &dlir) {
  Parsed parsed;
  DialectRegistry dialects;
  dialects.insert<dmxc::dlir::DLIRDialect, dmxc::corsair::engine::CorsairDialect, dmxc::lldmir::LLDMIRDialect>();
  dmxc::corsair::registerDevice(dialects, dmx::corsair::builtinMachine());
  dmxc::lldmir::registerMachine(dialects, dmx::corsair::builtinMachine());
  parsed.context = std::make_unique<MLIRContext>(dialects, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler diagnostics(parsed.context.get(), [&](Diagnostic &d) {
    parsed.error += d.str() + "\n";
    return success();
  });
  parsed.module = parseSourceString<ModuleOp>(dlir, parsed.context.get());
  if (parsed.module)
    llvm::append_range(parsed.programs, parsed.module->getOps<dmxc::dlir::DeviceProgramOp>());
  if (parsed.module && parsed.programs.empty())
    parsed.error += "no program\n";
  return parsed;
}

Encoded encodeText(const std::string &dlir, bool removeConfigs) {
  Parsed parsed = parse(dlir);
  Encoded result{"", parsed.error};
  if (parsed.programs.empty())
    return result;
  ScopedDiagnosticHandler diagnostics(parsed.context.get(), [&](Diagnostic &d) {
    result.error += d.str() + "\n";
    return success();
  });
  dmxc::corsair::EncodeOptions options;
  options.removeConfigs = removeConfigs;
  FailureOr<dmx::corsair::Image> image =
      dmxc::corsair::encode(parsed.programs, dmx::corsair::builtinMachine(), options);
  if (succeeded(image))
    result.assembly = dmx::corsair::disassemble(*image);
  return result;
}

Evaluated evaluateText(const std::string &dlir, const std::vector<dmxc::Tensor> &operands) {
  Parsed parsed = parse(dlir);
  if (parsed.programs.empty())
    return {{}, parsed.error};
  dmxc::Result<std::vector<dmxc::Tensor>> results =
      dmxc::corsair::stages::evaluateKernel(parsed.programs.front(), operands);
  return results ? Evaluated{std::move(*results), ""} : Evaluated{{}, results.error().message};
}

} // namespace dmxtest
