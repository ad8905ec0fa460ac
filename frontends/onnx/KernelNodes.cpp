//===- KernelNodes.cpp - nodes that users wrote kernels for ---------------===//
#include "GraphImporter.h"

#include "frontends/common/UserKernels.h"

#include <algorithm>

namespace dmxc::onnxfe {

const dmir::KernelDecl *GraphImporter::findKernel(const onnx::NodeProto &node, const std::string &domain,
                                                  const Scope &scope) const {
  auto imported = scope.opsets->find(domain);
  return dmir::KernelSet::of(emitter.context())
      .ofOnnx(domain, node.op_type(), imported == scope.opsets->end() ? std::nullopt : std::optional(imported->second));
}

void GraphImporter::importKernel(const dmir::KernelDecl &kernel, const onnx::NodeProto &node, const std::string &name,
                                 const NodeAttributes &attributes, const std::vector<Val> &operands, Scope &scope) {
  std::map<std::string, int64_t> numbers;
  for (const auto &[key, value] : attributes) {
    const int64_t *number = std::get_if<int64_t>(&value);
    if (!number || std::none_of(kernel.attributes.begin(), kernel.attributes.end(),
                                [&, &key = key](const auto &known) { return known.first == key; }))
      fail("op-attribute", "the kernel '" + kernel.name + "' has no attribute '" + key + "' that is an integer");
    numbers[key] = *number;
  }
  std::vector<Val> results = frontend::callKernel(emitter, name, kernel, operands, numbers);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    if (i >= static_cast<int>(results.size()))
      fail("op-kernel", "the kernel '" + kernel.name + "' has " + std::to_string(results.size()) + " results, not " +
                            std::to_string(node.output_size()));
    bind(scope, node.output(i), results[static_cast<size_t>(i)]);
  }
}

} // namespace dmxc::onnxfe
