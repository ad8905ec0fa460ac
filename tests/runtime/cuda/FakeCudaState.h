//===- FakeCudaState.h - what the driver of tests has -----------*- C++ -*-===//
//
// Shared by FakeCuda.cpp (devices, contexts, memory, streams, events) and FakeCudaLaunch.cpp (modules, maps, launches).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "FakeCuda.h"
#include "runtime/Error.h"

#include <cstddef>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>

namespace dmxtest {

inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidContext = 201, kInvalidPtx = 218,
                     kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kFault = 700, kOutOfResources = 701;

inline std::mutex mutex;
inline std::map<uint64_t, std::pair<std::unique_ptr<std::byte[]>, uint64_t>> memory; // by the address
inline int sticky = 0;                                                               // what a launch left
inline bool started = false;                                                         // cuInit
inline thread_local int pushed = 0;
/// An event's time; 0: it was not recorded. Done: a wait has seen it.
struct Event {
  int time = 0;
  bool done = false;
};
inline std::set<void *> modules, streams, events; // that are there

/// Notes a breach of the rules; the code that the driver has for it.
template <typename... Parts> int breach(int code, const char *name, const Parts &...parts) {
  FakeCuda &fake = *dmxFakeCuda();
  if (!fake.failures.empty()) // what follows from a failure that a test wants
    return code;
  std::string text = dmxrt::cat(name, ": ", parts...);
  std::fprintf(stderr, "FakeCuda: %s\n", text.c_str());
  fake.breaches.push_back(std::move(text));
  return code;
}

/// Notes a call; what it fails with.
template <typename... Parts> int note(const char *name, const Parts &...parts) {
  FakeCuda &fake = *dmxFakeCuda();
  std::string text = name;
  ((text += dmxrt::cat(" ", parts)), ...);
  fake.calls.push_back(text);
  auto found = fake.failures.find(name);
  if (found != fake.failures.end() && found->second.after-- <= 0)
    return found->second.code;
  return started || std::string_view(name) == "cuInit" ? 0 : breach(kNotInitialized, name, "cuInit was not called");
}
/// The same of a call that needs a context.
template <typename... Parts> int noteIn(const char *name, const Parts &...parts) {
  int code = note(name, parts...);
  return code ? code : pushed > 0 ? 0 : breach(kInvalidContext, name, "no context is current");
}
/// Whether a call that gives something back does not: it does where a test wants others to fail, so that the next test
/// finds nothing.
inline bool keeps(int code) { return code && dmxFakeCuda()->failures.empty(); }
/// Whether a handle is of something that is there.
inline int checkHandle(const std::set<void *> &there, void *handle, const char *name, const char *what) {
  return there.count(handle) ? 0 : breach(kInvalidHandle, name, "the ", what, " is none, or was destroyed");
}
inline int checkStream(void *stream, const char *name) { // null: the process's default one
  return stream ? checkHandle(streams, stream, name, "stream") : 0;
}

inline bool isOnGpu(uint64_t address, uint64_t bytes) {
  auto after = memory.upper_bound(address);
  if (after == memory.begin())
    return false;
  const auto &[begin, block] = *std::prev(after);
  return address - begin <= block.second && bytes <= block.second - (address - begin);
}

} // namespace dmxtest

#define FAKE(name, ...) extern "C" [[gnu::visibility("default")]] int name(__VA_ARGS__)
#define LOCKED std::lock_guard<std::mutex> lock(mutex)
