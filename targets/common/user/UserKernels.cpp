//===- UserKernels.cpp - regions that users' kernels compute ---------------===//

#include "UserKernels.h"

#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Support/Sha256.h"

#include "llvm/Support/Path.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

dmir::ExternOp dmxc::kernels::userKernelOf(dlir::KernelOp kernel) {
  auto calls = kernel.getBlock()->getOps<dmir::ExternOp>();
  return calls.empty() ? dmir::ExternOp() : *calls.begin();
}

/// Whether a region is the op alone, on its arguments.
static bool isAlone(const RegionBody &body) {
  auto ops = body.block->without_terminator();
  return llvm::hasSingleElement(ops) &&
         llvm::all_of(body.root->getOperands(), [](Value operand) { return mlir::isa<BlockArgument>(operand); }) &&
         llvm::equal(body.results, body.root->getResults());
}

Result<KernelPlan> dmxc::kernels::planUserKernel(const RegionBody &body) {
  auto op = mlir::cast<dmir::ExternOp>(body.root);
  if (!isAlone(body))
    return modelError("node '" + dmir::nodeName(op) + "': the region of the kernel '" + op.getKernel().str() +
                      "' may hold nothing else, and gives all its results in their order");
  KernelPlan plan;
  plan.algorithm = "user-" + op.getKernel().str();
  ArrayRef<Dim> counts = op.getCounts().getDims();
  plan.work = counts[0], plan.grain = counts[1], plan.scratch = counts[2];
  return plan;
}

Error dmxc::kernels::refusalOf(StringRef kernel, StringRef file, const std::string &clause) {
  return modelError("the kernel '" + kernel.str() + "' (" + llvm::sys::path::filename(file).str() + "): " + clause);
}

void dmxc::kernels::noteBody(StringRef kernel, StringRef arch, DictionaryAttr body, Operation *op) {
  auto text = [&](StringRef key) { return body.getAs<StringAttr>(key).getValue().str(); };
  dmir::noteUserCode(
      {{kernel.str(), arch.str(), llvm::sys::path::filename(text("file")).str(), text("symbol"), text("sha256")}}, op);
}

Result<std::shared_ptr<const MappedFile>> dmxc::kernels::openBody(StringRef kernel, DictionaryAttr body) {
  std::string name = body.getAs<StringAttr>("file").str(), declared = body.getAs<StringAttr>("sha256").str();
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(name);
  if (!file)
    return ioError("the kernel '" + kernel.str() + "': " + file.error().message);
  if (std::string own = Sha256::hexOf((*file)->bytes()); own != declared)
    return refusalOf(kernel, name,
                     "the file is not the one that was declared: its sha256 is " + own + ", not " + declared +
                         "; compile again from the kernel file");
  return file;
}
