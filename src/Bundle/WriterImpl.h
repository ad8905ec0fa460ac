//===- WriterImpl.h - the two shapes of a bundle being written --*- C++ -*-===//
//
// Private to the Bundle room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Writer.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Sha256.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace dmxc::bundle {

Result<std::unique_ptr<Writer>> createZipWriter(const std::string &path);
Result<std::unique_ptr<Writer>> createDirectoryWriter(const std::string &path);

/// attachSignature for a bundle that is a file.
Status attachToZip(const std::string &path, const std::string &text);

/// Jobs that a thread does one after another. Where none can be started, they are done at once.
class Lane {
public:
  Lane();
  ~Lane() { end(); }
  void add(std::function<void()> job);
  /// Waits for all jobs; throws what the first of them threw that did, and does none behind it.
  void finish();

private:
  void run();
  void end();

  std::mutex mutex;
  std::condition_variable more;
  std::deque<std::function<void()>> jobs;
  bool ended = false;
  std::exception_ptr thrown;
  std::thread thread; // last: it reads the others
};

/// Passes an entry's bytes to a file while hashing and counting them. Those of large entries are hashed and written by
/// two threads, beside who produces them.
class HashingSink : public ByteSink {
public:
  HashingSink(ByteFile &file, std::string entry, uint64_t expected);
  ~HashingSink() override;
  Status write(std::span<const std::byte> bytes) override;
  using ByteSink::write;
  Status take(const Tensor &tensor) override;
  /// Waits until all bytes are hashed and written, and checks that as many came as were promised.
  Status finish();
  /// After finish().
  std::string sha256() { return hash.finishHex(); }
  uint32_t crc32() const { return crc; }

private:
  class Piece;
  struct Lanes;

  Status admit(size_t size);
  Status pass(const Tensor &tensor);
  Status passGathered();
  void hashPiece(std::span<const std::byte> bytes);
  Status writePiece(std::span<const std::byte> bytes);

  ByteFile &file;
  std::string entry;
  uint64_t expected;
  uint64_t count = 0;
  uint32_t crc = 0;
  Sha256 hash;
  std::shared_ptr<std::vector<std::byte>> gathered; ///< small writes, on their way to be a piece
  std::unique_ptr<Lanes> lanes;                     ///< null for a small entry; last, as its threads use the others
};

/// Running CRC-32 of ZIP (polynomial 0xEDB88320).
uint32_t updateCrc32(uint32_t crc, std::span<const std::byte> bytes);

inline std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

} // namespace dmxc::bundle
