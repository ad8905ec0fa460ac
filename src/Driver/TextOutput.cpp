//===- TextOutput.cpp - text files that are never half written ------------===//
#include "TextOutput.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace dmxc::driver {

/// The temporary of the text being written. One at a time is enough: texts are
/// written by the driver's thread alone.
static std::atomic<const char *> temporaryName{nullptr};

void removeTextTemporaryFromSignal() {
  if (const char *name = temporaryName.load())
    unlink(name);
}

static Status failure(const std::string &path) {
  return ioError("cannot write '" + path + "': " + std::strerror(errno));
}

static bool writeAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return false;
    text.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

/// Devices and pipes (/dev/stdout, /dev/null) cannot be renamed over.
static bool isSpecial(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

Status writeText(const std::string &path, std::string_view text) {
  if (path == "-")
    return writeAll(STDOUT_FILENO, text) ? Status::ok() : failure("standard output");
  bool direct = isSpecial(path);
  std::string name = direct ? path : path + ".tmp-" + std::to_string(getpid());
  int fd = ::open(name.c_str(), O_WRONLY | O_CLOEXEC | (direct ? 0 : O_CREAT | O_TRUNC), 0644);
  if (fd < 0)
    return failure(path);
  if (!direct)
    temporaryName = name.c_str();
  bool written = writeAll(fd, text);
  written = ::close(fd) == 0 && written;
  if (written && !direct)
    written = ::rename(name.c_str(), path.c_str()) == 0;
  Status result = written ? Status::ok() : failure(path);
  temporaryName = nullptr;
  if (!written && !direct)
    ::unlink(name.c_str());
  return result;
}

Status makeFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path))
    return ioError("cannot make the folder '" + path + "': " + (error ? error.message() : "something else is there"));
  return Status::ok();
}

static std::string makeQuoted(const std::string &path) {
  std::string text;
  for (char c : path) {
    if (c == ' ' || c == '#')
      text += '\\';
    else if (c == '$')
      text += '$';
    text += c;
  }
  return text;
}

std::string dependencyRule(const std::string &target, const std::vector<std::string> &inputs) {
  std::string text = makeQuoted(target) + ":";
  for (const std::string &input : inputs)
    text += " \\\n  " + makeQuoted(input);
  text += "\n";
  for (const std::string &input : inputs)
    text += "\n" + makeQuoted(input) + ":\n";
  return text;
}

} // namespace dmxc::driver
