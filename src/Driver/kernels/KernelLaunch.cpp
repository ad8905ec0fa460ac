//===- KernelLaunch.cpp - which blocks run a body -------------------------===//
#include "KernelJson.h"

#include "llvm/ADT/STLExtras.h"

namespace dmxc::driver {

using dmir::KernelLaunch;
using dmir::KernelMap;

/// {"tensor": "a", "box": [64, 128], "swizzle": 128}
static KernelMap readMap(const KernelJson &json, const dmir::KernelDecl &decl, NamedDims &named) {
  json.onlyKeys({"tensor", "type", "sizes", "strides", "box", "steps", "swizzle", "offset"});
  KernelMap map;
  map.tensor = json.text("tensor");
  auto isIt = [&](const dmir::KernelTensor &tensor) { return tensor.name == map.tensor; };
  if (llvm::none_of(decl.operands, isIt) && llvm::none_of(decl.results, isIt))
    json.fail("'" + map.tensor + "' is neither an operand nor a result");
  map.type = json.textOr("type", "");
  if (json.has("sizes") != json.has("strides"))
    json.fail("'sizes' and 'strides' are given together, or neither");
  for (auto [key, dims] : {std::pair("sizes", &map.sizes), {"strides", &map.strides}})
    if (json.has(key))
      for (Dim dim : json.dims(key))
        dims->push_back(named.resolve(dim, json));
  map.box = json.integers("box");
  if (json.has("steps"))
    map.steps = json.integers("steps");
  map.swizzle = json.integerOr("swizzle", 0);
  map.offset = named.resolve(json.dim("offset", 0), json);
  if (map.swizzle < 0)
    json.fail("'swizzle' is a number of bytes");
  return map;
}

KernelLaunch readLaunch(const KernelJson &json, const dmir::KernelDecl &decl, NamedDims &named) {
  json.onlyKeys({"grid", "block", "shared", "cluster", "maps"});
  KernelLaunch launch;
  launch.grid = named.resolve(json.dim("grid", 1), json);
  launch.block = json.integerOr("block", 1);
  launch.shared = json.integerOr("shared", 0);
  launch.cluster = json.integerOr("cluster", 1);
  for (const KernelJson &map : json.list("maps", 0))
    launch.maps.push_back(readMap(map, decl, named));
  return launch;
}

} // namespace dmxc::driver
