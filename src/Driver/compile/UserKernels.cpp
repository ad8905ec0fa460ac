//===- UserKernels.cpp - the kernels that users bring to a compile --------===//
#include "dmxc/Driver/KernelFile.h"

#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Support/MappedFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

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

static Status checkBodies(const std::string &file, const std::string &name, ArrayRef<dmir::KernelBody> bodies) {
  for (const dmir::KernelBody &body : bodies)
    if (!findTarget(body.target))
      return modelError(file + ": the kernel '" + name + "' has a body for the target '" + body.target +
                        "'; this build has " + llvm::join(targetNames(), ", "));
  return Status::ok();
}

static Status checkKernel(const dmir::KernelDecl &decl, MLIRContext *context) {
  Status good = checkBodies(decl.file, decl.name, decl.bodies);
  if (good && decl.op)
    good = checkOp(decl, context);
  if (!good || !decl.reference)
    return good;
  Status meant = checkReference(decl, context);
  return meant ? std::move(meant) : Status(Error{meant.error().kind, decl.file + ": " + meant.error().message});
}

/// Fails where no target of the compile has a body of it.
static Status checkTargets(const dmir::MicroDecl &decl, ArrayRef<const TargetBackend *> targets) {
  std::set<std::string> has, wanted;
  for (const dmir::KernelBody &body : decl.bodies)
    has.insert(body.target);
  for (const TargetBackend *target : targets)
    wanted.insert(target->name().str());
  if (llvm::any_of(wanted, [&](const std::string &target) { return has.count(target); }))
    return Status::ok();
  return Error{ErrorKind::Constraint,
               "it has no body for " + llvm::join(wanted, " or ") + "; it has some for " + llvm::join(has, ", ")};
}

/// Whether a target that it is for can call it, where it shall. One that its file prefers is not idle without a word.
static Status checkMicro(const dmir::MicroDecl &decl, ArrayRef<const TargetBackend *> targets, MLIRContext *context,
                         Diagnostics &diagnostics) {
  if (Status good = checkBodies(decl.file, decl.name, decl.bodies); !good)
    return good;
  Status good = checkTargets(decl, targets);
  for (const TargetBackend *target : targets)
    if (good && llvm::any_of(decl.bodies, [&](const auto &body) { return target->name() == body.target; }))
      good = target->checkMicroKernel(dmir::microKernelAttr(decl, context));
  if (good)
    return good;
  std::string text = "the micro-kernel '" + decl.name + "': " + good.error().message;
  if (good.error().kind != ErrorKind::Constraint || decl.use == dmir::MicroDecl::Use::On)
    return Error{good.error().kind, decl.file + ": " + text};
  if (decl.isPreferred())
    diagnostics.report({Severity::Warning, "ukernel-idle", decl.file, "", std::move(text), ErrorKind::Model, {}});
  return Status::ok();
}

bool Compilation::isKernel() const {
  if (options.inputFormat != "auto" || !options.from.empty())
    return false;
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(options.model);
  return file && beginsWithKernels({reinterpret_cast<const char *>((*file)->bytes().data()), (*file)->bytes().size()});
}

bool Compilation::importKernel() {
  SmallVector<const dmir::KernelDecl *> own;
  std::string names;
  for (const dmir::KernelDecl &decl : dmir::KernelSet::of(mlirContext.get()).all())
    if (decl.file == options.model && (options.entry.empty() || options.entry == decl.name)) {
      own.push_back(&decl);
      names += (names.empty() ? "" : ", ") + decl.name;
    }
  if (own.size() != 1) {
    diagnostics.report(usageError(own.empty() ? "the file declares no kernel '" + options.entry + "'"
                                              : "the file declares " + names + "; name one with --entry"),
                       "entry-unknown", options.model);
    return false;
  }
  if (!options.dims.empty() || !options.shapes.empty()) {
    diagnostics.report(usageError("a kernel alone has the shapes that it declares; --dim and --shape change none"),
                       "mlir-dim", options.model);
    return false;
  }
  Result<OwningOpRef<ModuleOp>> module = kernelAlone(*own.front(), mlirContext.get());
  if (!module) {
    diagnostics.report(module.error(), "kernel-file");
    return false;
  }
  theModule = std::move(*module);
  inputs = kernelInputs;
  sourceFormat = "mlir";
  return succeeded(verify(*theModule)) && checkPlaces(dmir::nodeNames(*theModule));
}

bool Compilation::loadKernels() {
  dmir::KernelSet &kernels = dmir::KernelSet::of(mlirContext.get());
  std::vector<std::string> paths = options.kernelFiles;
  if (isKernel())
    paths.push_back(options.model);
  for (const std::string &path : paths)
    if (Status s = readKernelFile(path, kernels, kernelInputs); !s) {
      diagnostics.report(s.error(), "kernel-file");
      return false;
    }
  Status good = applyUses(options.ukernels, kernels);
  for (const dmir::KernelDecl &decl : kernels.all())
    if (good)
      good = checkKernel(decl, mlirContext.get());
  for (const dmir::MicroDecl &decl : kernels.micros())
    if (good)
      good = checkMicro(decl, phaseCtx.targets, mlirContext.get(), diagnostics);
  if (!good)
    diagnostics.report(good.error(), "kernel-file");
  return bool(good);
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

void Compilation::warnOfIdleKernels(Diagnostics &idle) {
  std::set<StringRef> called;
  theModule->walk([&](dmir::ExternOp op) { called.insert(op.getKernel()); });
  for (const dmir::KernelDecl &decl : dmir::KernelSet::of(mlirContext.get()).all())
    if (!called.count(decl.name) && decl.file != options.model)
      idle.report({Severity::Warning,
                   "kernel-idle",
                   options.model,
                   "",
                   "no node of this model is computed by the kernel '" + decl.name + "' of " + decl.file,
                   ErrorKind::Model,
                   {}});
  for (const dmir::MicroDecl &decl : dmir::KernelSet::of(mlirContext.get()).micros()) {
    WalkResult found = theModule->walk([&](dmir::RegionOp region) {
      DictionaryAttr how = region.getStrategyAttr();
      auto micro = how ? how.getAs<DictionaryAttr>(strategy::kMicroKernel) : DictionaryAttr();
      return micro && micro.getAs<StringAttr>("kernel") == decl.name ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (decl.use != dmir::MicroDecl::Use::On || found.wasInterrupted())
      continue;
    Diagnostic warning;
    warning.severity = Severity::Warning;
    warning.id = "ukernel-idle";
    warning.file = options.model;
    warning.text = "--ukernels " + decl.name +
                   "=on changes nothing: no product of this model is of f32, has a known k, " +
                   std::to_string(decl.rows) + " rows and " + std::to_string(decl.columns) + " columns or more, " +
                   "and multiplies all of its operands";
    idle.report(std::move(warning));
  }
}

/// The files that an op's text names of users' kernels: their code, and what says what they compute.
static SmallVector<std::string> kernelFilesNamedBy(Operation *op) {
  auto how = op->getAttrOfType<DictionaryAttr>("strategy");
  Attribute micro = how ? how.get(strategy::kMicroKernel) : Attribute();
  auto parameters = op->getAttrOfType<DictionaryAttr>("parameters"); // of what a stage has made of dmir.extern
  Attribute staged = parameters ? parameters.get("body") : Attribute();
  ArrayAttr bodies;
  SmallVector<std::string> files;
  auto called = dyn_cast<dmir::ExternOp>(op);
  if (called && called.getReferenceAttr())
    files.push_back(dmir::kernelReferenceOf(called.getReferenceAttr()).file);
  if (called)
    bodies = called.getBodies();
  else if (dmir::isMicroKernel(micro))
    bodies = cast<DictionaryAttr>(micro).getAs<ArrayAttr>("bodies");
  else if (auto own = op->getAttrOfType<ArrayAttr>(dmir::kUserBodiesAttr); own && llvm::all_of(own, dmir::isKernelBody))
    bodies = own;
  if (staged && dmir::isKernelBody(staged))
    files.push_back(cast<DictionaryAttr>(staged).getAs<StringAttr>("file").str());
  if (bodies)
    for (auto body : bodies.getAsRange<DictionaryAttr>())
      files.push_back(body.getAs<StringAttr>("file").str());
  return files;
}

/// Code that a text names lies where its constants may, and some target runs each kernel.
bool Compilation::resolveKernels() {
  theModule->walk([](Operation *op) { op->removeAttr(dmir::kUserCodeAttr); }); // codegen says it
  if (options.from.empty())
    return haveBodies(*theModule, phaseCtx, options.model, diagnostics);
  const dmir::DataFiles &files = dmir::DataFiles::of(mlirContext.get());
  bool good = true;
  theModule->walk([&](Operation *op) {
    for (const std::string &file : kernelFilesNamedBy(op)) {
      Result<std::string> real = files.find(file);
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
