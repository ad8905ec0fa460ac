//===- MappedFile.cpp - a read-only file mapping --------------------------===//
#include "dmxc/Support/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dmxc {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string &path) {
  // O_NONBLOCK: a pipe of that name must be refused below, not waited for.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return ioError("cannot open '" + path + "': " + std::strerror(errno));
  struct stat info;
  int failed = fstat(fd, &info) != 0 ? errno : 0;
  if (failed || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return ioError("cannot read '" + path + "': " + (failed ? std::strerror(failed) : "not a regular file"));
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->name = path;
  file->size = static_cast<size_t>(info.st_size);
  if (file->size) {
    void *memory = mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED) {
      int reason = errno;
      ::close(fd);
      return ioError("cannot map '" + path + "': " + std::strerror(reason));
    }
    file->base = static_cast<const std::byte *>(memory);
  }
  ::close(fd);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (base)
    munmap(const_cast<std::byte *>(base), size);
}

} // namespace dmxc
