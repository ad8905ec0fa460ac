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

/// A library's device, which it gives by that name. An error says why there is none, and what to do.
Result<const DeviceKind *> load(const std::string &path, const std::string &symbol) {
  auto none = [&](const auto &...why) { return fail(DMX_STATUS_UNSUPPORTED, why...); };
  if (access(path.c_str(), F_OK) != 0)
    return none("there is no '", path, "'; install it there");
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return none("'", path, "' cannot be loaded (", why ? why : "no reason given",
                "); install the one that was built with this libdmxrt");
  }
  const auto *entry = static_cast<const DeviceLibrary *>(dlsym(library, symbol.c_str()));
  if (entry && entry->abi == DMXRT_DEVICE_ABI)
    return &entry->kind();
  Error error =
      entry ? none("'", path, "' has ABI number ", entry->abi, ", this libdmxrt has ", DMXRT_DEVICE_ABI,
                   "; install both from one build")
            : none("'", path, "' has no symbol '", symbol, "'; install the one that was built with this libdmxrt");
  dlclose(library);
  return error;
}

/// Libraries that were loaded, by their files' names.
Result<const DeviceKind *> loadBeside(const std::string &file, const std::string &symbol) {
  static std::mutex mutex;
  static std::vector<std::pair<std::string, const DeviceKind *>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[name, kind] : opened)
    if (name == file)
      return kind;
  const std::string folder = ownFolder();
  if (folder.empty())
    return fail(DMX_STATUS_UNSUPPORTED, "its library lies beside libdmxrt.so, and where that lies is not known without "
                                        "/proc/self/maps; mount /proc");
  auto kind = load(folder + file, symbol);
  if (kind)
    opened.emplace_back(file, *kind);
  return kind;
}

} // namespace

Result<const DeviceKind *> openDevice(std::string_view target) {
  const std::string none = cat("the bundle runs on target '", target, "', which this runtime has no device for");
  if (!isName(target))
    return fail(DMX_STATUS_UNSUPPORTED, none, ": that is no target's name");
  auto kind = loadBeside(cat("libdmxrt-", target, ".so"), cat("dmxrt_device_", target));
  if (kind)
    return kind;
  Error error = within(none, kind.takeError());
  if (error.message.ends_with("install it there"))
    error.message += ", or compile the model for cpu";
  return error;
}

Result<const DeviceKind *> openDevicePart(std::string_view device, std::string_view part) {
  return loadBeside(cat("libdmxrt-", device, "-", part, ".so"), cat("dmxrt_device_", device, "_", part));
}

} // namespace dmxrt
