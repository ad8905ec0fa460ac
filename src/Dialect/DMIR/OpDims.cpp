//===- OpDims.cpp - dims that ops have beside their types -----------------===//
#include "dmxc/Dialect/DMIR/OpDims.h"

using namespace mlir;
using namespace dmxc;

bool dmir::replaceDims(Operation *op, llvm::function_ref<Dim(Dim)> other) {
  auto dims = op->getAttrOfType<dmir::DimsAttr>("dims");
  if (!dims)
    return false;
  SmallVector<Dim> next, open;
  for (Dim dim : dims.getDims())
    next.push_back(other(dim));
  if (ArrayRef<Dim>(next) == dims.getDims())
    return false;
  MLIRContext *context = op->getContext();
  SmallVector<std::pair<StringRef, Attribute>> numbers;
  size_t position = 0;
  for (StringRef name : {"values", "starts", "sizes", "low", "high"})
    if (auto old = op->getAttrOfType<DenseI64ArrayAttr>(name)) {
      SmallVector<Dim> mixed = dmir::mixDims(old.asArrayRef(), dmir::DimsAttr::get(context, next), position);
      position += dmir::countDynamic(old.asArrayRef());
      numbers.push_back({name, DenseI64ArrayAttr::get(context, dmir::splitDims(mixed, open))});
    }
  if (position != next.size())
    return false;
  for (auto [name, attr] : numbers)
    op->setAttr(name, attr);
  if (dmir::DimsAttr left = dmir::dimsAttr(context, open))
    op->setAttr("dims", left);
  else
    op->removeAttr("dims");
  return true;
}
