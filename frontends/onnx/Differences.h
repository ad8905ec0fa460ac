//===- Differences.h - where readers of ONNX differ -------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc::onnxfe {

/// Nodes that ONNX's reference (onnx.reference), ONNX Runtime and torch do not compute alike, and what dmxc does.
///
/// What each gives is said in words: the same words are the same numbers, other words other numbers; "fails" is no
/// number; no words: it has no such operator. tests/conformance/differences.py has a case for each row, and shows that
/// it is true.
struct Difference {
  const char *name;  ///< of the row, "resize-aligned-scales"
  const char *op;    ///< or several, separated by commas
  const char *where; ///< which nodes, or which values
  const char *reference, *onnxRuntime, *torch;
  const char *choice; ///< what dmxc gives
  const char *why;
  const char *ofPytorch = ""; ///< what dmxc gives in files that PyTorch wrote, if that is not `choice`
  bool seen = false;          ///< a compile sees such nodes, by NodeContext::noteDifference, and says so once
};

/// All rows, by operator.
const std::vector<Difference> &differences();
/// Null when there is none.
const Difference *findDifference(std::string_view name);
/// What a compile says of the nodes of a row; `node` is the first of them.
std::string noteOf(const Difference &row, int64_t nodes, const std::string &node, bool fromPytorch);

// Those of a family of operators; each is defined in ops/<Family>.cpp.
std::vector<Difference> elementwiseDifferences();
std::vector<Difference> activationDifferences();
std::vector<Difference> gatherDifferences();
std::vector<Difference> dataDependentDifferences();
std::vector<Difference> generatorDifferences();
std::vector<Difference> reduceDifferences();
std::vector<Difference> convolutionDifferences();
std::vector<Difference> poolDifferences();
std::vector<Difference> normDifferences();
std::vector<Difference> quantDifferences();
std::vector<Difference> resizeDifferences();
std::vector<Difference> recurrentDifferences();
std::vector<Difference> signalDifferences();
std::vector<Difference> imageDifferences();
std::vector<Difference> roiDifferences();
std::vector<Difference> attentionDifferences();
std::vector<Difference> mlFeatureDifferences();
std::vector<Difference> mlLinearDifferences();
std::vector<Difference> treeDifferences();

} // namespace dmxc::onnxfe
