//===- KernelCore.cpp - what of a body's operands a core has --------------===//
#include "KernelJson.h"

#include "llvm/ADT/STLExtras.h"

namespace dmxc::driver {

using dmir::KernelCore;
using dmir::KernelCut;
using dmir::KernelTensor;

namespace {

/// Dims by their names: a core has as much of each at once as some tensor's part has.
class CutReader {
public:
  CutReader(const KernelJson &json, const dmir::KernelDecl &decl, NamedDims &named)
      : json(json), decl(decl), named(named) {
    for (const auto &list : {&decl.operands, &decl.results})
      for (const KernelTensor &tensor : *list)
        tensors.push_back(&tensor);
  }

  void read(KernelCore &core) {
    for (const KernelTensor *tensor : tensors)
      core.names.push_back(tensor->name);
    if (json.has("l1"))
      for (const std::string &name : json.at("l1").keys())
        readPart(name);
    for (const auto &[dim, extent] : parts)
      (isOfResults(dim) ? rows : steps).push_back(dim);
    core.rows = cutAlong(rows, "all results have, and along which cores share the work");
    core.steps = cutAlong(steps, "no result has, and along which a core is called again and again");
  }

private:
  void readPart(const std::string &name) {
    const KernelJson l1 = json.at("l1");
    const auto tensor = llvm::find_if(tensors, [&](const KernelTensor *each) { return each->name == name; });
    if (tensor == tensors.end())
      l1.fail("'" + name + "' is neither an operand nor a result");
    std::vector<Dim> part = l1.dims(name.c_str());
    const std::vector<Dim> &shape = (*tensor)->shape;
    if (part.size() != shape.size())
      l1.fail("'" + name + "' has " + std::to_string(shape.size()) + " axes, its part " + std::to_string(part.size()));
    for (auto [axis, extent] : llvm::enumerate(part)) {
      Dim own = named.resolve(extent, l1);
      if (own == shape[axis])
        continue;
      std::optional<std::string> dim = shape[axis].symbolName();
      if (!dim)
        l1.fail("axis " + std::to_string(axis) + " of '" + name + "' is " + shape[axis].str() +
                "; what is cut is a dim that is a name alone");
      if (own.valueOr(1) < 1)
        l1.fail("'" + name + "' has a part of " + own.str() + " along axis " + std::to_string(axis));
      auto [found, isNew] = parts.try_emplace(*dim, own);
      if (!isNew && found->second != own)
        l1.fail("a core would have " + found->second.str() + " and " + own.str() + " of '" + *dim + "' at once");
    }
  }

  static int64_t axisOf(const KernelTensor &tensor, const std::string &dim) {
    for (auto [axis, extent] : llvm::enumerate(tensor.shape))
      if (extent.symbolName() == dim)
        return static_cast<int64_t>(axis);
    return -1;
  }

  /// Fails where some results have it and others have not.
  bool isOfResults(const std::string &dim) const {
    auto has = [&](const KernelTensor &result) { return axisOf(result, dim) >= 0; };
    bool some = llvm::any_of(decl.results, has);
    if (some && !llvm::all_of(decl.results, has))
      json.fail("'l1' cuts '" + dim + "', which some results have and others have not");
    return some;
  }

  std::optional<KernelCut> cutAlong(const std::vector<std::string> &dims, const char *what) {
    if (dims.empty())
      return std::nullopt;
    if (dims.size() > 1)
      json.fail("'l1' cuts '" + dims[0] + "' and '" + dims[1] + "'; it cuts one dim that " + what);
    KernelCut cut{dims[0], parts.at(dims[0]), {}};
    for (const KernelTensor *tensor : tensors)
      cut.axes.push_back(axisOf(*tensor, dims[0]));
    return cut;
  }

  const KernelJson &json;
  const dmir::KernelDecl &decl;
  NamedDims &named;
  std::vector<const KernelTensor *> tensors;
  std::map<std::string, Dim> parts;
  std::vector<std::string> rows, steps;
};

} // namespace

KernelCore readCore(const KernelJson &body, const dmir::KernelDecl &decl, NamedDims &named) {
  KernelCore core;
  core.cycles = named.resolve(body.dim("cycles", 0), body);
  if (core.cycles.valueOr(0) < 0)
    body.fail("'cycles' are " + core.cycles.str());
  core.library = body.textOr("library", "");
  CutReader(body, decl, named).read(core);
  return core;
}

} // namespace dmxc::driver
