//===- DriverApi.h - what we call of NVIDIA's driver ------------*- C++ -*-===//
//
// Written by hand from the driver's documentation, so that nothing of a CUDA toolkit is needed to build or to run:
// names, parameters and the numbers of what we pass. 64-bit Linux only. Handles are pointers that we never look behind.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>

namespace dmxrt::cuda {

using DriverCode = int; ///< 0: success
using GpuAddress = unsigned long long;
using GpuHandle = int;
using ContextHandle = void *;
using ModuleHandle = void *;
using FunctionHandle = void *;
using StreamHandle = void *;
using EventHandle = void *;

namespace driver {

/// Codes that we act upon; DriverErrors.cpp has the sentences of all.
enum Code : DriverCode { Success = 0, OutOfMemory = 2, NoDevice = 100 };
/// Of cuDeviceGetAttribute.
enum Attribute : int { ComputeMajor = 75, ComputeMinor = 76 };
/// Of cuModuleLoadDataEx; each with a value, sizes as numbers in the place of a pointer.
enum JitOption : int { InfoLog = 3, InfoLogBytes = 4, ErrorLog = 5, ErrorLogBytes = 6 };
/// Of cuFuncSetAttribute: bytes of shared memory that a launch may give a block.
constexpr int kMostDynamicShared = 8;
/// Of cuTensorMapEncodeTiled; types of elements have the numbers of dmx::cuda::MapType.
enum Swizzle : int { NoSwizzle = 0, Swizzle32 = 1, Swizzle64 = 2, Swizzle128 = 3 };
enum MapOption : int { NoInterleave = 0, FillWithZeros = 0, PromoteTo256 = 3 }; ///< the last: lines of the L2 cache
/// A stream that does not wait for the process's default one.
constexpr unsigned kNonBlocking = 1;
/// The first driver with PTX 8.0: CUDA 12.0, as cuDriverGetVersion has it.
constexpr int kOldestVersion = 12000;

} // namespace driver

struct DriverApi {
  DriverCode (*init)(unsigned flags);
  DriverCode (*getErrorName)(DriverCode, const char **name);
  DriverCode (*getErrorString)(DriverCode, const char **text);
  DriverCode (*driverGetVersion)(int *version);
  DriverCode (*deviceGetCount)(int *count);
  DriverCode (*deviceGet)(GpuHandle *, int ordinal);
  DriverCode (*deviceGetName)(char *name, int room, GpuHandle);
  DriverCode (*deviceGetAttribute)(int *value, int attribute, GpuHandle);
  DriverCode (*primaryContextRetain)(ContextHandle *, GpuHandle);
  DriverCode (*primaryContextRelease)(GpuHandle);
  DriverCode (*contextPush)(ContextHandle);
  DriverCode (*contextPop)(ContextHandle *);
  DriverCode (*moduleLoad)(ModuleHandle *, const void *image, unsigned options, int *keys, void **values);
  DriverCode (*moduleUnload)(ModuleHandle);
  DriverCode (*moduleGetFunction)(FunctionHandle *, ModuleHandle, const char *name);
  DriverCode (*functionSetAttribute)(FunctionHandle, int attribute, int value);
  /// `map`: 128 bytes at a multiple of 64.
  DriverCode (*tensorMapEncode)(void *map, int type, uint32_t rank, void *base, const uint64_t *sizes,
                                const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                                int swizzle, int promotion, int fill);
  DriverCode (*memoryInfo)(size_t *free, size_t *total);
  DriverCode (*memoryAllocate)(GpuAddress *, size_t bytes);
  DriverCode (*memoryFree)(GpuAddress);
  DriverCode (*copyToGpu)(GpuAddress, const void *host, size_t bytes, StreamHandle);
  DriverCode (*copyToHost)(void *host, GpuAddress, size_t bytes, StreamHandle);
  DriverCode (*copyOnGpu)(GpuAddress to, GpuAddress from, size_t bytes, StreamHandle);
  DriverCode (*fill)(GpuAddress, unsigned char value, size_t bytes, StreamHandle);
  DriverCode (*streamCreate)(StreamHandle *, unsigned flags);
  DriverCode (*streamSynchronize)(StreamHandle);
  DriverCode (*streamDestroy)(StreamHandle);
  DriverCode (*launch)(FunctionHandle, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                       unsigned blockZ, unsigned sharedBytes, StreamHandle, void **parameters, void **extra);
  DriverCode (*eventCreate)(EventHandle *, unsigned flags);
  DriverCode (*eventRecord)(EventHandle, StreamHandle);
  DriverCode (*eventElapsed)(float *milliseconds, EventHandle begin, EventHandle end);
  DriverCode (*eventDestroy)(EventHandle);
};

} // namespace dmxrt::cuda
