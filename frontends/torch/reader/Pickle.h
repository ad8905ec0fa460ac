//===- Pickle.h - tensors of a torch.save file ------------------*- C++ -*-===//
//
// A pickle is a program. This one is never run: opcodes work on inert values, the few functions that torch names to
// rebuild tensors are tokens, and anything else is refused by its name.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Archive.h"

#include "dmxc/Support/DType.h"

#include <optional>
#include <vector>

namespace dmxc::torchfe {

/// A tensor of a torch.save file: a view of a storage.
struct PickledTensor {
  std::optional<DType> dtype; ///< nothing where it has none here
  std::optional<DType> parts; ///< of a complex one, that of its parts
  std::string typeName;       ///< as the file has it
  std::string storage;        ///< key of the record data/<key>
  int64_t offset = 0;         ///< in elements
  std::vector<int64_t> sizes, strides;
};

/// The tensors of the top dictionary of `data.pkl`, by key. Values that are no tensors have no entry.
Result<std::map<std::string, PickledTensor>> readPickledTensors(std::span<const std::byte> pickle);

} // namespace dmxc::torchfe
