//===- FakeCudaLaunch.cpp - modules, maps and launches of a GPU that is not there ===//

#include "FakeCudaRules.h"
#include "FakeCudaState.h"

#include "runtime/devices/cuda/sim/Launch.h"
#include "runtime/devices/cuda/sim/SharedMemory.h"

#include <cstring>

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

struct Module {
  std::string text;
  PtxModule parsed;
  std::shared_ptr<const ProgramModule> programs;
};
struct Function {
  Module *module = nullptr;
  const Program *program = nullptr;
  const PtxKernel *kernel = nullptr;
  uint64_t ownShared = 0;             ///< of its variables
  uint64_t mostShared = kPlainShared; ///< of a launch
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

/// Words and maps as a kernel's entry has them; false: no parameter, or a map that nobody encoded.
bool takeParameters(const Program &program, void **parameters, Launch &launch, uint64_t &status) {
  for (size_t i = 0; i < program.parameterBytes.size(); ++i) {
    if (!parameters || !parameters[i])
      return false;
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
    return breach(kInvalidValue, "cuLaunchKernel", "a parameter is missing, or a tensor map that nobody encoded");
  Memory all;
  addRegion(all, MemoryRegion::StatusWord, status, 4);
  for (const auto &[begin, block] : memory)
    addRegion(all, MemoryRegion::Result, begin, block.second);
  for (const Table &table : launch.module->tables)
    addRegion(all, MemoryRegion::Table, reinterpret_cast<uintptr_t>(table.begin), table.bytes);
  launch.memory = &all;
  if (!isOnGpu(status, 4))
    return breach(kFault, "cuLaunchKernel", "the kernel has no status word on the GPU");
  LaunchOutcome outcome = runLaunch(launch);
  if (!outcome.fault.empty())
    std::fprintf(stderr, "FakeCuda: %s, line %u: %s\n", function.program->name.c_str(), outcome.line,
                 outcome.fault.c_str());
  return outcome.fault.empty() ? 0 : kFault;
}

} // namespace

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
  auto parsed = parsePtx(made->text);
  auto loaded = loadPtx(made->text);
  if (!parsed || !loaded)
    return breach(kInvalidPtx, "cuModuleLoadDataEx", (parsed ? loaded.error() : parsed.error()).message);
  if (std::string problem = problemOfModule(*parsed, dmxFakeCuda()->version); !problem.empty())
    return breach(kInvalidPtx, "cuModuleLoadDataEx", problem);
  made->parsed = std::move(*parsed);
  made->programs = *loaded;
  modules.insert(*module = made.release());
  ++dmxFakeCuda()->modules;
  return 0;
}
FAKE(cuModuleUnload, void *module) {
  LOCKED;
  int failed = noteIn("cuModuleUnload");
  if (keeps(failed))
    return failed;
  if (int code = checkHandle(modules, module, "cuModuleUnload", "module"))
    return code;
  modules.erase(module);
  delete static_cast<Module *>(module);
  --dmxFakeCuda()->modules;
  return failed;
}
FAKE(cuModuleGetFunction, void **function, void *module, const char *name) {
  LOCKED;
  if (int code = noteIn("cuModuleGetFunction", name))
    return code;
  if (int code = checkHandle(modules, module, "cuModuleGetFunction", "module"))
    return code;
  auto *of = static_cast<Module *>(module);
  for (size_t i = 0; i < of->parsed.kernels.size(); ++i)
    if (const PtxKernel &kernel = of->parsed.kernels[i]; kernel.name == name) {
      functions.push_back(
          std::make_unique<Function>(Function{of, &of->programs->kernels[i], &kernel, sharedOf(of->parsed, kernel)}));
      *function = functions.back().get();
      return 0;
    }
  return kNotFound;
}
FAKE(cuFuncSetAttribute, void *function, int attribute, int value) {
  LOCKED;
  if (int code = noteIn("cuFuncSetAttribute", attribute, value))
    return code;
  auto *known = static_cast<Function *>(function);
  if (int code = checkHandle(modules, known->module, "cuFuncSetAttribute", "function's module"))
    return code;
  if (attribute != 8 || value < 0 || static_cast<uint64_t>(value) + known->ownShared > kOptInShared)
    return breach(kInvalidValue, "cuFuncSetAttribute", "a launch cannot give ", value,
                  " bytes of shared memory beside ", known->ownShared, " of variables, but ", kOptInShared, " in all");
  known->mostShared = static_cast<uint64_t>(value);
  return 0;
}
FAKE(cuTensorMapEncodeTiled, void *out, int type, uint32_t rank, void *base, const uint64_t *sizes,
     const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion,
     int fill) {
  LOCKED;
  constexpr const char *name = "cuTensorMapEncodeTiled";
  if (int code = noteIn(name, type, rank, swizzle))
    return code;
  MapArguments given{out,        type,    rank,      reinterpret_cast<uintptr_t>(base),
                     sizes,      strides, box,       steps,
                     interleave, swizzle, promotion, fill};
  if (std::string problem = problemOfMap(given); !problem.empty())
    return breach(kInvalidValue, name, problem);
  if (uint64_t bytes = mapSpan(given); !isOnGpu(given.base, bytes))
    return breach(kInvalidValue, name, "its ", bytes, " bytes are not all in one block of the GPU's memory");
  if (interleave || fill)
    return breach(kInvalidValue, name, "interleaving and NaN are not known to the simulator");
  dmx::cuda::TensorMap map;
  map.type = static_cast<dmx::cuda::MapType>(type);
  map.rank = rank;
  map.swizzle = swizzle ? 16u << swizzle : 0;
  map.base = given.base;
  for (uint32_t i = 0; i < rank; ++i) {
    map.sizes[i] = sizes[i];
    map.strides[i] = i ? strides[i - 1] : 0;
    map.box[i] = box[i];
    map.steps[i] = steps[i];
  }
  uint64_t words[16] = {kMapMark, encoded.size()};
  encoded.push_back(map);
  std::memcpy(out, words, sizeof words);
  return 0;
}
/// What is wrong with a launch, and its code; 0: nothing.
static int checkLaunch(const Function &known, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threadsY,
                       unsigned threadsZ, unsigned shared) {
  constexpr const char *name = "cuLaunchKernel";
  if (x == 0 || x > INT32_MAX || y != 1 || z != 1)
    return breach(kInvalidValue, name, "a grid of ", x, " x ", y, " x ", z, " blocks");
  unsigned wanted = known.kernel->blockThreads, most = known.kernel->mostThreads;
  if (threads == 0 || threads > 1024 || threadsY != 1 || threadsZ != 1 || (wanted && threads != wanted) ||
      (most && threads > most))
    return breach(kInvalidValue, name, "blocks of ", threads, " threads, and the kernel has .reqntid ", wanted,
                  " and .maxntid ", most);
  if (x % known.kernel->cluster)
    return breach(kInvalidValue, name, x, " blocks in clusters of ", known.kernel->cluster);
  if (shared > known.mostShared || shared + known.ownShared > kOptInShared)
    return breach(kInvalidValue, name, shared, " bytes of shared memory, and cuFuncSetAttribute allows ",
                  known.mostShared);
  if (uint64_t registers = registersOf(*known.kernel, threads); registers > kAllRegisters)
    return breach(kOutOfResources, name, ".maxnreg ", known.kernel->mostRegisters, " for ", threads, " threads is ",
                  registers, " registers, and a multiprocessor has ", kAllRegisters);
  return 0;
}

FAKE(cuLaunchKernel, void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threadsY,
     unsigned threadsZ, unsigned shared, void *stream, void **parameters, void **extra) {
  LOCKED;
  const auto *known = static_cast<const Function *>(function);
  bool isThere = known && modules.count(known->module);
  if (int code = noteIn("cuLaunchKernel", isThere ? known->program->name : "", x, threads))
    return code;
  if (!isThere)
    return breach(kInvalidHandle, "cuLaunchKernel", "the function's module is none, or was destroyed");
  if (int code = checkStream(stream, "cuLaunchKernel"))
    return code;
  if (extra)
    return breach(kInvalidValue, "cuLaunchKernel", "both parameters and extra");
  if (int code = checkLaunch(*known, x, y, z, threads, threadsY, threadsZ, shared))
    return code;
  if (int code = run(*known, x, threads, shared, parameters))
    sticky = code;
  return 0;
}
