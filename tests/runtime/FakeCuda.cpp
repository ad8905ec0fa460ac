//===- FakeCuda.cpp - a driver of a GPU that is not there -----------------===//

#include "FakeCuda.h"

#include "runtime/devices/cuda/driver/DriverApi.h"
#include "runtime/devices/cuda/sim/Launch.h"
#include "runtime/devices/cuda/sim/SharedMemory.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

using namespace dmxrt::cuda;
using dmxtest::FakeCuda;

FakeCuda *dmxFakeCuda() {
  static FakeCuda fake;
  return &fake;
}

namespace {

constexpr int kInvalidValue = 1, kInvalidContext = 201, kNotFound = 500, kFault = 700;

std::mutex mutex;
std::map<uint64_t, std::pair<std::unique_ptr<std::byte[]>, uint64_t>> memory; // by the address
int sticky = 0;                                                               // what a launch left
thread_local int pushed = 0;

/// Notes a call; what it fails with.
template <typename... Parts> int note(const std::string &name, const Parts &...parts) {
  FakeCuda &fake = *dmxFakeCuda();
  std::string text = name;
  ((text += dmxrt::cat(" ", parts)), ...);
  fake.calls.push_back(text);
  auto found = fake.failures.find(name);
  if (found != fake.failures.end() && found->second.after-- <= 0)
    return found->second.code;
  return 0;
}
/// The same of a call that needs a context.
template <typename... Parts> int noteIn(const std::string &name, const Parts &...parts) {
  int code = note(name, parts...);
  return code ? code : pushed > 0 ? 0 : kInvalidContext;
}

bool isOnGpu(uint64_t address, uint64_t bytes) {
  auto after = memory.upper_bound(address);
  if (after == memory.begin())
    return false;
  const auto &[begin, block] = *std::prev(after);
  return address - begin <= block.second && bytes <= block.second - (address - begin);
}

struct Module {
  std::string text;
  std::shared_ptr<const ProgramModule> programs;
};
struct Function {
  Module *module = nullptr;
  const Program *program = nullptr;
  unsigned mostShared = 48 << 10; ///< of a launch
};
/// What a map's bytes lead to: the driver's format is no one else's business.
std::vector<dmx::cuda::TensorMap> encoded;
constexpr uint64_t kMapMark = 0x70616d20726f736e;
std::vector<std::unique_ptr<Function>> functions;

void addRegion(Memory &all, MemoryRegion::Kind kind, uint64_t begin, uint64_t bytes) {
  MemoryRegion &region = all.regions.emplace_back();
  region.kind = kind;
  region.begin = begin;
  region.bytes = bytes;
}

/// Words and maps as a kernel's entry has them; false: a map that nobody encoded.
bool takeParameters(const Program &program, void **parameters, Launch &launch, uint64_t &status) {
  for (size_t i = 0; i < program.parameterBytes.size(); ++i) {
    uint64_t words[2] = {};
    bool isMap = program.parameterBytes[i] == dmx::cuda::kMapBytes;
    std::memcpy(words, parameters[i], isMap ? sizeof words : sizeof words[0]);
    if (isMap && (words[0] != kMapMark || words[1] >= encoded.size()))
      return false;
    if (isMap) {
      launch.parameters.push_back(kMapWindow + dmx::cuda::kMapBytes * launch.maps.size());
      launch.maps.push_back(encoded[words[1]]);
    } else {
      launch.parameters.push_back(status = words[0]);
    }
  }
  return true;
}

int run(const Function &function, unsigned blocks, unsigned threads, unsigned shared, void **parameters) {
  Launch launch;
  launch.program = function.program;
  launch.module = function.module->programs.get();
  launch.blocks = blocks;
  launch.threads = threads;
  launch.shared = shared;
  uint64_t status = 0;
  if (!takeParameters(*function.program, parameters, launch, status))
    return kInvalidValue;
  Memory all;
  addRegion(all, MemoryRegion::StatusWord, status, 4);
  for (const auto &[begin, block] : memory)
    addRegion(all, MemoryRegion::Result, begin, block.second);
  for (const Table &table : launch.module->tables)
    addRegion(all, MemoryRegion::Table, reinterpret_cast<uintptr_t>(table.begin), table.bytes);
  launch.memory = &all;
  if (!isOnGpu(status, 4))
    return kFault;
  LaunchOutcome outcome = runLaunch(launch);
  if (!outcome.fault.empty())
    std::fprintf(stderr, "FakeCuda: %s, line %u: %s\n", function.program->name.c_str(), outcome.line,
                 outcome.fault.c_str());
  return outcome.fault.empty() ? 0 : kFault;
}

} // namespace

#define FAKE(name, ...) extern "C" [[gnu::visibility("default")]] int name(__VA_ARGS__)
#define LOCKED std::lock_guard<std::mutex> lock(mutex)

FAKE(cuInit, unsigned) {
  LOCKED;
  return note("cuInit");
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
  const dmxtest::FakeGpu &gpu = dmxFakeCuda()->gpus.at(static_cast<size_t>(handle - 10));
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
  --dmxFakeCuda()->retained;
  return note("cuDevicePrimaryCtxRelease_v2");
}
FAKE(cuCtxPushCurrent_v2, void *context) {
  LOCKED;
  if (int code = context == &sticky ? note("cuCtxPushCurrent_v2") : kInvalidContext)
    return code;
  ++pushed;
  ++dmxFakeCuda()->contexts;
  return 0;
}
FAKE(cuCtxPopCurrent_v2, void **) {
  LOCKED;
  --pushed;
  --dmxFakeCuda()->contexts;
  return note("cuCtxPopCurrent_v2");
}
FAKE(cuModuleLoadDataEx, void **module, const void *image, unsigned count, int *keys, void **values) {
  LOCKED;
  if (int code = noteIn("cuModuleLoadDataEx")) {
    for (unsigned i = 0; i + 1 < count; ++i)
      if (keys[i] == 5 && keys[i + 1] == 6)
        std::snprintf(static_cast<char *>(values[i]), reinterpret_cast<size_t>(values[i + 1]), "%s\n\n",
                      dmxFakeCuda()->jitLog.c_str());
    return code;
  }
  auto made = std::make_unique<Module>();
  made->text = static_cast<const char *>(image);
  auto loaded = loadPtx(made->text);
  if (!loaded)
    return 218;
  made->programs = *loaded;
  *module = made.release();
  ++dmxFakeCuda()->modules;
  return 0;
}
FAKE(cuModuleUnload, void *module) {
  LOCKED;
  delete static_cast<Module *>(module);
  --dmxFakeCuda()->modules;
  return noteIn("cuModuleUnload");
}
FAKE(cuModuleGetFunction, void **function, void *module, const char *name) {
  LOCKED;
  if (int code = noteIn("cuModuleGetFunction", name))
    return code;
  auto *of = static_cast<Module *>(module);
  for (const Program &program : of->programs->kernels)
    if (program.name == name) {
      functions.push_back(std::make_unique<Function>(Function{of, &program}));
      *function = functions.back().get();
      return 0;
    }
  return kNotFound;
}
FAKE(cuFuncSetAttribute, void *function, int attribute, int value) {
  LOCKED;
  if (int code = noteIn("cuFuncSetAttribute", attribute, value))
    return code;
  if (attribute != 8 || value < 0 || value > 232448)
    return kInvalidValue;
  static_cast<Function *>(function)->mostShared = static_cast<unsigned>(value);
  return 0;
}
FAKE(cuTensorMapEncodeTiled, void *out, int type, uint32_t rank, void *base, const uint64_t *sizes,
     const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion,
     int fill) {
  LOCKED;
  if (int code = note("cuTensorMapEncodeTiled", type, rank, swizzle))
    return code;
  if (reinterpret_cast<uintptr_t>(out) % 64 || rank == 0 || rank > 5 || type < 0 || type > 12 || interleave ||
      swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill)
    return kInvalidValue;
  dmx::cuda::TensorMap map;
  map.type = static_cast<dmx::cuda::MapType>(type);
  map.rank = rank;
  map.swizzle = swizzle ? 16u << swizzle : 0;
  map.base = reinterpret_cast<uintptr_t>(base);
  for (uint32_t i = 0; i < rank; ++i) {
    map.sizes[i] = sizes[i];
    map.strides[i] = i ? strides[i - 1] : 0;
    map.box[i] = box[i];
    map.steps[i] = steps[i];
  }
  if (!problemOf(map).empty() || !isOnGpu(map.base, map.span()))
    return kInvalidValue;
  uint64_t words[16] = {kMapMark, encoded.size()};
  encoded.push_back(map);
  std::memcpy(out, words, sizeof words);
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
    return kInvalidValue;
  if (bytes > fake.totalBytes - fake.usedBytes)
    return 2;
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
  auto found = memory.find(address);
  if (found == memory.end())
    return kInvalidValue;
  dmxFakeCuda()->usedBytes -= found->second.second;
  --dmxFakeCuda()->blocks;
  memory.erase(found);
  return noteIn("cuMemFree_v2");
}
FAKE(cuMemcpyHtoDAsync_v2, GpuAddress to, const void *from, size_t bytes, void *) {
  LOCKED;
  if (int code = noteIn("cuMemcpyHtoDAsync_v2", bytes))
    return code;
  if (sticky || !isOnGpu(to, bytes) || isOnGpu(reinterpret_cast<uintptr_t>(from), 1))
    return sticky ? sticky : kInvalidValue;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}
FAKE(cuMemcpyDtoHAsync_v2, void *to, GpuAddress from, size_t bytes, void *) {
  LOCKED;
  if (int code = noteIn("cuMemcpyDtoHAsync_v2", bytes))
    return code;
  if (sticky || !isOnGpu(from, bytes) || isOnGpu(reinterpret_cast<uintptr_t>(to), 1))
    return sticky ? 0 : kInvalidValue; // what a launch did is told by the next wait
  std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return 0;
}
FAKE(cuMemcpyDtoDAsync_v2, GpuAddress to, GpuAddress from, size_t bytes, void *) {
  LOCKED;
  if (int code = noteIn("cuMemcpyDtoDAsync_v2", bytes))
    return code;
  if (!isOnGpu(to, bytes) || !isOnGpu(from, bytes) || (to < from + bytes && from < to + bytes))
    return kInvalidValue;
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
  return 0;
}
FAKE(cuMemsetD8Async, GpuAddress to, unsigned char value, size_t bytes, void *) {
  LOCKED;
  if (int code = noteIn("cuMemsetD8Async", bytes))
    return code;
  if (!isOnGpu(to, bytes))
    return kInvalidValue;
  std::memset(reinterpret_cast<void *>(to), value, bytes);
  return 0;
}
FAKE(cuStreamCreate, void **stream, unsigned flags) {
  LOCKED;
  int code = noteIn("cuStreamCreate", flags);
  dmxFakeCuda()->streams += code == 0;
  *stream = code ? nullptr : &functions;
  return code;
}
FAKE(cuStreamSynchronize, void *) {
  LOCKED;
  int code = noteIn("cuStreamSynchronize");
  return code ? code : std::exchange(sticky, 0); // a process that is a test's goes on
}
FAKE(cuStreamDestroy_v2, void *) {
  LOCKED;
  --dmxFakeCuda()->streams;
  return noteIn("cuStreamDestroy_v2");
}
FAKE(cuLaunchKernel, void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threadsY,
     unsigned threadsZ, unsigned shared, void *, void **parameters, void **extra) {
  LOCKED;
  const auto *known = static_cast<const Function *>(function);
  if (int code = noteIn("cuLaunchKernel", known->program->name, x, threads))
    return code;
  if (x == 0 || y != 1 || z != 1 || threadsY != 1 || threadsZ != 1 || shared > known->mostShared || extra ||
      threads != known->program->blockThreads)
    return kInvalidValue;
  if (int code = run(*known, x, threads, shared, parameters))
    sticky = code;
  return 0;
}
FAKE(cuEventCreate, void **event, unsigned) {
  LOCKED;
  int code = noteIn("cuEventCreate");
  dmxFakeCuda()->events += code == 0;
  *event = code ? nullptr : new int(0);
  return code;
}
FAKE(cuEventRecord, void *event, void *) {
  LOCKED;
  static int time = 0;
  *static_cast<int *>(event) = ++time;
  return noteIn("cuEventRecord");
}
FAKE(cuEventElapsedTime, float *milliseconds, void *begin, void *end) {
  LOCKED;
  *milliseconds = static_cast<float>(*static_cast<int *>(end) - *static_cast<int *>(begin)) * 0.25f;
  return noteIn("cuEventElapsedTime");
}
FAKE(cuEventDestroy_v2, void *event) {
  LOCKED;
  delete static_cast<int *>(event);
  --dmxFakeCuda()->events;
  return noteIn("cuEventDestroy_v2");
}
