//===- Writer.h - writes a bundle -------------------------------*- C++ -*-===//
//
// A bundle gets its name when it is complete and on the disk: readers never see
// half a bundle, and a failed or interrupted compile leaves nothing behind
// (Support/OutputFile.h).
//
//   auto writer = Writer::create("m.bundle", BundleFormat::Zip);
//   (*writer)->addEntry("graph.json", toJson(graph));
//   (*writer)->addStream("weights/model.safetensors", weights.size(), ...);
//   (*writer)->setManifest(manifest);
//   Status done = (*writer)->finish();
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Manifest.h"
#include "dmxc/Support/Tensor.h"

#include <functional>
#include <memory>
#include <span>
#include <string>

namespace dmxc::bundle {

/// Where a producer puts the bytes of an entry, in order.
class ByteSink {
public:
  virtual ~ByteSink() = default;
  /// Appends bytes; they are not needed after the call. Fails when the disk is
  /// full or the producer writes more than it promised.
  virtual Status write(std::span<const std::byte> bytes) = 0;
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Appends a tensor's bytes; they may be read after the call, too, and do not change until the tensor's last handle
  /// is gone. What fails then is said by a later call.
  virtual Status take(const Tensor &tensor) { return write(tensor.raw()); }
  /// Appends `count` zero bytes.
  Status writeZeros(uint64_t count);
};

/// Writes all bytes of one entry; called once, by Writer::finish.
using Producer = std::function<Status(ByteSink &)>;

enum class BundleFormat { Zip, Directory };

/// One bundle being written. Not thread-safe. Memory use does not depend on
/// the size of streamed entries. While a producer makes the next bytes of a
/// large entry, threads hash and write the last ones.
class Writer {
public:
  /// Starts the file (or directory), so that a path that cannot be
  /// written is reported before any work is done. Errors are ErrorKind::IO.
  /// An existing regular file (or directory that is a bundle) at `path` is
  /// replaced by finish(); anything else there is refused.
  static Result<std::unique_ptr<Writer>> create(const std::string &path, BundleFormat format);
  /// Removes the temporary unless finish() succeeded.
  virtual ~Writer();
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  /// Adds an entry held in memory. Names are those of FORMAT.md: "graph.json",
  /// or below weights/, code/, debug/ or tests/. A name that is malformed or
  /// used twice is ErrorKind::Internal.
  Status addEntry(const std::string &name, std::string bytes);
  /// Adds an entry of exactly `size` bytes that `produce` writes during
  /// finish(); whatever it refers to must live until then.
  Status addStream(const std::string &name, uint64_t size, Producer produce);
  /// Everything but `entries`, which finish() fills. Must be called once.
  void setManifest(Manifest manifest) { contents = std::move(manifest); }

  /// What is to be asked of the complete bundle before it gets its name: `check` gets a path that it can be read at
  /// meanwhile. Its error is finish()'s.
  void setCheck(std::function<Status(const std::string &path)> check) { inspection = std::move(check); }

  /// Writes all entries in FORMAT.md's order, then the manifest, and gives the bundle its name.
  /// Errors: ErrorKind::IO for the file system (with the bytes needed and
  /// free when the disk is full), and whatever a producer returned. On failure
  /// nothing is left behind and `path` is as it was.
  Status finish();

  /// After finish(): the size of the file, or of all files of the directory.
  uint64_t bytesWritten() const { return total; }
  /// After finish(): the manifest as written.
  const Manifest &manifest() const { return contents; }

protected:
  struct Item {
    std::string name;
    uint64_t size = 0;
    Producer produce;
  };
  explicit Writer(std::string path) : path(std::move(path)) {}
  /// Writes the manifest (its text padded by nothing: its length does not
  /// depend on the checksums) and all items, fills in the checksums.
  virtual Status writeAll(const std::vector<Item> &items) = 0;
  /// All bytes are in the file system; where a reader of this process finds them.
  virtual Result<std::string> readablePath() = 0;
  virtual Status commit() = 0;
  /// The manifest's text with the table of entries as known so far.
  std::string manifestText() const { return toJson(contents); }

  std::string path;
  Manifest contents;
  uint64_t total = 0;

private:
  std::vector<Item> items;
  std::function<Status(const std::string &)> inspection;
  bool finished = false;
};

} // namespace dmxc::bundle
