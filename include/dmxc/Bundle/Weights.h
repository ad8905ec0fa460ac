//===- Weights.h - safetensors entries --------------------------*- C++ -*-===//
//
// A weights entry is a valid safetensors file whose tensor data starts at a
// multiple of 4096 (the first one that fits the header) and whose tensors are
// aligned to 64 bytes. safetensors allows no holes, so a gap is a U8 tensor
// named "__pad<n>__"; readers skip these names.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Writer.h"
#include "dmxc/Support/Tensor.h"

namespace dmxc::bundle {

/// Collects tensors, lays them out in the order of adding, then streams them.
/// Keeps names and producers, never the bytes. Not thread-safe.
class WeightsWriter {
public:
  /// A tensor of a dtype that safetensors knows. Types it does not know (4-bit
  /// ones, the fnuz f8s) are stored as flat U8 bytes under `byteSize`.
  /// `packing`, if not empty, goes into __metadata__ under the name.
  /// `produce` writes exactly the tensor's dense bytes. Fails
  /// (ErrorKind::Internal) on a name used twice or reserved.
  Status add(const std::string &name, DType dtype, const Shape &shape, Producer produce,
             const std::string &packing = "");
  /// A packed constant: flat bytes, stored as U8.
  Status addBytes(const std::string &name, uint64_t byteSize, Producer produce, const std::string &packing);
  /// Bytes that are already in memory or mapped; `owner` keeps them alive.
  Status add(const std::string &name, const Tensor &tensor, const std::string &packing = "");

  /// Fixes the layout; `add` is not allowed after it. Called by the functions
  /// below when needed.
  void layout();
  /// Offset of a tensor's bytes from the first byte of the entry, as graph.json
  /// wants it. The tensor must have been added.
  uint64_t offsetOf(const std::string &name);
  /// Size of the whole entry.
  uint64_t size();
  /// Streams the entry; the Producer for Writer::addStream. The WeightsWriter
  /// must outlive it.
  Status write(ByteSink &sink);
  Producer producer() {
    return [this](ByteSink &sink) { return write(sink); };
  }

private:
  struct Item {
    std::string name, dtype, packing;
    Shape shape;
    uint64_t size = 0;
    uint64_t begin = 0; ///< relative to the data section
    Producer produce;
  };
  Status insert(Item item);
  std::vector<Item> items;
  std::map<std::string, size_t, std::less<>> byName;
  std::string header;
  uint64_t dataSize = 0;
  bool fixed = false;
};

/// One tensor of a safetensors header.
struct WeightInfo {
  std::string name;
  std::string dtype; ///< safetensors name: "F32", "U8", ...
  Shape shape;
  uint64_t offset = 0; ///< from the first byte of the entry
  uint64_t size = 0;
  std::string packing; ///< from __metadata__, empty when plain
};

/// Reads and checks a safetensors header: sizes within the entry, no overlap,
/// no hole, byte size equal to dtype and shape. Fillers are left out; order is
/// that of the data. Errors are ErrorKind::Model and name the tensor.
Result<std::vector<WeightInfo>> readWeights(std::span<const std::byte> entry);

} // namespace dmxc::bundle
