//===- MicroKernel.cpp - full tiles that a user's code computes -----------===//

#include "MicroKernel.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

Result<MicroKernel> MicroKernel::of(Attribute written) {
  if (!dmir::isMicroKernel(written))
    return modelError("it is not {bodies, kernel, tile} as a kernel file's micro-kernel has them");
  MicroKernel kernel(cast<DictionaryAttr>(written));
  for (auto body : kernel.bodies().getAsRange<DictionaryAttr>())
    if (body.getAs<StringAttr>("abi").getValue() != "micro")
      return modelError("its bodies have the abi \"micro\"");
  if (kernel.rows() < 1 || kernel.columns() < kPanel || kernel.columns() % kPanel != 0 ||
      kernel.columns() > kMostNumbers || kernel.rows() > kMostNumbers / kernel.columns())
    return modelError("its tile is " + std::to_string(kernel.rows()) + " x " + std::to_string(kernel.columns()) +
                      "; tiles have panels of " + std::to_string(kPanel) + " columns, and up to " +
                      std::to_string(kMostNumbers) + " numbers");
  return kernel;
}

StringRef MicroKernel::name() const { return written.getAs<StringAttr>("kernel").getValue(); }

ArrayAttr MicroKernel::bodies() const { return written.getAs<ArrayAttr>("bodies"); }

int64_t MicroKernel::size(size_t axis) const {
  return cast<IntegerAttr>(written.getAs<ArrayAttr>("tile")[axis]).getInt();
}

Status MicroKernel::checkLevels(ArrayRef<IsaLevel> levels) const {
  std::string names;
  for (const IsaLevel &isa : levels) {
    if (bodyAt(isa))
      return Status::ok();
    names += (names.empty() ? "" : ", ") + isa.name;
  }
  return Error{ErrorKind::Constraint,
               "no body of it runs at " + names + "; give one without features, or compile for a level that has them"};
}

MicroKernels MicroKernels::of(MLIRContext *context) {
  MicroKernels kernels;
  for (const dmir::MicroDecl &decl : dmir::KernelSet::of(context).micros())
    if (decl.use != dmir::MicroDecl::Use::Off) {
      kernels.all.push_back(dmir::microKernelAttr(decl, context));
      if (decl.isPreferred())
        kernels.preferred.push_back(kernels.all.back());
    }
  return kernels;
}
