//===- KernelNodes.cpp - nodes that users wrote kernels for ---------------===//
#include "KernelNodes.h"

#include <algorithm>

namespace dmxc::torchfe {

const dmir::KernelDecl *kernelOf(Emitter &e, std::string_view target) {
  for (std::string_view front : {"torch.ops.", "torch."})
    if (target.starts_with(front)) {
      target.remove_prefix(front.size());
      break;
    }
  return dmir::KernelSet::of(e.context()).ofTorch(target);
}

/// The attribute that an integer is for: of its name, or the first without a number.
static std::string attributeFor(const dmir::KernelDecl &kernel, const std::string &name,
                                const std::map<std::string, int64_t> &numbers) {
  for (const auto &[known, ignored] : kernel.attributes)
    if (known == name || (name.empty() && !numbers.count(known)))
      return known;
  fail("op-argument", "the kernel '" + kernel.name + "' has no attribute " +
                          (name.empty() ? "left for an integer" : "'" + name + "'"));
}

std::vector<Arg> callKernel(Emitter &e, const std::string &node, const dmir::KernelDecl &kernel,
                            const std::vector<std::pair<std::string, Arg>> &arguments) {
  std::vector<Val> operands;
  std::map<std::string, int64_t> numbers;
  for (const auto &[name, arg] : arguments) {
    if (arg.kind == Arg::Kind::Tensor) {
      operands.insert(operands.end(), arg.tensors.begin(), arg.tensors.end());
    } else if (arg.kind == Arg::Kind::Int && arg.ints.size() == 1 && arg.ints[0].isStatic()) {
      numbers[attributeFor(kernel, name, numbers)] = *arg.ints[0].known();
    } else if (!arg.isNone() && arg.kind != Arg::Kind::Ignored) {
      fail("op-argument",
           "the kernel '" + kernel.name + "' takes tensors and integers that are known, not " + arg.describe());
    }
  }
  std::vector<Arg> results;
  for (const Val &value : frontend::callKernel(e, node, kernel, operands, numbers))
    results.push_back(Arg::tensor(value));
  return results;
}

} // namespace dmxc::torchfe
