//===- LaunchTable.cpp - what stands before the kernels -----------------------===//

#include "LaunchTable.h"

#include "Hopper.h"
#include "Ptx.h"

#include "schemas/cuda/Layouts.h"
#include "targets/common/roots/Contraction.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Path.h"

#include <nlohmann/json.hpp>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

using Json = nlohmann::ordered_json;

CompiledKernel dmxc::cuda::describeLaunch(dlir::KernelOp kernel, const KernelPlan &plan,
                                          std::vector<int64_t> contract) {
  CompiledKernel compiled;
  compiled.name = kernel.getSymName().str();
  llvm::SetVector<StringAttr> nodes;
  dmir::collectNodes(kernel.getLoc(), nodes);
  for (StringAttr node : nodes)
    compiled.nodes.push_back(node.str());
  for (StringAttr symbol : dmir::symbolsOf(kernel.getBlock()))
    compiled.dims.push_back(symbol.str());
  for (Operation &op : *kernel.getBlock())
    if (Contraction::is(&op))
      compiled.multiplyAdds += Contraction::ofWhole(&op).multiplyAdds();
  compiled.contract = std::move(contract);
  compiled.hasBlocks = plan.launch.has_value();
  if (plan.launch) {
    compiled.launch = *plan.launch;
    return compiled;
  }
  compiled.launch.block = plan.work.is(1) ? 1 : kBlock;
  compiled.launch.grid = Dim::ceilDiv(plan.work, compiled.launch.block);
  if (!plan.scratch.is(0))
    compiled.launch.grid = Dim::min(compiled.launch.grid, kMostBlocksWithScratch);
  return compiled;
}

/// A size as graph.json has them.
static Json sizeJson(Dim size) {
  Dim::Builder<Json> make;
  make.number = [](int64_t number) { return Json(number); };
  make.symbol = [](std::string_view name) { return Json(std::string(name)); };
  make.add = [](Json a, Json b) { return Json::array({"add", std::move(a), std::move(b)}); };
  make.mul = [](Json a, Json b) { return Json::array({"mul", std::move(a), std::move(b)}); };
  make.call = [](Dim::Call call, Json a, Json b) {
    constexpr const char *names[] = {"floordiv", "min", "max", "broadcast"};
    return Json::array({names[static_cast<int>(call)], std::move(a), std::move(b)});
  };
  return size.build(make);
}

static Json sizesJson(const std::vector<Dim> &sizes) {
  Json list = Json::array();
  for (Dim size : sizes)
    list.push_back(sizeJson(size));
  return list;
}

static Json mapJson(const TensorMap &map) {
  Json entry = {{"buffer", map.buffer},
                {"type", map.type},
                {"sizes", sizesJson(map.sizes)},
                {"strides", sizesJson(map.strides)},
                {"box", map.box},
                {"swizzle", map.swizzle}};
  if (llvm::any_of(map.steps, [](int64_t step) { return step != 1; }))
    entry["steps"] = map.steps;
  if (!map.offset.is(0))
    entry["offset"] = sizeJson(map.offset);
  return entry;
}

std::string dmxc::cuda::launchTable(const std::vector<CompiledKernel> &kernels) {
  bool hasBlocks = llvm::any_of(kernels, [](const CompiledKernel &kernel) { return kernel.hasBlocks; });
  bool hasClusters = llvm::any_of(kernels, [](const CompiledKernel &kernel) { return kernel.launch.cluster > 1; });
  bool hasScalars =
      llvm::any_of(kernels, [](const CompiledKernel &kernel) { return kernel.launch.scalars.has_value(); });
  std::string text = "// {\"launch_table\": " +
                     std::string(hasScalars    ? "4"
                                 : hasClusters ? "3"
                                 : hasBlocks   ? "2"
                                               : "1") +
                     ", \"level\": \"sm_90a\", \"kernels\": [";
  for (const CompiledKernel &kernel : kernels) {
    Json entry;
    entry["name"] = kernel.name;
    entry["nodes"] = kernel.nodes;
    entry["dims"] = kernel.dims;
    entry["block"] = kernel.launch.block;
    entry["grid"] = sizeJson(kernel.launch.grid);
    if (kernel.launch.cluster > 1)
      entry["cluster"] = kernel.launch.cluster;
    if (kernel.hasBlocks) {
      entry["shared"] = kernel.launch.shared;
      entry["item"] = "block";
      for (const TensorMap &map : kernel.launch.maps)
        entry["maps"].push_back(mapJson(map));
    }
    if (kernel.launch.scalars)
      entry["scalars"] = sizesJson(*kernel.launch.scalars);
    entry["contract"] = kernel.contract;
    if (!kernel.multiplyAdds.is(0))
      entry["multiply_adds"] = sizeJson(kernel.multiplyAdds);
    text += (&kernel == &kernels.front() ? "\n//   " : ",\n//   ") +
            entry.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  }
  return text + "\n// ]}\n";
}

Result<std::string> dmxc::cuda::entryText(const std::vector<CompiledKernel> &kernels) {
  std::vector<std::string> files;
  auto fileNumber = [&](StringRef path) {
    std::string file = llvm::sys::path::filename(path).str();
    std::replace_if(
        file.begin(), file.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\'; },
        '_');
    auto found = llvm::find(files, file);
    if (found == files.end())
      found = files.insert(files.end(), file);
    return static_cast<unsigned>(found - files.begin()) + 1;
  };
  std::string text, places;
  unsigned version = 80;
  for (const CompiledKernel &kernel : kernels) {
    if (!kernel.user) {
      text += kernel.ptx;
      continue;
    }
    constexpr size_t buffers = 1; // where a contract has how many there are
    Result<AdoptedEntry> entry =
        adoptEntry(*kernel.user,
                   {kernel.name, kernel.contract[buffers] + std::ssize(*kernel.launch.scalars),
                    std::ssize(kernel.launch.maps), kernel.launch.block, kernel.launch.cluster},
                   fileNumber);
    if (!entry)
      return entry.takeError();
    text += entry->text;
    version = std::max(version, entry->version);
  }
  for (auto [i, file] : llvm::enumerate(files))
    places += "\n.file " + std::to_string(i + 1) + " \"" + file + "\"\n";
  return launchTable(kernels) + ptxHeader(version) + places + text;
}
