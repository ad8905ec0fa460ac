//===- OutputPaths.cpp - names and folders of output that is made ---------===//
#include "OutputPaths.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dmxc {

//===----------------------------------------------------------------------===//
// Descriptors and names
//===----------------------------------------------------------------------===//

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept {
  std::swap(fd, other.fd);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd >= 0)
    ::close(fd);
}

int Descriptor::release() {
  int given = fd;
  fd = -1;
  return given;
}

/// A signal may arrive in any thread at any time, so the list is lock-free, newest first, and its nodes are never
/// freed.
struct Node {
  int folder;
  std::string name;
  std::atomic<bool> active{true};
  Node *next = nullptr;
};

static std::atomic<Node *> newest{nullptr};

TemporaryName::TemporaryName(int folder, std::string name) : node(new Node{folder, std::move(name)}) {
  node->next = newest.load();
  while (!newest.compare_exchange_weak(node->next, node)) {
  }
}

void TemporaryName::release() { node->active.store(false); }

/// As removeTree, by system calls alone: opendir takes memory, whose lock the thread that was interrupted may hold.
static void removeFromSignal(int folder, const char *name, int depth = 0) {
  constexpr int deepest = 8, attempts = 100; // again where another thread makes files meanwhile
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
    return;
  for (int attempt = 0; depth < deepest && attempt < attempts; ++attempt) {
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || (errno != ENOTEMPTY && errno != EEXIST))
      return;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
      return;
    alignas(dirent64) char entries[2048];
    for (long size; (size = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0;)
      for (long at = 0; at < size; at += reinterpret_cast<dirent64 *>(entries + at)->d_reclen)
        if (std::string_view inner = reinterpret_cast<dirent64 *>(entries + at)->d_name; inner != "." && inner != "..")
          removeFromSignal(fd, inner.data(), depth + 1);
    ::close(fd);
  }
}

void removeTemporariesFromSignal() {
  for (Node *node = newest.load(); node; node = node->next)
    if (node->active.load())
      removeFromSignal(node->folder, node->name.c_str());
}

static void onInterrupt(int signal) {
  removeTemporariesFromSignal();
  // Dying of the signal tells the shell, and whoever waits, that it was one. SA_RESETHAND brought the default back
  // and SA_NODEFER lets it in.
  raise(signal);
}

void installInterruptCleanup() {
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN); // a reader of messages that went away is no reason to stop
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old;
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler == SIG_IGN)
      continue;
    struct sigaction action = {};
    action.sa_handler = onInterrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

//===----------------------------------------------------------------------===//
// Folders and what killed programs left in them
//===----------------------------------------------------------------------===//

static constexpr std::string_view temporaryPrefix = ".dmxc-tmp-";

std::string newTemporaryName() {
  static std::atomic<unsigned> count{0};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  char text[80];
  std::snprintf(text, sizeof text, "%ld-%lx%08lx-%u", static_cast<long>(getpid()), static_cast<long>(now.tv_sec),
                now.tv_nsec, count++);
  return std::string(temporaryPrefix) + text;
}

Error cannotWrite(const std::string &path, int reason) {
  return ioError("cannot write '" + path + "': " + std::strerror(reason));
}

std::pair<std::string, std::string> splitPath(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return {".", path};
  return {slash ? path.substr(0, slash) : "/", path.substr(slash + 1)};
}

std::string followLinks(std::string path) {
  for (int hops = 0; hops < 40 && !path.starts_with("/dev/") && !path.starts_with("/proc/"); ++hops) {
    char target[PATH_MAX];
    ssize_t size = readlink(path.c_str(), target, sizeof target);
    if (size <= 0 || size == static_cast<ssize_t>(sizeof target))
      break;
    std::string_view next(target, static_cast<size_t>(size));
    path = next.starts_with('/') ? std::string(next) : splitPath(path).first + "/" + std::string(next);
  }
  return path;
}

Result<Descriptor> openFolderOf(const std::string &path) {
  std::string folder = splitPath(path).first;
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == EACCES) // one that may be written but not listed
    fd = Descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd)
    return ioError("cannot write '" + path + "': folder '" + folder + "': " + std::strerror(errno));
  return fd;
}

/// The open folder's entries, or null; the descriptor is closed with them.
static DIR *entriesOf(int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *entries = fd >= 0 ? fdopendir(fd) : nullptr;
  if (!entries && fd >= 0)
    ::close(fd);
  return entries;
}

void removeTree(int folder, const char *name) {
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
    return;
  for (int attempt = 0; attempt < 2 && unlinkat(folder, name, AT_REMOVEDIR) != 0; ++attempt) {
    DIR *entries = entriesOf(folder, name);
    if (!entries)
      continue;
    while (dirent *entry = readdir(entries))
      if (std::string_view inner = entry->d_name; inner != "." && inner != "..")
        removeTree(dirfd(entries), entry->d_name);
    closedir(entries);
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0)
      return;
  }
}

static bool isStillNamed(int folder, const char *name, int fd) {
  struct stat named, open;
  return fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 &&
         named.st_ino == open.st_ino && named.st_dev == open.st_dev;
}

bool lockTemporary(int folder, const std::string &name, int fd) {
  return (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && isStillNamed(folder, name.c_str(), fd);
}

void sweep(int folder) {
  DIR *entries = entriesOf(folder, ".");
  if (!entries)
    return;
  while (dirent *entry = readdir(entries)) {
    if (!std::string_view(entry->d_name).starts_with(temporaryPrefix))
      continue;
    Descriptor fd(openat(folder, entry->d_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && isStillNamed(folder, entry->d_name, fd.get()))
      removeTree(folder, entry->d_name);
  }
  closedir(entries);
}

int synchronise(int fd) {
  while (fsync(fd) != 0) {
    if (errno == EINVAL || errno == ENOSYS || errno == EROFS || errno == EBADF)
      return 0;
    if (errno != EINTR)
      return errno;
  }
  return 0;
}

} // namespace dmxc
