//===- DeviceLibrary.cpp - opens devices beside libdmxrt.so ---------------===//

#include "DeviceLibrary.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

namespace dmxrt {
namespace {

/// The folder of the file that holds this code, with a slash at its end; empty when it is not known. As the system
/// knows it: the loader knows the name that it was asked for, which may be relative to where the process has been
/// since.
std::string ownFolder() {
  std::FILE *maps = std::fopen("/proc/self/maps", "re");
  if (!maps)
    return {};
  const auto here = reinterpret_cast<uintptr_t>(&ownFolder);
  std::string folder;
  char *line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, maps) > 0) { // 7f0a1c000000-7f0a1c021000 r-xp 00000000 08:01 131 /usr/lib/libdmxrt.so.0
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line, "%lx-%lx", &begin, &end) != 2 || here < begin || here >= end)
      continue;
    std::string_view text = line;
    size_t first = std::min(text.find('/'), text.size());
    text.remove_prefix(first);
    folder = text.substr(0, text.rfind('/') + 1);
    break;
  }
  std::free(line);
  std::fclose(maps);
  return folder;
}

/// Names of targets that may be part of a file's name.
bool isName(std::string_view target) {
  return !target.empty() && std::all_of(target.begin(), target.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// `why`, after the sentence that all refusals start with.
template <typename... Parts> Error noDevice(std::string_view target, const Parts &...why) {
  return fail(DMX_STATUS_UNSUPPORTED, "the bundle runs on target '", target,
              "', which this runtime has no device for: ", why...);
}

Result<const DeviceKind *> load(std::string_view target, const std::string &path) {
  if (access(path.c_str(), F_OK) != 0)
    return noDevice(target, "there is no '", path, "'; install it there, or compile the model for cpu");
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return noDevice(target, "'", path, "' cannot be loaded (", why ? why : "no reason given",
                    "); install the one that was built with this libdmxrt");
  }
  const std::string symbol = cat("dmxrt_device_", target);
  const auto *entry = static_cast<const DeviceLibrary *>(dlsym(library, symbol.c_str()));
  if (entry && entry->abi == DMXRT_DEVICE_ABI)
    return &entry->kind();
  Error error = entry ? noDevice(target, "'", path, "' has ABI number ", entry->abi, ", this libdmxrt has ",
                                 DMXRT_DEVICE_ABI, "; install both from one build")
                      : noDevice(target, "'", path, "' has no symbol '", symbol,
                                 "'; install the one that was built with this libdmxrt");
  dlclose(library);
  return error;
}

} // namespace

Result<const DeviceKind *> openDevice(std::string_view target) {
  static std::mutex mutex;
  static std::vector<const DeviceKind *> opened;
  std::lock_guard<std::mutex> lock(mutex);
  for (const DeviceKind *kind : opened)
    if (kind->target == target)
      return kind;
  if (!isName(target))
    return noDevice(target, "that is no target's name");
  const std::string folder = ownFolder();
  if (folder.empty())
    return noDevice(target,
                    "its library lies beside libdmxrt.so, and where that lies is not known without /proc/self/maps; "
                    "mount /proc");
  auto kind = load(target, cat(folder, "libdmxrt-", target, ".so"));
  if (kind)
    opened.push_back(*kind);
  return kind;
}

} // namespace dmxrt
