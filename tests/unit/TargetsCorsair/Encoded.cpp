//===- Encoded.cpp - device programs in text, encoded ---------------------===//

#include "Encoded.h"

#include "schemas/corsair/text/Assembler.h"
#include "targets/corsair/dialect/Corsair/Corsair.h"
#include "targets/corsair/encode/Encode.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace dmxtest {

Encoded encodeText(const std::string &dlir, bool removeConfigs) {
  Encoded result;
  DialectRegistry dialects;
  dialects.insert<dmxc::dlir::DLIRDialect, dmxc::corsair::engine::CorsairDialect>();
  dmxc::corsair::registerDevice(dialects, dmx::corsair::builtinMachine());
  MLIRContext context(dialects, MLIRContext::Threading::DISABLED);
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
  return result;
}

} // namespace dmxtest
