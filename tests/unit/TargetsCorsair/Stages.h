//===- Stages.h - from text to a run, stage by stage ------------*- C++ -*-===//
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dmxtest {

/// dmx-opt: runs a pipeline over MLIR text. On failure the result is empty and `error` has the diagnostics.
std::string runPasses(const std::string &text, const std::string &pipeline, std::string &error);

/// A program in DLIR, encoded.
struct Encoded {
  std::string assembly, error;
  std::vector<uint8_t> image;
  /// The constants' bytes by argument name, from the `data` of dlir.argument.
  std::map<std::string, std::vector<uint8_t>> constants;
};
Encoded encodeText(const std::string &dlir, bool removeConfigs = true);

/// A function with one product of an input m x k and a constant k x n, in DMIR.
std::string productText(int64_t m, int64_t k, int64_t n, const std::vector<float> &weights);

/// All stages up to DLIR; options as dmx-opt takes them. Fails the test on an error.
struct StageOptions {
  std::string split = "auto";
  int64_t quads = 8;
  int64_t cores = 0;
  bool resident = false;
};
std::string lowerToDlir(const std::string &text, const StageOptions &options);

} // namespace dmxtest
