//===- Manifest.h - manifest.json as plain structs --------------*- C++ -*-===//
#pragma once

#include "runtime/Error.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dmxrt {

/// The format this runtime reads: this major, minors up to this one.
inline constexpr int64_t kFormatMajor = 1;
inline constexpr int64_t kFormatMinor = 6;

struct ManifestEntry {
  std::string name;
  uint64_t size = 0;
  std::string sha256;
};

/// One compiled variant of the code.
struct TargetCode {
  std::string target, arch, entry;
  std::vector<std::string> features; // instruction-set features the code needs
  std::string common;                // entry of kernels that it shares with other variants; empty: none
};

struct ManifestTensor {
  std::string name;
  dmx_dtype dtype = 0;
  std::vector<std::optional<int64_t>> shape; // empty: symbolic or computed
  std::string description;                   // for people; often empty
};

struct ManifestEntryPoint {
  std::string name;
  std::vector<ManifestTensor> inputs, outputs;
};

struct Manifest {
  std::vector<TargetCode> targets;
  std::vector<ManifestEntryPoint> entryPoints;
  std::vector<ManifestEntry> entries;
  std::vector<std::string> userCode; // names of kernels that users wrote
  std::vector<std::pair<std::string, std::string>>
      metadata; // what the model's file said of it; the last of a key counts
};

/// Parses and checks manifest.json; refuses other format versions, a newer
/// minimum runtime and unknown required features by name.
Result<Manifest> parseManifest(std::span<const std::byte> text);

} // namespace dmxrt
