//===- Check.cpp - whether a bundle is sound ------------------------------===//
#include "dmxc/Tools/Check.h"

#include "dmx/dmx.h"

namespace dmxc::tools {

using namespace bundle;

namespace {

/// One graph of an entry point, laid out by the runtime.
class Rehearsals {
public:
  Rehearsals(dmx_bundle *opened, const Bundle &bundle, const EntryPoint &entry, std::vector<Problem> &problems)
      : opened(opened), entry(entry), graph(bundle.graphs().find(entry.name)), problems(problems) {}

  void run() {
    if (!graph || !readTypes())
      return; // reported by validate()
    for (DimValues &values : sampleDims(*graph))
      at(values);
  }

private:
  dmx_bundle *opened;
  const EntryPoint &entry;
  const GraphDesc *graph;
  std::vector<Problem> &problems;
  std::vector<dmx_dtype> dtypes; // of the inputs

  /// False when the runtime has no such inputs.
  bool readTypes() {
    for (uint32_t i = 0; i < entry.inputs.size(); ++i) {
      dmx_tensor_info info = {};
      info.struct_size = sizeof info;
      if (dmx_bundle_tensor_info(opened, entry.name.c_str(), DMX_INPUT, i, &info, nullptr) != DMX_OK)
        return false;
      dtypes.push_back(info.dtype);
    }
    return true;
  }

  bool shapesAt(const DimValues &values, std::vector<std::vector<int64_t>> &shapes) const {
    for (const TensorDesc &input : entry.inputs)
      for (shapes.emplace_back(); const Expr &extent : input.shape) {
        auto value = extent.evaluate(values);
        if (!value)
          return false;
        shapes.back().push_back(*value);
      }
    return true;
  }

  void at(DimValues &values) {
    // The graph has no dims that nothing depends on.
    for (const SymbolicDim &dim : entry.dims)
      values.try_emplace(dim.name, dim.min);
    std::vector<std::vector<int64_t>> shapes;
    if (!shapesAt(values, shapes))
      return;
    std::vector<dmx_tensor_view> views;
    for (size_t i = 0; i < shapes.size(); ++i)
      views.push_back({dtypes[i], static_cast<uint32_t>(shapes[i].size()), shapes[i].data(), nullptr});
    dmx_error error = DMX_ERROR_INIT;
    dmx_status status =
        dmx_bundle_rehearse(opened, entry.name.c_str(), views.data(), static_cast<uint32_t>(views.size()), &error);
    // Values that no caller may give, or no machine has room for, say nothing about the bundle; nor does code that is
    // older than contracts, or for a device that this runtime does not have.
    if (status == DMX_OK || status == DMX_STATUS_INVALID_ARGUMENT || status == DMX_STATUS_OUT_OF_MEMORY ||
        status == DMX_STATUS_UNSUPPORTED)
      return;
    std::string dims;
    for (const SymbolicDim &dim : entry.dims)
      dims += (dims.empty() ? " at " : ", ") + dim.name + " = " + std::to_string(values[dim.name]);
    problems.push_back({"runtime, entry point '" + entry.name + "'" + dims, error.message});
  }
};

} // namespace

Result<std::vector<Problem>> checkBundle(const Bundle &bundle, bool everything) {
  std::vector<Problem> problems = validate(bundle, everything ? CheckLevel::Everything : CheckLevel::Structure);
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *opened = nullptr;
  dmx_status status = dmx_bundle_open(bundle.path().c_str(), &opened, &error);
  if (status == DMX_OK && everything)
    status = dmx_bundle_verify(opened, &error);
  if (status == DMX_STATUS_IO || status == DMX_STATUS_OUT_OF_MEMORY)
    return ioError(error.message);
  if (status != DMX_OK)
    problems.push_back({"runtime", error.message});
  else
    for (const EntryPoint &entry : bundle.manifest().entryPoints)
      Rehearsals(opened, bundle, entry, problems).run();
  dmx_bundle_close(opened);
  return problems;
}

} // namespace dmxc::tools
