//===- UserKernels.cpp - the kernels that users bring to a compile --------===//
#include "../kernels/KernelFile.h"

#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/Registry.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dmxc::driver {

/// Whether ops of the name have such attributes.
static Status checkOp(const dmir::KernelDecl &decl, MLIRContext *context) {
  const std::string &op = decl.op->name;
  std::optional<RegisteredOperationName> known = RegisteredOperationName::lookup(op, context);
  if (!known || !StringRef(op).starts_with("dmir."))
    return modelError(decl.file + ": the kernel '" + decl.name + "' is for '" + op +
                      "', which is no op of DMIR; dmxc --print-ops has all of them");
  for (const auto &[name, ignored] : decl.op->attributes)
    if (llvm::none_of(known->getAttributeNames(), [&, &key = name](StringAttr attr) { return attr.getValue() == key; }))
      return modelError(decl.file + ": the kernel '" + decl.name + "' is for '" + op + "' with '" + name +
                        "', which is no attribute of the op");
  return Status::ok();
}

static Status checkKernel(const dmir::KernelDecl &decl, MLIRContext *context) {
  for (const dmir::KernelBody &body : decl.bodies)
    if (!findTarget(body.target))
      return modelError(decl.file + ": the kernel '" + decl.name + "' has a body for the target '" + body.target +
                        "'; this build has " + llvm::join(targetNames(), ", "));
  return decl.op ? checkOp(decl, context) : Status::ok();
}

bool Compilation::loadKernels() {
  dmir::KernelSet &kernels = dmir::KernelSet::of(mlirContext.get());
  for (const std::string &path : options.kernelFiles)
    if (Status s = readKernelFile(path, kernels, kernelInputs); !s) {
      diagnostics.report(s.error(), "kernel-file");
      return false;
    }
  for (const dmir::KernelDecl &decl : kernels.all())
    if (Status s = checkKernel(decl, mlirContext.get()); !s) {
      diagnostics.report(s.error(), "kernel-file");
      return false;
    }
  return true;
}

/// What no target of the compile has a body for, with each one's reason; false where there is such a kernel.
static bool haveBodies(ModuleOp module, const PhaseContext &context, const std::string &file,
                       Diagnostics &diagnostics) {
  bool good = true;
  module.walk([&](dmir::ExternOp op) {
    if (!op->getParentOfType<func::FuncOp>() || op->getParentOfType<dmir::RegionOp>() || context.responsible(op))
      return;
    Diagnostic refused;
    refused.id = "kernel-target";
    refused.kind = ErrorKind::Constraint;
    refused.file = file;
    refused.node = dmir::nodeName(op);
    refused.text = "no target of this compile has code of the kernel '" + op.getKernel().str() + "'";
    for (const TargetBackend *target : context.targets)
      if (std::optional<std::string> reason = context.refusal(*target, op))
        refused.note(target->name().str() + ": " + *reason);
    diagnostics.report(std::move(refused));
    good = false;
  });
  return good;
}

/// Code that a text names lies where its constants may, and some target runs each kernel.
bool Compilation::resolveKernels() {
  theModule->walk([](Operation *op) { op->removeAttr(dmir::kUserCodeAttr); }); // codegen says it
  if (options.from.empty())
    return haveBodies(*theModule, phaseCtx, options.model, diagnostics);
  const dmir::DataFiles &files = dmir::DataFiles::of(mlirContext.get());
  bool good = true;
  theModule->walk([&](dmir::ExternOp op) {
    for (auto body : op.getBodies().getAsRange<DictionaryAttr>()) {
      Result<std::string> real = files.find(body.getAs<StringAttr>("file").str());
      if (real) {
        if (!llvm::is_contained(inputs, *real))
          inputs.push_back(*real);
        continue;
      }
      Diagnostic refused;
      refused.id = real.error().kind == ErrorKind::IO ? "io" : "text-file";
      refused.file = options.model;
      refused.node = dmir::nodeName(op);
      refused.text = real.error().message;
      refused.kind = real.error().kind;
      diagnostics.report(std::move(refused));
      good = false;
    }
  });
  return good && haveBodies(*theModule, phaseCtx, options.model, diagnostics);
}

} // namespace dmxc::driver
