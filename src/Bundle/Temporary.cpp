//===- Temporary.cpp - output files with a temporary name -----------------===//
#include "Temporary.h"

#include "dmxc/Bundle/Writer.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dmxc::bundle {

/// A signal may arrive in any thread at any time, so the list is lock-free,
/// newest first, and its nodes are never freed.
struct Node {
  std::string path;
  std::atomic<bool> active{true};
  Node *next = nullptr;
};

static std::atomic<Node *> newest{nullptr};

TemporaryName::TemporaryName(std::string path) : node(new Node) {
  node->path = std::move(path);
  node->next = newest.load();
  while (!newest.compare_exchange_weak(node->next, node)) {
  }
}

void TemporaryName::release() { node->active.store(false); }

void removeTemporariesFromSignal() {
  for (Node *node = newest.load(); node; node = node->next)
    if (node->active.load() && unlink(node->path.c_str()) != 0)
      rmdir(node->path.c_str());
}

static void onInterrupt(int signal) {
  removeTemporariesFromSignal();
  _exit(128 + signal);
}

void installInterruptCleanup() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old;
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
      continue;
    struct sigaction action = {};
    action.sa_handler = onInterrupt;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

std::string temporaryPath(const std::string &path, unsigned attempt) {
  return path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(attempt);
}

//===----------------------------------------------------------------------===//
// OutputFile
//===----------------------------------------------------------------------===//

static constexpr size_t bufferSize = 1 << 20;

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string &path) {
  std::unique_ptr<OutputFile> file(new OutputFile(path));
  file->fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file->fd < 0)
    return ioError("cannot write '" + path + "': " + std::strerror(errno));
  file->temporary = std::make_unique<TemporaryName>(path);
  file->buffer.reserve(bufferSize);
  return file;
}

OutputFile::~OutputFile() {
  if (fd >= 0)
    ::close(fd);
  if (!kept && temporary)
    unlink(path.c_str());
}

Error OutputFile::failure(int reason) const {
  std::string text = "cannot write '" + path + "': " + std::strerror(reason);
  struct statvfs info;
  if (reason == ENOSPC && statvfs(path.c_str(), &info) == 0)
    text += " (" + std::to_string(written) + " bytes were written, " +
            std::to_string(uint64_t(info.f_bavail) * info.f_frsize) +
            " bytes are free); free some space or choose another place";
  return ioError(text);
}

Status OutputFile::writeRaw(const std::byte *data, size_t size, uint64_t offset) {
  while (size) {
    ssize_t done = pwrite(fd, data, size, static_cast<off_t>(offset));
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

Status OutputFile::flush() {
  Status done = writeRaw(buffer.data(), buffer.size(), written);
  if (done) {
    written += buffer.size();
    buffer.clear();
  }
  return done;
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  if (buffer.size() + bytes.size() <= bufferSize) {
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    return Status::ok();
  }
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

Status OutputFile::writeAt(uint64_t offset, std::span<const std::byte> bytes) {
  if (Status done = flush(); !done)
    return done;
  return writeRaw(bytes.data(), bytes.size(), offset);
}

Status OutputFile::close() {
  if (Status done = flush(); !done)
    return done;
  int closed = ::close(fd);
  fd = -1;
  // A network file system may report a full disk only here.
  if (closed != 0)
    return failure(errno);
  return Status::ok();
}

void OutputFile::keep() {
  kept = true;
  temporary->release();
}

} // namespace dmxc::bundle
