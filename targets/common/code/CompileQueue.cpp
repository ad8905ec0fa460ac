//===- CompileQueue.cpp - kernels compiled by several threads -----------------===//

#include "CompileQueue.h"

#include "llvm/Support/raw_ostream.h"

using namespace dmxc;
using namespace mlir;

std::string kernels::kernelText(Operation *kernel) {
  std::string text;
  llvm::raw_string_ostream out(text);
  kernel->print(out, OpPrintingFlags().enableDebugInfo());
  return text;
}

Result<kernels::ParsedKernel> kernels::parseKernel(const std::string &text, MLIRContext &context) {
  ParsedKernel parsed{parseSourceString<ModuleOp>(text, &context), {}};
  if (!parsed.module)
    return Error{ErrorKind::Internal, "a kernel's text does not parse again:\n" + text};
  parsed.kernel = *parsed.module->getOps<dlir::KernelOp>().begin();
  return parsed;
}
