//===- OutputFile.cpp - output that is complete or not there --------------===//
#include "OutputPaths.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dmxc {

//===----------------------------------------------------------------------===//
// ByteFile
//===----------------------------------------------------------------------===//

static constexpr size_t bufferSize = 1 << 20;

ByteFile::ByteFile(Descriptor file, std::string path, bool isStream)
    : file(std::move(file)), path(std::move(path)), isStream(isStream) {
  buffer.reserve(bufferSize);
}

Error ByteFile::failure(int reason) const {
  Error error = cannotWrite(path, reason);
  struct statvfs info;
  if (reason == ENOSPC && fstatvfs(file.get(), &info) == 0)
    error.message += " (" + std::to_string(written) + " bytes were written, " +
                     std::to_string(uint64_t(info.f_bavail) * info.f_frsize) +
                     " bytes are free); free some space or choose another place";
  else if (reason == EFBIG)
    error.message += " (" + std::to_string(written) + " bytes were written); raise the limit of file sizes (ulimit -f)";
  return error;
}

Status ByteFile::writeRaw(const std::byte *data, size_t size, uint64_t offset) {
  while (size) {
    ssize_t done =
        isStream ? ::write(file.get(), data, size) : pwrite(file.get(), data, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return failure(done < 0 ? errno : ENOSPC);
    data += done;
    size -= static_cast<size_t>(done);
    offset += static_cast<uint64_t>(done);
  }
  return Status::ok();
}

Status ByteFile::flush() {
  Status done = writeRaw(buffer.data(), buffer.size(), written);
  if (done) {
    written += buffer.size();
    buffer.clear();
  }
  return done;
}

Status ByteFile::write(std::span<const std::byte> bytes) {
  if (buffer.size() + bytes.size() > bufferSize)
    if (Status done = flush(); !done)
      return done;
  if (bytes.size() < bufferSize) {
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    return Status::ok();
  }
  Status done = writeRaw(bytes.data(), bytes.size(), written);
  if (done)
    written += bytes.size();
  return done;
}

Status ByteFile::writeAt(uint64_t offset, std::span<const std::byte> bytes) {
  if (Status done = flush(); !done)
    return done;
  return writeRaw(bytes.data(), bytes.size(), offset);
}

/// Everything but closing: a network file system may report a full disk only here.
Status ByteFile::finishBytes(bool durable) {
  if (Status done = flush(); !done)
    return done;
  if (durable) {
    int reason = synchronise(file.get());
    return reason ? Status(failure(reason)) : Status::ok();
  }
  int copy = fcntl(file.get(), F_DUPFD_CLOEXEC, 0);
  return copy < 0 || ::close(copy) != 0 ? Status(failure(errno)) : Status::ok();
}

Status ByteFile::close(bool durable) {
  if (Status done = finishBytes(durable); !done)
    return done;
  return ::close(file.release()) == 0 ? Status::ok() : Status(failure(errno));
}

//===----------------------------------------------------------------------===//
// OutputFile
//===----------------------------------------------------------------------===//

OutputFile::OutputFile(Descriptor file, std::string path, Descriptor folder, std::string name)
    : ByteFile(std::move(file), std::move(path), /*isStream=*/!folder), folder(std::move(folder)),
      name(std::move(name)) {}

/// The same file under its descriptor, as another open or a link can name it.
static std::string descriptorPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string &given) {
  std::string path = followLinks(given);
  auto folder = openFolderOf(path);
  if (!folder)
    return folder.takeError();
  std::string name = splitPath(path).second;
  struct stat info;
  bool exists = fstatat(folder->get(), name.c_str(), &info, 0) == 0;
  if (!exists && errno != ENOENT)
    return cannotWrite(path, errno);
  if (name.empty() || (exists && S_ISDIR(info.st_mode)))
    return cannotWrite(path, EISDIR);
  // Devices and pipes cannot be renamed over, nor what stands in for an open file (/dev/stdout). Shared memory can.
  const bool standsIn = path.starts_with("/proc/") || (path.starts_with("/dev/") && !path.starts_with("/dev/shm/"));
  if (exists && (!S_ISREG(info.st_mode) || standsIn)) {
    Descriptor file(openat(folder->get(), name.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!file)
      return cannotWrite(path, errno);
    return std::unique_ptr<OutputFile>(new OutputFile(std::move(file), path, Descriptor(), name));
  }
  sweep(folder->get());
  Descriptor file(openat(folder->get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644));
  if (file && access(descriptorPath(file.get()).c_str(), F_OK) == 0) {
    flock(file.get(), LOCK_EX | LOCK_NB);
    return std::unique_ptr<OutputFile>(new OutputFile(std::move(file), path, std::move(*folder), name));
  }
  for (unsigned attempt = 0;; ++attempt) {
    std::string temporaryName = newTemporaryName();
    auto temporary = std::make_unique<TemporaryName>(folder->get(), temporaryName);
    file = Descriptor(openat(folder->get(), temporaryName.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file && (errno != EEXIST || attempt == 100))
      return cannotWrite(path, errno);
    if (!file)
      continue;
    if (!lockTemporary(folder->get(), temporaryName, file.get())) {
      unlinkat(folder->get(), temporaryName.c_str(), 0);
      if (attempt < 100)
        continue;
      return cannotWrite(path, EAGAIN);
    }
    std::unique_ptr<OutputFile> output(new OutputFile(std::move(file), path, std::move(*folder), name));
    output->temporary = std::move(temporary);
    output->temporaryName = std::move(temporaryName);
    return output;
  }
}

OutputFile::~OutputFile() {
  if (temporary)
    unlinkat(folder.get(), temporaryName.c_str(), 0);
}

Status OutputFile::setMode(unsigned mode) {
  return !folder || fchmod(file.get(), static_cast<mode_t>(mode)) == 0 ? Status::ok() : Status(failure(errno));
}

Result<std::string> OutputFile::readablePath() {
  if (Status done = flush(); !done)
    return done.takeError();
  return temporary ? descriptorPath(folder.get()) + "/" + temporaryName : descriptorPath(file.get());
}

/// Gives the complete file its name.
Status OutputFile::link() {
  if (!temporary) {
    std::string self = descriptorPath(file.get());
    if (linkat(AT_FDCWD, self.c_str(), folder.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      return Status::ok();
    if (errno != EEXIST)
      return cannotWrite(path, errno);
    // Only a rename replaces, and it needs a name.
    temporaryName = newTemporaryName();
    temporary = std::make_unique<TemporaryName>(folder.get(), temporaryName);
    if (linkat(AT_FDCWD, self.c_str(), folder.get(), temporaryName.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return cannotWrite(path, errno);
  }
  if (renameat(folder.get(), temporaryName.c_str(), folder.get(), name.c_str()) != 0)
    return cannotWrite(path, errno);
  temporary.reset();
  return Status::ok();
}

Status OutputFile::commit(Durability durability) {
  bool direct = !folder;
  bool durable = durability == Durability::Disk && !direct;
  if (Status done = finishBytes(durable); !done)
    return done;
  if (!direct)
    if (Status done = link(); !done)
      return done;
  int reason = durable ? synchronise(folder.get()) : 0;
  if (reason)
    return ioError("'" + path +
                   "' is written, but its folder cannot be synchronised with the disk: " + std::strerror(reason));
  return Status::ok();
}

Status writeFile(const std::string &path, std::string_view content, Durability durability) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (Status done = (*file)->write(content); !done)
    return done;
  return (*file)->commit(durability);
}

//===----------------------------------------------------------------------===//
// OutputFolder
//===----------------------------------------------------------------------===//

OutputFolder::OutputFolder(std::string path, Descriptor parent, std::string name)
    : path(std::move(path)), parent(std::move(parent)), name(std::move(name)) {}

Result<std::unique_ptr<OutputFolder>> OutputFolder::create(const std::string &given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  path = followLinks(path);
  auto parent = openFolderOf(path);
  if (!parent)
    return parent.takeError();
  sweep(parent->get());
  std::unique_ptr<OutputFolder> output(new OutputFolder(path, std::move(*parent), splitPath(path).second));
  struct stat info;
  if (fstatat(output->parent.get(), output->name.c_str(), &info, 0) != 0 && errno != ENOENT)
    return cannotWrite(path, errno);
  for (unsigned attempt = 0;; ++attempt) {
    output->temporaryName = newTemporaryName();
    auto temporary = std::make_unique<TemporaryName>(output->parent.get(), output->temporaryName);
    if (mkdirat(output->parent.get(), output->temporaryName.c_str(), 0755) != 0) {
      if (errno == EEXIST && attempt < 100)
        continue;
      output->committed = true; // there is nothing to remove
      return output->failure("cannot make the folder", errno);
    }
    output->root =
        Descriptor(openat(output->parent.get(), output->temporaryName.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int reason = output->root ? EAGAIN : errno;
    if (output->root && lockTemporary(output->parent.get(), output->temporaryName, output->root.get())) {
      output->temporaries.push_back(std::move(temporary));
      return output;
    }
    removeTree(output->parent.get(), output->temporaryName.c_str());
    if (attempt == 100 || (!output->root && reason != ENOENT))
      return output->failure("cannot open the folder", reason);
  }
}

Error OutputFolder::failure(const char *what, int reason) const {
  return ioError("cannot write '" + path + "': " + what + ": " + std::strerror(reason));
}

OutputFolder::~OutputFolder() {
  if (!committed && !temporaryName.empty())
    removeTree(parent.get(), temporaryName.c_str());
}

Status OutputFolder::makeFolder(const std::string &inner) {
  if (mkdirat(root.get(), inner.c_str(), 0755) == 0) {
    temporaries.push_back(std::make_unique<TemporaryName>(parent.get(), temporaryName + "/" + inner));
    folders.push_back(inner);
  } else if (errno != EEXIST) {
    return failure(("cannot make the folder '" + inner + "'").c_str(), errno);
  }
  return Status::ok();
}

Result<std::unique_ptr<ByteFile>> OutputFolder::add(const std::string &inner) {
  for (size_t slash = inner.find('/'); slash != std::string::npos; slash = inner.find('/', slash + 1))
    if (Status made = makeFolder(inner.substr(0, slash)); !made)
      return made.takeError();
  // By way of the parent, so that after the names are exchanged it is the old folder's files that a signal removes.
  temporaries.push_back(std::make_unique<TemporaryName>(parent.get(), temporaryName + "/" + inner));
  Descriptor file(openat(root.get(), inner.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file)
    return failure(("cannot make the file '" + inner + "'").c_str(), errno);
  return std::make_unique<ByteFile>(std::move(file), path + "/" + inner, /*isStream=*/false);
}

Status OutputFolder::synchronise() {
  for (const std::string &inner : folders) {
    Descriptor fd(openat(root.get(), inner.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int reason = fd ? dmxc::synchronise(fd.get()) : errno;
    if (reason)
      return failure("cannot synchronise it with the disk", reason);
  }
  int reason = dmxc::synchronise(root.get());
  return reason ? Status(failure("cannot synchronise it with the disk", reason)) : Status::ok();
}

/// Exchanges the names, which keeps a complete folder at `path` at every moment, or renames where there is no other.
Status OutputFolder::takeName() {
  int in = parent.get();
  const char *from = temporaryName.c_str(), *to = name.c_str();
  if (renameat2(in, from, in, to, RENAME_EXCHANGE) == 0)
    return Status::ok();
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) { // a file system that cannot
    std::string aside = newTemporaryName();
    if (renameat(in, to, in, aside.c_str()) == 0) {
      if (renameat(in, from, in, to) == 0) {
        removeTree(in, aside.c_str());
        return Status::ok();
      }
      Error error = failure("cannot rename it", errno);
      renameat(in, aside.c_str(), in, to);
      return error;
    }
  }
  if (errno != ENOENT || renameat(in, from, in, to) != 0)
    return failure("cannot rename it", errno);
  return Status::ok();
}

std::string OutputFolder::readablePath() const { return descriptorPath(root.get()); }

Status OutputFolder::commit(Durability durability) {
  if (durability == Durability::Disk)
    if (Status done = synchronise(); !done)
      return done;
  if (Status done = takeName(); !done)
    return done;
  for (auto &temporary : temporaries)
    temporary->release();
  committed = true;
  removeTree(parent.get(), temporaryName.c_str()); // what was there before
  int reason = durability == Durability::Disk ? dmxc::synchronise(parent.get()) : 0;
  if (reason)
    return ioError("'" + path +
                   "' is written, but its folder cannot be synchronised with the disk: " + std::strerror(reason));
  return Status::ok();
}

} // namespace dmxc
