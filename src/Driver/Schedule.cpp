//===- Schedule.cpp - the --schedule transform script ---------------------===//
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Support/MappedFile.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/Dialect/Transform/IR/Utils.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"
#include "mlir/Dialect/Transform/Transforms/TransformInterpreterUtils.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace dmxc::driver {

bool Compilation::applySchedule() {
  return guarded("schedule-script", ErrorKind::Model, [&] {
    if (auto file = MappedFile::open(options.schedule); !file) { // a pipe would be waited for
      diagnostics.report(file.error(), "io", options.schedule);
      return false;
    }
    mlirContext->getOrLoadDialect<transform::TransformDialect>();
    OwningOpRef<ModuleOp> script = parseSourceFile<ModuleOp>(options.schedule, ParserConfig(mlirContext.get()));
    if (!script)
      return false;
    auto entry = script->lookupSymbol<transform::NamedSequenceOp>("__transform_main");
    if (!entry) {
      diagnostics.report(modelError("the script has no transform.named_sequence @__transform_main"), "schedule-script",
                         options.schedule);
      return false;
    }
    return succeeded(transform::applyTransformNamedSequence(*theModule, entry, *script, transform::TransformOptions()));
  });
}

} // namespace dmxc::driver
