//===- Assembler.h - what NVIDIA's assembler says of kernels ----*- C++ -*-===//
#pragma once

#include <string>
#include <string_view>

namespace dmx::cuda {

/// What a kernel of a PTX text needs of a multiprocessor, in the words of the ptxas that is found on the PATH: "Used 32
/// registers, 376 bytes cmem[0]". "" where none is found, or where it refuses the text.
std::string resourcesOf(std::string_view code, const std::string &kernel);

} // namespace dmx::cuda
