//===- WriterImpl.h - the two shapes of a bundle being written --*- C++ -*-===//
//
// Private to the Bundle room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Writer.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Sha256.h"

namespace dmxc::bundle {

Result<std::unique_ptr<Writer>> createZipWriter(const std::string &path);
Result<std::unique_ptr<Writer>> createDirectoryWriter(const std::string &path);

/// attachSignature for a bundle that is a file.
Status attachToZip(const std::string &path, const std::string &text);

/// Passes an entry's bytes to a file while hashing and counting them.
class HashingSink : public ByteSink {
public:
  HashingSink(ByteFile &file, std::string entry, uint64_t expected)
      : file(file), entry(std::move(entry)), expected(expected) {}
  Status write(std::span<const std::byte> bytes) override;
  using ByteSink::write;
  /// Checks that the promised number of bytes came.
  Status finish();
  std::string sha256() { return hash.finishHex(); }
  uint32_t crc32() const { return crc; }

private:
  ByteFile &file;
  std::string entry;
  uint64_t expected;
  uint64_t count = 0;
  uint32_t crc = 0;
  Sha256 hash;
};

/// Running CRC-32 of ZIP (polynomial 0xEDB88320).
uint32_t updateCrc32(uint32_t crc, std::span<const std::byte> bytes);

inline std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

} // namespace dmxc::bundle
