//===- Streams.cpp - a model from stdin, a bundle to stdout ---------------===//
#include "Streams.h"

#include "dmxc/Support/MappedFile.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace dmxc::driver {

TemporaryFile::TemporaryFile(std::string folder, const std::string &name)
    : folder(std::move(folder)), file(this->folder + "/" + name), interrupted(AT_FDCWD, this->folder) {}

Result<std::unique_ptr<TemporaryFile>> TemporaryFile::create(const std::string &name) {
  const char *given = std::getenv("TMPDIR");
  std::string folder = std::string(given && *given ? given : "/tmp") + "/dmxc-XXXXXX";
  if (!mkdtemp(folder.data()))
    return ioError("cannot make the temporary folder '" + folder + "': " + std::strerror(errno) +
                   "; let TMPDIR name a folder that can be written");
  return std::unique_ptr<TemporaryFile>(new TemporaryFile(std::move(folder), name));
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored; // nothing can be done then
  std::filesystem::remove_all(folder, ignored);
}

/// The path of a regular file that stdin is, from its beginning; "" for a pipe, or where the path is no longer its.
static std::string regularStdin() {
  std::array<char, 4096> path;
  ssize_t size = readlink("/proc/self/fd/0", path.data(), path.size());
  struct stat open, named;
  if (size <= 0 || static_cast<size_t>(size) == path.size() || lseek(STDIN_FILENO, 0, SEEK_CUR) != 0)
    return "";
  std::string text(path.data(), static_cast<size_t>(size));
  bool same = fstat(STDIN_FILENO, &open) == 0 && S_ISREG(open.st_mode) && stat(text.c_str(), &named) == 0 &&
              open.st_dev == named.st_dev && open.st_ino == named.st_ino;
  return same ? text : "";
}

Result<std::string> fileOfStdin(std::unique_ptr<TemporaryFile> &temporary) {
  if (std::string path = regularStdin(); !path.empty())
    return path;
  auto made = TemporaryFile::create("stdin");
  if (!made)
    return made.takeError();
  temporary = std::move(*made);
  Descriptor fd(open(temporary->path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd)
    return ioError("cannot write '" + temporary->path() + "': " + std::strerror(errno));
  ByteFile file(std::move(fd), temporary->path(), /*isStream=*/false);
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR)
      continue;
    if (size < 0)
      return ioError(std::string("cannot read the model from stdin: ") + std::strerror(errno));
    if (size == 0)
      break;
    if (Status done = file.write(std::span(buffer).first(static_cast<size_t>(size))); !done)
      return done.takeError();
  }
  if (Status done = file.close(/*durable=*/false); !done)
    return done.takeError();
  return temporary->path();
}

Status copyToStdout(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  std::span<const std::byte> rest = (*file)->bytes();
  while (!rest.empty()) {
    ssize_t size = write(STDOUT_FILENO, rest.data(), std::min<size_t>(rest.size(), 1 << 20));
    if (size < 0 && errno == EINTR)
      continue;
    if (size <= 0)
      return ioError(std::string("cannot write the bundle to stdout: ") + std::strerror(errno));
    rest = rest.subspan(static_cast<size_t>(size));
  }
  return Status::ok();
}

} // namespace dmxc::driver
