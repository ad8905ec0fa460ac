//===- LaunchTable.cpp - what stands before the kernels -----------------------===//

#include "LaunchTable.h"

#include "Hopper.h"

#include "schemas/cuda/Layouts.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/ADT/SetVector.h"

#include <nlohmann/json.hpp>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

using Json = nlohmann::ordered_json;

CompiledKernel dmxc::cuda::describeLaunch(dlir::KernelOp kernel, std::vector<int64_t> contract) {
  CompiledKernel launch;
  launch.name = kernel.getSymName().str();
  llvm::SetVector<StringAttr> nodes;
  dmir::collectNodes(kernel.getLoc(), nodes);
  for (StringAttr node : nodes)
    launch.nodes.push_back(node.str());
  for (StringAttr symbol : dmir::symbolsOf(kernel.getBlock()))
    launch.dims.push_back(symbol.str());
  DictionaryAttr strategy = kernel.getStrategy();
  Dim work = dmir::dimOfAttr(strategy.get(strategy::kWork), 1);
  launch.block = work.is(1) ? 1 : kBlock;
  launch.grid = Dim::ceilDiv(work, launch.block);
  if (!dmir::dimOfAttr(strategy.get(strategy::kScratch)).is(0))
    launch.grid = Dim::min(launch.grid, kMostBlocksWithScratch);
  launch.contract = std::move(contract);
  return launch;
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
                {"swizzle", dmx::cuda::kTileRowBytes}};
  if (!map.offset.is(0))
    entry["offset"] = sizeJson(map.offset);
  return entry;
}

std::string dmxc::cuda::launchTable(const std::vector<CompiledKernel> &kernels) {
  bool hasBlocks = llvm::any_of(kernels, [](const CompiledKernel &kernel) { return kernel.shared > 0; });
  std::string text =
      "// {\"launch_table\": " + std::string(hasBlocks ? "2" : "1") + ", \"level\": \"sm_90a\", \"kernels\": [";
  for (const CompiledKernel &kernel : kernels) {
    Json entry;
    entry["name"] = kernel.name;
    entry["nodes"] = kernel.nodes;
    entry["dims"] = kernel.dims;
    entry["block"] = kernel.block;
    entry["grid"] = sizeJson(kernel.grid);
    if (kernel.shared > 0) {
      entry["shared"] = kernel.shared;
      entry["item"] = "block";
      for (const TensorMap &map : kernel.maps)
        entry["maps"].push_back(mapJson(map));
    }
    entry["contract"] = kernel.contract;
    text += (&kernel == &kernels.front() ? "\n//   " : ",\n//   ") +
            entry.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  }
  return text + "\n// ]}\n";
}
