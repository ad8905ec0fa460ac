//===- Mapping.cpp - bytes of a file, mapped or copied --------------------===//

#include "Mapping.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dmxrt {
namespace {

/// Text of errno without the locale's static buffer of strerror.
std::string errnoText(int code) {
  char buffer[128];
  return strerror_r(code, buffer, sizeof buffer); // GNU variant: returns the text
}

} // namespace

/// Less than this is not worth system calls for pages of its own.
constexpr uint64_t kSmall = 128 << 10;

/// Private memory for `size` > 0 bytes. Pages are all there at once: they will be written in a moment.
Result<std::byte *> Mapping::reserve(uint64_t size, std::string_view what) {
  isHeap = size < kSmall;
  void *memory = isHeap
                     ? std::aligned_alloc(64, padded(size))
                     : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (!memory || memory == MAP_FAILED)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "there is no memory for a copy of '", what, "' of ", size, " bytes");
  base = memory;
  length = static_cast<size_t>(size);
  view = {static_cast<const std::byte *>(base), length};
  return static_cast<std::byte *>(base);
}

/// Pages of its own become read-only; where that fails the bytes are as good.
void Mapping::protect() {
  if (!isHeap)
    mprotect(base, length, PROT_READ);
}

Status Mapping::readFrom(int fd, uint64_t offset, const std::string &what) {
  for (size_t done = 0; done < length;) {
    ssize_t count = pread(fd, static_cast<std::byte *>(base) + done, length - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fail(DMX_STATUS_IO, "cannot read '", what, "': ", errnoText(errno));
    if (count == 0)
      return fail(DMX_STATUS_IO, "cannot read '", what, "': it became shorter while it was read");
    done += static_cast<size_t>(count);
  }
  return {};
}

Result<std::shared_ptr<const Mapping>> Mapping::copyOf(std::span<const std::byte> bytes, std::string_view what) {
  return copyOf(std::span(&bytes, 1), what);
}

Result<std::shared_ptr<const Mapping>> Mapping::copyOf(std::span<const std::span<const std::byte>> pieces,
                                                       std::string_view what) {
  std::shared_ptr<Mapping> copy(new Mapping);
  uint64_t size = 0;
  for (std::span<const std::byte> piece : pieces)
    size = padded(size) + piece.size();
  if (size > 0) {
    Result<std::byte *> memory = copy->reserve(size, what);
    if (!memory)
      return memory.takeError();
    std::byte *to = *memory;
    for (std::span<const std::byte> piece : pieces) {
      std::copy(piece.begin(), piece.end(), to);
      to += padded(piece.size());
    }
    copy->protect();
  }
  return std::shared_ptr<const Mapping>(std::move(copy));
}

Result<std::shared_ptr<const Mapping>> Mapping::openDescriptor(int fd, uint64_t offset, uint64_t size, Load load,
                                                               const std::string &what) {
  struct stat info;
  if (fstat(fd, &info) != 0)
    return fail(DMX_STATUS_IO, "cannot read '", what, "': ", errnoText(errno));
  if (!S_ISREG(info.st_mode))
    return fail(DMX_STATUS_IO, "cannot read '", what, "': it is not a regular file");
  uint64_t fileSize = static_cast<uint64_t>(info.st_size);
  if (offset > fileSize || size > fileSize - offset)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "'", what, "' has ", fileSize, " bytes, but ", size, " bytes at offset ",
                offset, " were asked for");
  if (size == 0)
    size = fileSize - offset;
  std::shared_ptr<Mapping> mapping(new Mapping);
  if (size == 0) // mmap refuses empty ranges
    return std::shared_ptr<const Mapping>(std::move(mapping));
  if (load == Load::Copy) {
    if (Result<std::byte *> memory = mapping->reserve(size, what); !memory)
      return memory.takeError();
    if (Status status = mapping->readFrom(fd, offset, what); !status)
      return status.takeError();
    mapping->protect();
    return std::shared_ptr<const Mapping>(std::move(mapping));
  }
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t start = offset / page * page;
  size_t length = static_cast<size_t>(offset - start + size);
  void *base = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(start));
  if (base == MAP_FAILED)
    return fail(DMX_STATUS_IO, "cannot map '", what, "': ", errnoText(errno));
  mapping->base = base;
  mapping->length = length;
  mapping->view = {static_cast<const std::byte *>(base) + (offset - start), static_cast<size_t>(size)};
  return std::shared_ptr<const Mapping>(std::move(mapping));
}

Result<std::shared_ptr<const Mapping>> Mapping::openFile(const std::string &path, Load load) {
  // O_NONBLOCK: a pipe of that name must be refused below, not waited for.
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0)
        close(fd);
    }
  } file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; // closed where memory is short, too
  if (file.fd < 0)
    return fail(DMX_STATUS_IO, "cannot open '", path, "': ", errnoText(errno));
  return openDescriptor(file.fd, 0, 0, load, path);
}

Mapping::~Mapping() {
  if (isHeap)
    std::free(base);
  else if (base)
    munmap(base, length);
}

bool isDirectory(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool fileExists(const std::string &path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

} // namespace dmxrt
