//===- TensorDirectory.h - directories of inputs and outputs ----*- C++ -*-===//
#pragma once

#include "dmxc/Tools/TensorFile.h"

#include <vector>

namespace dmxc::tools {

enum class TensorRole { Input, Output };

/// What to look for: a tensor of the bundle.
struct WantedTensor {
  std::string name;
  DType dtype = DType::F32;
};

/// Reads one tensor for each wanted one; an absent one stays empty
/// (Tensor::empty()). Layouts, by file, first match wins:
///   in_<name>.npy / out_<name>.npy      the model zoo's
///   <name>.npy, <name>.pb
///   input_<i>.npy|pb / output_<i>.npy|pb ONNX's test layout, i = position;
///                                        one of a sequence or optional has as
///                                        many positions as tensors
/// In <name>, characters outside [A-Za-z0-9._-] may be replaced by '_'. When
/// all ONNX files carry names of wanted tensors, the names count, not the
/// positions. Errors: ErrorKind::IO for a missing directory or a bad file, and
/// when no file at all fits (the message lists what was looked for).
Result<std::vector<Tensor>> readTensorDirectory(const std::string &directory, TensorRole role,
                                                const std::vector<WantedTensor> &wanted);

/// Name of the file that writeTensorDirectory uses: out_<name>.npy, unsafe
/// characters replaced by '_'.
std::string tensorFileName(TensorRole role, const std::string &name);

} // namespace dmxc::tools
