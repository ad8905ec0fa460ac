//===- TensorMaps.h - tensor maps as a launch table has them ----*- C++ -*-===//
#pragma once

#include "dmxc/Support/Dim.h"

#include <string>
#include <vector>

namespace dmxc::cuda {

/// A tensor map that a launch encodes and gives the kernel (schemas/cuda/KERNELS.md): axes from the innermost one on.
struct TensorMap {
  unsigned buffer = 0;      ///< of the task
  std::string type;         ///< "bf16", "f16"
  std::vector<Dim> sizes;   ///< elements
  std::vector<Dim> strides; ///< bytes, of the axes but the innermost one
  std::vector<int64_t> box; ///< elements that a copy reaches over
  Dim offset = 0;           ///< bytes into the buffer
};

} // namespace dmxc::cuda
