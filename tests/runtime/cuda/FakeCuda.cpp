//===- FakeCuda.cpp - a driver of a GPU that is not there -----------------===//

#include "FakeCudaState.h"

#include "runtime/devices/cuda/driver/DriverApi.h"

#include <cstdlib>
#include <cstring>

using namespace dmxtest;
using dmxrt::cuda::GpuAddress;

FakeCuda *dmxFakeCuda() {
  // What nobody asked about is told by how the process ends.
  static struct Judged : FakeCuda {
    ~Judged() {
      if (breaches.empty())
        return;
      std::fflush(nullptr);
      std::_Exit(kBreachExit);
    }
  } fake;
  return &fake;
}

FAKE(cuInit, unsigned) {
  LOCKED;
  int code = note("cuInit");
  started = started || code == 0;
  return code;
}
FAKE(cuGetErrorName, int code, const char **name) {
  *name = code == 987 ? "CUDA_ERROR_OF_TOMORROW" : nullptr;
  return *name ? 0 : kInvalidValue;
}
FAKE(cuGetErrorString, int code, const char **text) {
  *text = code == 987 ? "something new" : nullptr;
  return *text ? 0 : kInvalidValue;
}
FAKE(cuDriverGetVersion, int *version) {
  LOCKED;
  *version = dmxFakeCuda()->version;
  return note("cuDriverGetVersion");
}
FAKE(cuDeviceGetCount, int *count) {
  LOCKED;
  *count = static_cast<int>(dmxFakeCuda()->gpus.size());
  return note("cuDeviceGetCount");
}
FAKE(cuDeviceGet, int *handle, int number) {
  LOCKED;
  *handle = number + 10;
  return note("cuDeviceGet", number);
}
FAKE(cuDeviceGetName, char *name, int room, int handle) {
  LOCKED;
  std::snprintf(name, static_cast<size_t>(room), "%s",
                dmxFakeCuda()->gpus.at(static_cast<size_t>(handle - 10)).name.c_str());
  return note("cuDeviceGetName");
}
FAKE(cuDeviceGetAttribute, int *value, int attribute, int handle) {
  LOCKED;
  const FakeGpu &gpu = dmxFakeCuda()->gpus.at(static_cast<size_t>(handle - 10));
  *value = attribute == 75 ? gpu.major : attribute == 76 ? gpu.minor : -1;
  return note("cuDeviceGetAttribute", attribute);
}
FAKE(cuDevicePrimaryCtxRetain, void **context, int handle) {
  LOCKED;
  int code = note("cuDevicePrimaryCtxRetain", handle);
  dmxFakeCuda()->retained += code == 0;
  *context = code ? nullptr : &sticky;
  return code;
}
FAKE(cuDevicePrimaryCtxRelease_v2, int) {
  LOCKED;
  constexpr const char *name = "cuDevicePrimaryCtxRelease_v2";
  if (int code = note(name))
    return code;
  FakeCuda &fake = *dmxFakeCuda();
  if (fake.retained == 0)
    return breach(kInvalidContext, name, "the context is not retained");
  bool isLast = fake.retained == 1 && fake.failures.empty();
  if (isLast && (!memory.empty() || !modules.empty() || !streams.empty() || !events.empty()))
    return breach(kInvalidContext, name, "the context still has ", memory.size(), " blocks of memory, ", modules.size(),
                  " modules, ", streams.size(), " streams and ", events.size(), " events");
  if (isLast && fake.contexts > 0)
    return breach(kInvalidContext, name, "the context is current");
  --fake.retained;
  return 0;
}
FAKE(cuCtxPushCurrent_v2, void *context) {
  LOCKED;
  if (int code = note("cuCtxPushCurrent_v2"))
    return code;
  if (context != &sticky || dmxFakeCuda()->retained == 0)
    return breach(kInvalidContext, "cuCtxPushCurrent_v2", "the context is none, or was released");
  ++pushed;
  ++dmxFakeCuda()->contexts;
  return 0;
}
FAKE(cuCtxPopCurrent_v2, void **) {
  LOCKED;
  if (int code = noteIn("cuCtxPopCurrent_v2"))
    return code;
  --pushed;
  --dmxFakeCuda()->contexts;
  return 0;
}
FAKE(cuMemGetInfo_v2, size_t *free, size_t *total) {
  LOCKED;
  *total = dmxFakeCuda()->totalBytes;
  *free = *total - dmxFakeCuda()->usedBytes;
  return noteIn("cuMemGetInfo_v2");
}
FAKE(cuMemAlloc_v2, GpuAddress *address, size_t bytes) {
  LOCKED;
  FakeCuda &fake = *dmxFakeCuda();
  if (int code = noteIn("cuMemAlloc_v2", bytes))
    return code;
  if (bytes == 0)
    return breach(kInvalidValue, "cuMemAlloc_v2", "0 bytes");
  if (bytes > fake.totalBytes - fake.usedBytes)
    return kOutOfMemory;
  auto room = std::make_unique<std::byte[]>(bytes + 256);
  std::memset(room.get(), 0xa5, bytes + 256);
  *address = (reinterpret_cast<uintptr_t>(room.get()) + 255) / 256 * 256;
  memory[*address] = {std::move(room), bytes};
  fake.usedBytes += bytes;
  ++fake.blocks;
  return 0;
}
FAKE(cuMemFree_v2, GpuAddress address) {
  LOCKED;
  int failed = noteIn("cuMemFree_v2");
  if (keeps(failed))
    return failed;
  auto found = memory.find(address);
  if (found == memory.end())
    return breach(kInvalidValue, "cuMemFree_v2", "the address is none that was allocated, or was freed");
  dmxFakeCuda()->usedBytes -= found->second.second;
  --dmxFakeCuda()->blocks;
  memory.erase(found);
  return failed;
}
FAKE(cuMemcpyHtoDAsync_v2, GpuAddress to, const void *from, size_t bytes, void *stream) {
  LOCKED;
  if (int code = noteIn("cuMemcpyHtoDAsync_v2", bytes))
    return code;
  if (int code = checkStream(stream, "cuMemcpyHtoDAsync_v2"))
    return code;
  if (sticky)
    return sticky;
  if (!isOnGpu(to, bytes) || isOnGpu(reinterpret_cast<uintptr_t>(from), 1))
    return breach(kInvalidValue, "cuMemcpyHtoDAsync_v2", bytes, " bytes are not from the host to one block of the GPU");
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
FAKE(cuMemcpyDtoHAsync_v2, void *to, GpuAddress from, size_t bytes, void *stream) {
  LOCKED;
  if (int code = noteIn("cuMemcpyDtoHAsync_v2", bytes))
    return code;
  if (int code = checkStream(stream, "cuMemcpyDtoHAsync_v2"))
    return code;
  if (sticky)
    return 0; // what a launch did is told by the next wait
  if (!isOnGpu(from, bytes) || isOnGpu(reinterpret_cast<uintptr_t>(to), 1))
    return breach(kInvalidValue, "cuMemcpyDtoHAsync_v2", bytes, " bytes are not from one block of the GPU to the host");
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return 0;
}
FAKE(cuMemcpyDtoDAsync_v2, GpuAddress to, GpuAddress from, size_t bytes, void *stream) {
  LOCKED;
  if (int code = noteIn("cuMemcpyDtoDAsync_v2", bytes))
    return code;
  if (int code = checkStream(stream, "cuMemcpyDtoDAsync_v2"))
    return code;
  if (!isOnGpu(to, bytes) || !isOnGpu(from, bytes) || (to < from + bytes && from < to + bytes))
    return breach(kInvalidValue, "cuMemcpyDtoDAsync_v2", bytes, " bytes overlap, or are not of the GPU");
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  return 0;
}
FAKE(cuMemsetD8Async, GpuAddress to, unsigned char value, size_t bytes, void *stream) {
  LOCKED;
  if (int code = noteIn("cuMemsetD8Async", bytes))
    return code;
  if (int code = checkStream(stream, "cuMemsetD8Async"))
    return code;
  if (!isOnGpu(to, bytes))
    return breach(kInvalidValue, "cuMemsetD8Async", bytes, " bytes are not of one block of the GPU");
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return 0;
}
FAKE(cuStreamCreate, void **stream, unsigned flags) {
  LOCKED;
  int code = noteIn("cuStreamCreate", flags);
  dmxFakeCuda()->streams += code == 0;
  *stream = code ? nullptr : new int(0);
  if (*stream)
    streams.insert(*stream);
  return code;
}
FAKE(cuStreamSynchronize, void *stream) {
  LOCKED;
  if (int code = noteIn("cuStreamSynchronize"))
    return code;
  if (int code = checkStream(stream, "cuStreamSynchronize"))
    return code;
  for (void *event : events)
    static_cast<Event *>(event)->done = static_cast<Event *>(event)->time != 0;
  return std::exchange(sticky, 0); // a process that is a test's goes on
}
FAKE(cuStreamDestroy_v2, void *stream) {
  LOCKED;
  int failed = noteIn("cuStreamDestroy_v2");
  if (keeps(failed))
    return failed;
  if (int code = checkHandle(streams, stream, "cuStreamDestroy_v2", "stream"))
    return code;
  streams.erase(stream);
  delete static_cast<int *>(stream);
  --dmxFakeCuda()->streams;
  return failed;
}

FAKE(cuEventCreate, void **event, unsigned) {
  LOCKED;
  int code = noteIn("cuEventCreate");
  dmxFakeCuda()->events += code == 0;
  *event = code ? nullptr : new Event;
  if (*event)
    events.insert(*event);
  return code;
}
FAKE(cuEventRecord, void *event, void *stream) {
  LOCKED;
  static int time = 0;
  if (int code = noteIn("cuEventRecord"))
    return code;
  if (int code = checkHandle(events, event, "cuEventRecord", "event"))
    return code;
  if (int code = checkStream(stream, "cuEventRecord"))
    return code;
  *static_cast<Event *>(event) = {++time, false};
  return 0;
}
FAKE(cuEventElapsedTime, float *milliseconds, void *begin, void *end) {
  LOCKED;
  if (int code = noteIn("cuEventElapsedTime"))
    return code;
  for (void *each : {begin, end}) {
    if (int code = checkHandle(events, each, "cuEventElapsedTime", "event"))
      return code;
    if (const Event &event = *static_cast<Event *>(each); !event.done)
      return breach(event.time ? kNotReady : kInvalidHandle, "cuEventElapsedTime",
                    event.time ? "nobody waited for the event" : "the event was not recorded");
  }
  *milliseconds = static_cast<float>(static_cast<Event *>(end)->time - static_cast<Event *>(begin)->time) * 0.25f;
  return 0;
}
FAKE(cuEventDestroy_v2, void *event) {
  LOCKED;
  int failed = noteIn("cuEventDestroy_v2");
  if (keeps(failed))
    return failed;
  if (int code = checkHandle(events, event, "cuEventDestroy_v2", "event"))
    return code;
  events.erase(event);
  delete static_cast<Event *>(event);
  --dmxFakeCuda()->events;
  return failed;
}
