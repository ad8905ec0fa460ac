//===- Roles.h - which tensors of a bundle are what of a decoder -*- C++ -*-===//
#pragma once

#include "dmxc/Tools/Runtime.h"

#include <optional>
#include <utility>

namespace dmxc::tools {

/// Tensors of a decoder by name; what is empty is found by name and shape.
struct DecoderNames {
  std::string ids, mask, positions, logits;
  /// Inputs and the outputs that they are in the next run; one '*' on both sides stands for the same text.
  std::vector<std::pair<std::string, std::string>> caches;
};

/// An input that gets what an output of the run before gave.
struct CacheRole {
  size_t input = 0, output = 0;
  std::optional<size_t> axis; ///< of the tokens, where it grows by those of a run; nothing: it has one size
  std::optional<size_t> room; ///< the axis of one size that whoever runs it chooses
};

/// Indices of inputs, and of outputs for `logits`.
struct Roles {
  size_t ids = 0;
  std::optional<size_t> mask, positions, branch;
  std::vector<CacheRole> caches;
  size_t logits = 0;
  int64_t vocabulary = 0;
};

/// By what `names` says, else by name and shape. Errors are ErrorKind::Usage for a name that is not there, and
/// ErrorKind::Model where something was not found: what it was, what there is, which flag names it.
Result<Roles> findRoles(const std::vector<IoTensor> &inputs, const std::vector<IoTensor> &outputs,
                        const DecoderNames &names);

} // namespace dmxc::tools
