//===- Launch.cpp - a kernel for the dims of a dispatch -------------------===//
#include "Image.h"

namespace dmx::aie {

std::string checkDims(const KernelCode &kernel, std::span<const int64_t> dims) {
  if (dims.size() != kernel.most.size())
    return "it takes " + std::to_string(kernel.most.size()) + " sizes, its task gives " + std::to_string(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] < 0 || dims[i] > kernel.most[i])
      return "size " + std::to_string(i) + " is " + std::to_string(dims[i]) + ", it is compiled for 0 to " +
             std::to_string(kernel.most[i]);
  return {};
}

/// By op, whether it is run.
static std::vector<bool> runOps(const KernelCode &kernel, std::span<const int64_t> dims) {
  std::vector<bool> runs(kernel.control.size(), true);
  for (const Guard &guard : kernel.guards)
    if (dims[guard.dim] <= guard.above)
      std::fill_n(runs.begin() + guard.first, guard.count, false);
  return runs;
}

KernelCode launched(const KernelCode &kernel, std::span<const int64_t> dims) {
  KernelCode out{kernel.name, kernel.overlay, kernel.arguments, {}, kernel.most, {}, {}};
  for (Argument &argument : out.arguments)
    for (Axis &axis : argument.axes)
      if (axis.dim)
        axis = {static_cast<uint32_t>(dims[axis.dim - 1]), axis.first, axis.split, axis.stride, axis.phase, 0};
  std::vector<bool> runs = runOps(kernel, dims);
  auto word = kernel.dimWords.begin();
  for (size_t i = 0; i < kernel.control.size(); ++i) {
    if (runs[i])
      out.control.push_back(kernel.control[i]);
    for (; word != kernel.dimWords.end() && word->op == i; ++word)
      if (runs[i]) {
        ControlOp &op = out.control.back();
        (op.data.empty() ? op.value : op.data[word->word]) = static_cast<uint32_t>(dims[word->dim]) * word->factor;
      }
  }
  return out;
}

} // namespace dmx::aie
