//===- CodeCache.cpp - what compiles made, kept for the next ones -----------===//
#include "dmxc/Support/CodeCache.h"

#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Sha256.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace fs = std::filesystem;

namespace dmxc {

namespace {

/// Says what a folder is, in a file of its own; another number is another form of files or names.
constexpr const char *kMark = "dmxc-cache";
constexpr std::string_view kForm = "code of dmxc, form 1\n";
/// Before the bytes of each file, and how much of it there is: the form, the file's name and the bytes' digest.
constexpr std::string_view kMagic = "dmxcode1";
constexpr size_t kDigits = 64, kHeader = kMagic.size() + 2 * kDigits;

std::string digestOf(std::string_view bytes) { return Sha256::hexOf(std::as_bytes(std::span(bytes))); }

std::optional<std::string> contentOf(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return file.bad() ? std::nullopt : std::optional(std::move(all));
}

/// A folder that is no cache is left alone: trimming one removes files.
Status checkFolder(const std::string &folder) {
  const std::string shown = "'" + folder + "' of --cache ";
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    return ioError(shown + "is a file, not a folder; code is compiled without a cache");
  fs::create_directories(folder, error);
  if (error)
    return ioError(shown + "cannot be made: " + error.message() + "; code is compiled without a cache");
  const fs::path mark = fs::path(folder) / kMark;
  if (std::optional<std::string> form = contentOf(mark))
    return *form == kForm
               ? Status::ok()
               : Status(ioError(shown + "is a cache of another version of dmxc; code is compiled without it, "
                                        "name another folder or remove it"));
  if (!fs::is_empty(folder, error) || error)
    return ioError(shown + "has other files in it, and is no cache of dmxc's; code is compiled without a cache");
  Status written = writeFile(mark.string(), kForm);
  return written ? Status::ok()
                 : Status(ioError(shown + "cannot be written (" + written.error().message +
                                  "); code is compiled without a cache"));
}

std::atomic<CodeCache *> used{nullptr};

} // namespace

CodeCache *CodeCache::current() { return used; }
void CodeCache::use(CodeCache *cache) { used = cache; }

Result<std::unique_ptr<CodeCache>> CodeCache::open(const std::string &folder, uint64_t most) {
  if (most == 0)
    return ioError("--cache-limit 0 leaves no room in '" + folder + "' of --cache; code is compiled without a cache");
  if (Status good = checkFolder(folder); !good)
    return good.takeError();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return ioError("'" + folder + "' of --cache cannot be written: " + std::strerror(errno) +
                   "; code is compiled without a cache");
  return std::unique_ptr<CodeCache>(new CodeCache(folder, most));
}

/// Two digits are a folder, so that none has very many files.
std::string CodeCache::pathOf(const std::string &name) const {
  return folder + "/" + name.substr(0, 2) + "/" + name.substr(2);
}

std::optional<std::string> CodeCache::find(const std::string &name, Counted counted) {
  const std::string path = pathOf(name);
  std::optional<std::string> all = contentOf(path);
  if (!all)
    return std::nullopt;
  std::string_view view = *all;
  bool whole = view.size() >= kHeader && view.starts_with(kMagic) && view.substr(kMagic.size(), kDigits) == name &&
               view.substr(kMagic.size() + kDigits, kDigits) == digestOf(view.substr(kHeader));
  std::error_code error;
  if (!whole) {
    ++damaged;
    fs::remove(path, error);
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), error); // it was used: trim asks
  if (counted == Counted::Yes)
    ++found;
  return all->substr(kHeader);
}

void CodeCache::put(const std::string &name, std::string_view bytes, Counted counted) {
  if (counted == Counted::Yes)
    ++made;
  if (!writes)
    return;
  const std::string path = pathOf(name);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  std::string all(kMagic);
  all += name;
  all += digestOf(bytes);
  all += bytes;
  if (Status s = error ? Status(ioError(path + ": " + error.message())) : writeFile(path, all); !s)
    note(s.error().message);
}

void CodeCache::note(const std::string &why) {
  writes = false;
  std::lock_guard lock(mutex);
  if (failure.empty())
    failure = "what was compiled is not all kept in '" + folder + "' of --cache: " + why;
}

std::string CodeCache::problem() {
  std::lock_guard lock(mutex);
  return failure;
}

void CodeCache::trim() {
  struct Kept {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Kept> all;
  uint64_t total = 0;
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!at->is_regular_file(ignored) || at->path().filename() == kMark)
      continue;
    Kept kept{at->last_write_time(ignored), at->file_size(ignored), at->path()};
    if (ignored) // another process removed it
      continue;
    total += kept.bytes;
    all.push_back(std::move(kept));
  }
  if (total <= most)
    return;
  std::sort(all.begin(), all.end(), [](const Kept &a, const Kept &b) { return a.used < b.used; });
  for (const Kept &kept : all) {
    if (total <= most)
      return;
    fs::remove(kept.path, ignored);
    total -= kept.bytes;
  }
}

} // namespace dmxc
