//===- CodeCache.h - what compiles made, kept for the next ones -*- C++ -*-===//
//
// A folder of files that are each named by what they were made of. Several processes may use one at once: a file
// appears when it is complete, and what is read is held against its own digest, so that a file that is cut, swapped
// with another or of another form is removed and made anew. What was used longest ago goes when there is too much.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc {

/// All functions are thread-safe.
class CodeCache {
public:
  /// The folder, which is made where it is not there; it may keep `most` bytes. An error is a sentence for a warning:
  /// the path is no folder of a cache of this form, or nothing could be kept in it.
  static Result<std::unique_ptr<CodeCache>> open(const std::string &folder, uint64_t most);

  /// Whether something is code, which counts() is of, or what else was found out of it.
  enum class Counted { Yes, No };
  /// What was kept under a name (64 hex digits).
  std::optional<std::string> find(const std::string &name, Counted counted = Counted::Yes);
  /// Keeps it, if that can be done.
  void put(const std::string &name, std::string_view bytes, Counted counted = Counted::Yes);
  /// Removes what was used longest ago where there is more than the folder may keep. Call it when all is put.
  void trim();
  /// Why something was not kept; "" where nothing went wrong.
  std::string problem();

  struct Counts {
    uint64_t found = 0, made = 0, damaged = 0;
  };
  Counts counts() const { return {found, made, damaged}; }

  /// The one that this process uses, null where it uses none. As WorkCount's, it changes no byte of what is made, so
  /// that nobody has to be told of it but who sets it and who asks.
  static CodeCache *current();
  static void use(CodeCache *cache);

private:
  CodeCache(std::string folder, uint64_t most) : folder(std::move(folder)), most(most) {}
  std::string pathOf(const std::string &name) const;
  void note(const std::string &why);

  const std::string folder;
  const uint64_t most;
  std::atomic<uint64_t> found{0}, made{0}, damaged{0};
  std::atomic<bool> writes{true}; ///< false after a failure: one is enough to tell
  std::mutex mutex;
  std::string failure;
};

} // namespace dmxc
