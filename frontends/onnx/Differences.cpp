//===- Differences.cpp - where readers of ONNX differ ---------------------===//
#include "Differences.h"

#include <algorithm>

namespace dmxc::onnxfe {

const std::vector<Difference> &differences() {
  static const std::vector<Difference> rows = [] {
    std::vector<Difference> all;
    for (auto family :
         {elementwiseDifferences, activationDifferences, gatherDifferences, dataDependentDifferences,
          generatorDifferences, reduceDifferences, convolutionDifferences, poolDifferences, normDifferences,
          quantDifferences, resizeDifferences, recurrentDifferences, signalDifferences, imageDifferences,
          roiDifferences, attentionDifferences, mlFeatureDifferences, mlLinearDifferences, treeDifferences})
      for (const Difference &row : family())
        all.push_back(row);
    std::stable_sort(all.begin(), all.end(), [](const Difference &a, const Difference &b) {
      return std::string_view(a.op) < std::string_view(b.op);
    });
    return all;
  }();
  return rows;
}

const Difference *findDifference(std::string_view name) {
  for (const Difference &row : differences())
    if (row.name == name)
      return &row;
  return nullptr;
}

std::string noteOf(const Difference &row, int64_t nodes, const std::string &node, bool fromPytorch) {
  const char *chosen = fromPytorch && *row.ofPytorch ? row.ofPytorch : row.choice;
  std::string text = "readers of ONNX differ on " + std::string(row.op) + ", " + row.where + ": here " + chosen;
  for (auto [reader, gives] :
       {std::pair("onnx.reference", row.reference), {"ONNX Runtime", row.onnxRuntime}, {"torch", row.torch}})
    if (*gives && std::string_view(gives) != chosen)
      text += std::string("; ") + reader + ": " + gives;
  text += " (" + (nodes == 1 ? "node '" + node + "'" : std::to_string(nodes) + " nodes, the first is '" + node + "'");
  return text + "; " + row.name + " in frontends/onnx/DIFFERENCES.md)";
}

} // namespace dmxc::onnxfe
