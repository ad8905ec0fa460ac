//===- OutputFile.h - output that is complete or not there ------*- C++ -*-===//
//
// A file or folder gets its name when it is complete: readers never see half of it, and a failed, interrupted or
// killed program leaves nothing behind. Where the file system has files without a name (O_TMPFILE), output has none
// until then. Elsewhere, and for folders, it has a short name of its own beside the destination (so that destinations
// may have the longest names there are), which is removed by a failure or a signal, and after a kill by the next
// program that writes there: a lock that dies with its owner tells whether it is still being written.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc {

/// An open file descriptor, closed with its owner.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(Descriptor &&other) noexcept : fd(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept;
  ~Descriptor();
  int get() const { return fd; }
  explicit operator bool() const { return fd >= 0; }
  int release();

private:
  int fd;
};

/// A name inside an open folder that removeTemporariesFromSignal removes while this lives, with all that is in it where
/// it is a folder. `folder` must stay open as long.
class TemporaryName {
public:
  TemporaryName(int folder, std::string name);
  ~TemporaryName() { release(); }
  TemporaryName(const TemporaryName &) = delete;
  TemporaryName &operator=(const TemporaryName &) = delete;
  /// The name is no longer a temporary.
  void release();

private:
  struct Node *node;
};

/// Bytes on their way to an open file, through a buffer. Errors are ErrorKind::IO, name the file and say, when the
/// disk is full, how much room was needed and is left.
class ByteFile {
public:
  /// `path` is for errors. A stream is written where it stands; any other file from its start on.
  ByteFile(Descriptor file, std::string path, bool isStream);
  virtual ~ByteFile() = default;

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Overwrites bytes that were written before.
  Status writeAt(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t position() const { return written + buffer.size(); }
  /// Writes what is left and closes; `durable`: waits until the bytes are on the disk.
  Status close(bool durable);

protected:
  Status flush();
  Status finishBytes(bool durable);
  Error failure(int reason) const;

  Descriptor file;
  std::string path;

private:
  Status writeRaw(const std::byte *data, size_t size, uint64_t offset);

  std::vector<std::byte> buffer;
  uint64_t written = 0;
  bool isStream;
};

/// What output is for.
enum class Durability {
  Process, ///< survives the end of this program
  Disk     ///< survives a loss of power too: file and folder are synchronised with the disk
};

/// A file that appears under its name, in place of what was there, by `commit`. A symbolic link stays, what it points
/// to is replaced. A device or pipe of that name is written directly.
class OutputFile : public ByteFile {
public:
  static Result<std::unique_ptr<OutputFile>> create(const std::string &path);
  /// Removes what is not committed.
  ~OutputFile() override;
  /// Gives the file these permissions, whatever the umask says; a device or pipe keeps its own.
  Status setMode(unsigned mode);
  /// Where this process can read what was written so far, before it has its name; not for a device or pipe.
  Result<std::string> readablePath();
  Status commit(Durability durability);

private:
  OutputFile(Descriptor file, std::string path, Descriptor folder, std::string name);
  Status link();

  Descriptor folder;                        // where the file will be; none when it is written directly
  std::string name;                         // its last part
  std::unique_ptr<TemporaryName> temporary; // none for a file without a name
  std::string temporaryName;
};

/// The same for a folder of files.
class OutputFolder {
public:
  static Result<std::unique_ptr<OutputFolder>> create(const std::string &path);
  /// Removes what is not committed.
  ~OutputFolder();
  /// A file inside; folders in `name` are made. It is complete when it was closed.
  Result<std::unique_ptr<ByteFile>> add(const std::string &name);
  /// Where the files are until then.
  std::string readablePath() const;
  Status commit(Durability durability);

private:
  OutputFolder(std::string path, Descriptor parent, std::string name);
  Status makeFolder(const std::string &name);
  Status synchronise();
  Status takeName();
  Error failure(const char *what, int reason) const;

  std::string path;
  Descriptor parent, root;
  std::string name, temporaryName;
  std::vector<std::string> folders;                        // inside, outer ones first
  std::vector<std::unique_ptr<TemporaryName>> temporaries; // the root first
  bool committed = false;
};

/// All of a file at once.
Status writeFile(const std::string &path, std::string_view content, Durability durability = Durability::Process);

/// Removes the temporaries of all output of this process. Async-signal-safe.
void removeTemporariesFromSignal();

/// Lets SIGINT, SIGTERM and SIGHUP remove temporaries before the process dies of them, and makes a file that
/// exceeds its limit (SIGXFSZ) and a pipe without a reader (SIGPIPE) errors of the write. A signal that is ignored
/// (nohup) stays ignored.
void installInterruptCleanup();

} // namespace dmxc
