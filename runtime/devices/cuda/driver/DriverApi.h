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
