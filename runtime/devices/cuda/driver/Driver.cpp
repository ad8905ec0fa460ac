//===- Driver.cpp - NVIDIA's driver, opened where it is -----------------------===//

#include "Driver.h"

#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>

namespace dmxrt::cuda {
namespace {

/// What the library calls a function, with where it goes.
struct Symbol {
  template <typename Function>
  Symbol(const char *name, Function &function) : name(name), to(static_cast<void *>(&function)) {}
  const char *name;
  void *to;
};

} // namespace

Status Driver::load(const std::string &file) {
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return fail(DMX_STATUS_UNSUPPORTED, "NVIDIA's driver cannot be loaded (", why ? why : file.c_str(), ")");
  }
  // The versions that names with a suffix have had since CUDA 3.2, 4.0 and 7.0.
  const Symbol symbols[] = {{"cuInit", api.init},
                            {"cuGetErrorName", api.getErrorName},
                            {"cuGetErrorString", api.getErrorString},
                            {"cuDriverGetVersion", api.driverGetVersion},
                            {"cuDeviceGetCount", api.deviceGetCount},
                            {"cuDeviceGet", api.deviceGet},
                            {"cuDeviceGetName", api.deviceGetName},
                            {"cuDeviceGetAttribute", api.deviceGetAttribute},
                            {"cuDevicePrimaryCtxRetain", api.primaryContextRetain},
                            {"cuDevicePrimaryCtxRelease_v2", api.primaryContextRelease},
                            {"cuCtxPushCurrent_v2", api.contextPush},
                            {"cuCtxPopCurrent_v2", api.contextPop},
                            {"cuModuleLoadDataEx", api.moduleLoad},
                            {"cuModuleUnload", api.moduleUnload},
                            {"cuModuleGetFunction", api.moduleGetFunction},
                            {"cuFuncSetAttribute", api.functionSetAttribute},
                            {"cuTensorMapEncodeTiled", api.tensorMapEncode},
                            {"cuMemGetInfo_v2", api.memoryInfo},
                            {"cuMemAlloc_v2", api.memoryAllocate},
                            {"cuMemFree_v2", api.memoryFree},
                            {"cuMemcpyHtoDAsync_v2", api.copyToGpu},
                            {"cuMemcpyDtoHAsync_v2", api.copyToHost},
                            {"cuMemcpyDtoDAsync_v2", api.copyOnGpu},
                            {"cuMemsetD8Async", api.fill},
                            {"cuStreamCreate", api.streamCreate},
                            {"cuStreamSynchronize", api.streamSynchronize},
                            {"cuStreamDestroy_v2", api.streamDestroy},
                            {"cuLaunchKernel", api.launch},
                            {"cuEventCreate", api.eventCreate},
                            {"cuEventRecord", api.eventRecord},
                            {"cuEventElapsedTime", api.eventElapsed},
                            {"cuEventDestroy_v2", api.eventDestroy}};
  for (const Symbol &symbol : symbols) {
    void *found = dlsym(library, symbol.name);
    if (!found)
      return fail(DMX_STATUS_UNSUPPORTED, "'", file, "' has no function ", symbol.name,
                  ": it is no driver of NVIDIA's, or one that is older than CUDA 12.0");
    std::memcpy(symbol.to, static_cast<const void *>(&found), sizeof found);
  }
  if (DriverCode code = api.init(0))
    return fail(DMX_STATUS_UNSUPPORTED, code == driver::NoDevice ? "the driver finds no GPU"
                                                                 : cat("the driver does not start: ", explain(code)));
  return {};
}

int Driver::version() const {
  int version = 0;
  return api.driverGetVersion(&version) ? 0 : version;
}

Result<const Driver *> Driver::open(const std::string &file) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Driver>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  auto known = opened.find(file);
  if (known != opened.end())
    return known->second.get();
  auto made = std::make_unique<Driver>();
  if (Status status = made->load(file); !status)
    return status.takeError();
  return opened.emplace(file, std::move(made)).first->second.get();
}

std::string Driver::explain(DriverCode code) const {
  if (const DriverError *known = findDriverError(code))
    return cat(known->text, " (", known->name, ", ", code, ")",
               known->endsContext ? "; this process cannot use the GPU any more" : "");
  const char *name = nullptr, *text = nullptr;
  if (!api.getErrorName || api.getErrorName(code, &name) || !name)
    name = "a code that it has no name for";
  if (!api.getErrorString || api.getErrorString(code, &text) || !text)
    text = "the driver reports an error that this runtime does not know";
  return cat(text, " (", name, ", ", code, ")");
}

Error Driver::failure(DriverCode code, std::string_view what) const {
  return fail(code == driver::OutOfMemory ? DMX_STATUS_OUT_OF_MEMORY : DMX_STATUS_UNSUPPORTED, "cannot ", what, ": ",
              explain(code));
}

} // namespace dmxrt::cuda
