//===- FakeCudaRules.h - what NVIDIA's driver refuses -----------*- C++ -*-===//
//
// Rules of the driver and of its compiler, written from their documentation and apart from what the runtime has of
// them: cuda.h's comments on cuTensorMapEncodeTiled and cuLaunchKernel, the PTX ISA manual's on kernel parameters,
// shared memory and performance directives. What is wrong is a sentence without a subject; "" where nothing is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/devices/cuda/ptx/Ptx.h"

#include <cstdint>
#include <string>

namespace dmxtest {

/// Of a multiprocessor of compute capability 9.0.
inline constexpr uint64_t kAllRegisters = 65536, kOptInShared = 232448, kPlainShared = 49152;

/// The arguments of cuTensorMapEncodeTiled but for the tensor's address space.
struct MapArguments {
  const void *out;
  int type;
  uint32_t rank;
  uint64_t base;
  const uint64_t *sizes, *strides;
  const uint32_t *box, *steps;
  int interleave, swizzle, promotion, fill;
};
std::string problemOfMap(const MapArguments &map);
/// Bytes of an element of a map's type, and from the base to behind the last element; all bits set: more than 2^64.
uint64_t mapElementBytes(int type);
uint64_t mapSpan(const MapArguments &map);

/// A PTX text that the driver of CUDA `version` (12040: 12.4) compiles for compute capability 9.0.
std::string problemOfModule(const dmxrt::cuda::PtxModule &module, int version);
/// Bytes of shared memory that the kernel's variables take, those of the launch not counted.
uint64_t sharedOf(const dmxrt::cuda::PtxModule &module, const dmxrt::cuda::PtxKernel &kernel);
/// Registers of a block, as the multiprocessor gives them out, where the text bounds them; 0: it does not.
uint64_t registersOf(const dmxrt::cuda::PtxKernel &kernel, uint64_t threads);

} // namespace dmxtest
