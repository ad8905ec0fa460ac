//===- Zip.cpp - stored ZIP64 archives ------------------------------------===//

#include "Zip.h"

#include <cstring>
#include <optional>
#include <string>

namespace dmxrt {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50, kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50, kLocatorSignature = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr uint64_t kCommentSize = 84; // "dmx-manifest-sha256:" and 64 digits
constexpr uint16_t kZip64Field = 0x0001, kPaddingField = 0x4D44;
constexpr uint32_t kMax32 = 0xFFFFFFFF;
constexpr uint16_t kMax16 = 0xFFFF;

/// Little-endian reads inside bounds that the caller has checked.
class Bytes {
public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes(bytes) {}
  uint64_t size() const { return bytes.size(); }
  template <typename T> T read(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  uint16_t u16(uint64_t offset) const { return read<uint16_t>(offset); }
  uint32_t u32(uint64_t offset) const { return read<uint32_t>(offset); }
  uint64_t u64(uint64_t offset) const { return read<uint64_t>(offset); }
  bool has(uint64_t offset, uint64_t length) const { return offset <= size() && length <= size() - offset; }
  std::span<const std::byte> slice(uint64_t offset, uint64_t length) const { return bytes.subspan(offset, length); }
  std::string_view text(uint64_t offset, uint64_t length) const {
    return {reinterpret_cast<const char *>(bytes.data()) + offset, static_cast<size_t>(length)};
  }
  bool allZero(uint64_t offset, uint64_t length) const {
    for (std::byte b : slice(offset, length))
      if (b != std::byte{})
        return false;
    return true;
  }

private:
  std::span<const std::byte> bytes;
};

/// Where the central directory lies and how many records it has.
struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
  std::string_view comment;
};

Error damaged(std::string_view what) {
  return badBundle("the archive is damaged or not a bundle: ", what, "; copy or compile it again");
}

/// Replaces the sentinels of `directory` by the ZIP64 end record's values.
/// `end` is the offset of the plain end record.
Status readEnd64(const Bytes &zip, uint64_t end, Directory &directory) {
  if (end < kEnd64Size + kLocatorSize)
    return damaged("there is no room for the ZIP64 end record");
  uint64_t locator = end - kLocatorSize, record = locator - kEnd64Size;
  if (zip.u32(locator) != kLocatorSignature || zip.u32(locator + 4) != 0 || zip.u64(locator + 8) != record ||
      zip.u32(locator + 16) != 1)
    return damaged("the ZIP64 locator is wrong");
  if (zip.u32(record) != kEnd64Signature || zip.u64(record + 4) != kEnd64Size - 12 || zip.u16(record + 12) != 0x032D ||
      zip.u16(record + 14) != 45 || zip.u64(record + 16) != 0 || zip.u64(record + 24) != zip.u64(record + 32))
    return damaged("the ZIP64 end record is wrong");
  Directory wide = directory;
  wide.count = zip.u64(record + 32);
  wide.size = zip.u64(record + 40);
  wide.offset = zip.u64(record + 48);
  // A plain field is either the sentinel or the same value.
  if ((directory.count != kMax16 && directory.count != wide.count) ||
      (directory.size != kMax32 && directory.size != wide.size) ||
      (directory.offset != kMax32 && directory.offset != wide.offset))
    return damaged("the end record and the ZIP64 end record disagree");
  if (wide.offset > record || wide.size != record - wide.offset)
    return damaged("the central directory's bounds are wrong");
  directory = wide;
  return {};
}

Result<Directory> findDirectory(const Bytes &zip) {
  if (zip.size() < kEndSize + kCommentSize)
    return damaged(cat("it has only ", zip.size(), " bytes"));
  uint64_t end = zip.size() - kEndSize - kCommentSize;
  if (zip.u32(end) != kEndSignature || zip.u16(end + 20) != kCommentSize)
    return damaged("there is no end record where the file ends (truncated, or bytes were added)");
  if (zip.u32(end + 4) != 0 || zip.u16(end + 8) != zip.u16(end + 10))
    return damaged("the end record speaks of several disks");
  Directory directory{zip.u32(end + 16), zip.u32(end + 12), zip.u16(end + 10), zip.text(end + kEndSize, kCommentSize)};
  bool wide = end >= kLocatorSize && zip.u32(end - kLocatorSize) == kLocatorSignature;
  if (wide || directory.count == kMax16 || directory.size == kMax32 || directory.offset == kMax32) {
    if (Status status = readEnd64(zip, end, directory); !status)
      return status.takeError();
  } else if (directory.offset > end || directory.size != end - directory.offset) {
    return damaged("the central directory's bounds are wrong");
  }
  if (directory.count > directory.size / kCentralSize)
    return damaged("the central directory is too small for its record count");
  return directory;
}

/// Sizes and offset of one record, with 0xFFFFFFFF standing for "in the extra field".
struct Numbers {
  uint64_t size, packed, offset;
};

/// Reads an extra area: an optional ZIP64 field for the sentinels in `numbers`
/// and, when allowed, a padding field of zeros. Anything else is an error.
Status readExtra(const Bytes &zip, uint64_t at, uint64_t length, bool paddingAllowed, Numbers &numbers) {
  bool seenWide = false, seenPadding = false;
  for (uint64_t end = at + length; at < end;) {
    // Every number is read once: the bytes may be a file that somebody writes at this moment.
    uint16_t id = end - at < 4 ? 0 : zip.u16(at);
    uint64_t size = end - at < 4 ? kMax32 : zip.u16(at + 2), body = at + 4;
    if (end - at < 4 || end - at - 4 < size)
      return damaged("an extra field leaves its header");
    if (id == kZip64Field && !seenWide) {
      seenWide = true;
      uint64_t used = 0;
      for (uint64_t *number : {&numbers.size, &numbers.packed, &numbers.offset}) {
        if (*number != kMax32)
          continue;
        if (size - used < 8)
          return damaged("a ZIP64 field is too short");
        *number = zip.u64(body + used);
        used += 8;
      }
      if (used != size || !size)
        return damaged("a ZIP64 field has the wrong length");
    } else if (id == kPaddingField && paddingAllowed && !seenPadding) {
      seenPadding = true;
      if (!zip.allZero(body, size))
        return damaged("padding bytes are not zero");
    } else {
      return damaged("an extra field is unknown");
    }
    at = body + size;
  }
  if (!seenWide && (numbers.size == kMax32 || numbers.packed == kMax32 || numbers.offset == kMax32))
    return damaged("a ZIP64 field is missing");
  return {};
}

/// The fields local and central records share, from version needed to the name.
Status readCommon(const Bytes &zip, uint64_t at) {
  uint16_t needed = zip.u16(at);
  if (needed != 45 && needed != 20 && needed != 10)
    return damaged("an entry needs an unexpected ZIP version");
  if (zip.u16(at + 2) != 0)
    return damaged("an entry has flags (encrypted or streamed)");
  if (zip.u16(at + 4) != 0)
    return damaged("an entry is compressed; entries must be stored");
  if (zip.u16(at + 6) != 0 || zip.u16(at + 8) != 0x0021)
    return damaged("an entry has a timestamp");
  return {};
}

/// Reads the local header at `at`, compares it with the central record and
/// returns the offset where the data starts.
Result<uint64_t> readLocal(const Bytes &zip, uint64_t at, uint64_t limit, uint64_t central, const ZipEntry &entry,
                           uint64_t size) {
  if (at > limit || limit - at < kLocalSize || zip.u32(at) != kLocalSignature)
    return damaged(cat("entry '", entry.name, "' has no local header"));
  uint64_t nameSize = zip.u16(at + 26), extraSize = zip.u16(at + 28);
  if (limit - at - kLocalSize < nameSize + extraSize)
    return damaged(cat("the local header of '", entry.name, "' leaves the archive"));
  if (zip.text(at + kLocalSize, nameSize) != entry.name)
    return damaged(cat("entry '", entry.name, "' has another name in its local header"));
  if (Status status = readCommon(zip, at + 4); !status)
    return status.takeError();
  // Version needed through CRC must be the same bytes in both records.
  if (std::memcmp(zip.slice(at + 4, 14).data(), zip.slice(central + 6, 14).data(), 14) != 0)
    return damaged(cat("the two headers of '", entry.name, "' disagree"));
  Numbers numbers{zip.u32(at + 22), zip.u32(at + 18), 0};
  if (Status status = readExtra(zip, at + kLocalSize + nameSize, extraSize, true, numbers); !status)
    return status.takeError();
  if (numbers.size != size || numbers.packed != size)
    return damaged(cat("the two headers of '", entry.name, "' disagree about its size"));
  return at + kLocalSize + nameSize + extraSize;
}

} // namespace

Result<ZipContents> readStoredZip(std::span<const std::byte> bytes) {
  Bytes zip(bytes);
  auto directory = findDirectory(zip);
  if (!directory)
    return directory.takeError();
  ZipContents contents;
  contents.comment = directory->comment;
  uint64_t at = directory->offset, end = at + directory->size, expected = 0;
  for (uint64_t i = 0; i < directory->count; ++i) {
    if (end - at < kCentralSize || zip.u32(at) != kCentralSignature)
      return damaged("a central record is missing");
    uint64_t nameSize = zip.u16(at + 28), extraSize = zip.u16(at + 30);
    if (end - at - kCentralSize < nameSize + extraSize)
      return damaged("a central record leaves the directory");
    if (zip.u16(at + 4) != 0x032D || zip.u32(at + 32) != 0 || zip.u16(at + 36) != 0 || zip.u32(at + 38) != 0x81A40000)
      return damaged("a central record has unexpected attributes");
    ZipEntry entry{zip.text(at + kCentralSize, nameSize), {}, zip.u32(at + 16)};
    if (Status status = readCommon(zip, at + 6); !status)
      return status.takeError();
    Numbers numbers{zip.u32(at + 24), zip.u32(at + 20), zip.u32(at + 42)};
    if (Status status = readExtra(zip, at + kCentralSize + nameSize, extraSize, false, numbers); !status)
      return status.takeError();
    if (numbers.size != numbers.packed || numbers.offset != expected)
      return damaged(cat("entry '", entry.name, "' is not where the entry before it ends"));
    auto data = readLocal(zip, numbers.offset, directory->offset, at, entry, numbers.size);
    if (!data)
      return data.takeError();
    if (numbers.size > directory->offset - *data)
      return damaged(cat("the data of '", entry.name, "' leaves the archive"));
    if (*data % 64)
      return damaged(cat("the data of '", entry.name, "' is not 64-byte aligned"));
    entry.data = zip.slice(*data, numbers.size);
    expected = *data + numbers.size;
    contents.entries.push_back(entry);
    at += kCentralSize + nameSize + extraSize;
  }
  if (at != end || expected != directory->offset)
    return damaged("there are bytes between its parts");
  return contents;
}

} // namespace dmxrt
