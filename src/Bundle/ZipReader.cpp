//===- ZipReader.cpp - the archive of a bundle ----------------------------===//
#include "ZipReader.h"

#include "EntryName.h"
#include "Zip.h"
#include "dmxc/Bundle/Signature.h"

#include <set>

namespace dmxc::bundle {

namespace {

using zip::View;

Error damaged(const std::string &what) {
  return modelError("the archive is not a bundle or is damaged: " + what +
                    "; copy it again or compile the model again");
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

Result<Directory> findDirectory(const View &file, std::string &comment) {
  constexpr uint64_t commentSize = zip::commentPrefix.size() + 64;
  constexpr uint64_t tail = zip::endSize + commentSize;
  if (file.size() < tail)
    return damaged("it has only " + std::to_string(file.size()) + " bytes");
  uint64_t end = file.size() - tail;
  if (file.u32(end) != zip::endSignature || file.u16(end + 20) != commentSize)
    return damaged("there is no end record where the file ends");
  comment = file.text(end + zip::endSize, commentSize);
  Directory dir{file.u32(end + 16), file.u32(end + 12), file.u16(end + 10)};
  if (file.u32(end + 4) != 0 || file.u16(end + 8) != dir.count)
    return damaged("the end record speaks of several disks");
  uint64_t limit = end, locator = end - zip::locator64Size;
  bool sentinels = dir.count == UINT16_MAX || dir.size == UINT32_MAX || dir.offset == UINT32_MAX;
  if (end >= zip::locator64Size && file.u32(locator) == zip::locator64Signature) {
    if (locator < zip::end64Size)
      return damaged("there is no room for the ZIP64 end record");
    limit = locator - zip::end64Size;
    Directory wide{file.u64(limit + 48), file.u64(limit + 40), file.u64(limit + 32)};
    bool exact = file.u32(locator + 4) == 0 && file.u64(locator + 8) == limit && file.u32(locator + 16) == 1 &&
                 file.u32(limit) == zip::end64Signature && file.u64(limit + 4) == zip::end64Size - 12 &&
                 file.u16(limit + 12) == (3 << 8 | zip::version45) && file.u16(limit + 14) == zip::version45 &&
                 file.u64(limit + 16) == 0 && file.u64(limit + 24) == wide.count &&
                 (dir.count == UINT16_MAX || dir.count == wide.count) &&
                 (dir.size == UINT32_MAX || dir.size == wide.size) &&
                 (dir.offset == UINT32_MAX || dir.offset == wide.offset);
    if (!exact)
      return damaged("the ZIP64 end record is wrong");
    dir = wide;
  } else if (sentinels) {
    return damaged("the ZIP64 end record is missing");
  }
  if (dir.offset > limit || dir.size != limit - dir.offset || dir.count > dir.size / zip::centralSize)
    return damaged("the central directory has impossible bounds");
  return dir;
}

struct Numbers {
  uint64_t size, packed, offset;
};

bool allZero(const View &file, uint64_t at, uint64_t count) {
  for (std::byte b : file.slice(at, count))
    if (b != std::byte{})
      return false;
  return true;
}

/// The caller has checked that the area lies in the file.
bool readExtra(const View &file, uint64_t at, uint64_t length, bool local, Numbers &n) {
  bool wide = false, padding = false;
  for (uint64_t end = at + length; at < end;) {
    uint64_t size = file.u16(at + 2), body = at + 4;
    if (end - at < 4 || end - body < size)
      return false;
    if (file.u16(at) == zip::zip64Extra && !wide) {
      wide = true;
      uint64_t used = 0;
      for (uint64_t *number : {&n.size, &n.packed, &n.offset})
        if (*number == UINT32_MAX && used + 8 <= size) {
          *number = file.u64(body + used);
          used += 8;
        }
      if (used != size)
        return false;
    } else if (file.u16(at) == zip::paddingExtra && local && !padding) {
      padding = true;
      if (!allZero(file, body, size))
        return false;
    } else {
      return false;
    }
    at = body + size;
  }
  return wide || (n.size != UINT32_MAX && n.packed != UINT32_MAX && n.offset != UINT32_MAX);
}

/// Version, flags, method, time and date; the CRC may be anything.
bool fixedFields(const View &file, uint64_t at) {
  uint16_t needed = file.u16(at);
  return (needed == zip::version45 || needed == 20 || needed == 10) && file.u32(at + 2) == 0 && file.u16(at + 6) == 0 &&
         file.u16(at + 8) == zip::dosEpoch;
}

Result<uint64_t> readLocal(const View &file, uint64_t at, uint64_t limit, const BundleEntry &entry, uint64_t size,
                           uint16_t needed) {
  std::string where = "entry '" + entry.name + "': ";
  if (!file.has(at, zip::localSize) || at + zip::localSize > limit || file.u32(at) != zip::localSignature)
    return damaged(where + "no local header");
  uint64_t nameSize = file.u16(at + 26), extraSize = file.u16(at + 28);
  uint64_t data = at + zip::localSize + nameSize + extraSize;
  if (data > limit)
    return damaged(where + "its local header leaves the archive");
  Numbers n{file.u32(at + 22), file.u32(at + 18), 0};
  if (!fixedFields(file, at + 4) || file.u16(at + 4) != needed || file.u32(at + 14) != entry.crc ||
      file.text(at + zip::localSize, nameSize) != entry.name ||
      !readExtra(file, at + zip::localSize + nameSize, extraSize, true, n) || n.size != size || n.packed != size)
    return damaged(where + "its local header is wrong");
  if (size > limit - data)
    return damaged(where + "its data leaves the archive");
  if (data % entryAlignment(entry.name))
    return damaged(where + "its data is not aligned to " + std::to_string(entryAlignment(entry.name)) + " bytes");
  return data;
}

} // namespace

Result<ZipContents> readZip(std::span<const std::byte> bytes) {
  View file(bytes);
  ZipContents contents;
  auto dir = findDirectory(file, contents.comment);
  if (!dir)
    return dir.takeError();
  std::set<std::string> names;
  uint64_t at = dir->offset, end = at + dir->size, expected = 0;
  for (uint64_t i = 0; i < dir->count; ++i) {
    if (end - at < zip::centralSize || file.u32(at) != zip::centralSignature)
      return damaged("a central record is missing");
    uint64_t nameSize = file.u16(at + 28), extraSize = file.u16(at + 30);
    if (end - at - zip::centralSize < nameSize + extraSize)
      return damaged("a central record leaves the directory");
    BundleEntry entry{file.text(at + zip::centralSize, nameSize), {}, 0, file.u32(at + 16)};
    Numbers n{file.u32(at + 24), file.u32(at + 20), file.u32(at + 42)};
    bool isSignature = entry.name == signatureName;
    if (isSignature && i + 1 != dir->count)
      return damaged("the signature is not the last entry");
    if (entry.name != "manifest.json" && !isSignature && !entryNameProblem(entry.name).empty())
      return damaged("entry " + std::to_string(i) + ": " + entryNameProblem(entry.name));
    if (file.u16(at + 4) != (3 << 8 | zip::version45) || !fixedFields(file, at + 6) || file.u32(at + 32) != 0 ||
        file.u16(at + 36) != 0 || file.u32(at + 38) != 0x81A40000u ||
        !readExtra(file, at + zip::centralSize + nameSize, extraSize, false, n) || n.packed != n.size ||
        n.offset != expected)
      return damaged("the central record of entry '" + entry.name + "' is wrong");
    auto data = readLocal(file, n.offset, dir->offset, entry, n.size, file.u16(at + 6));
    if (!data)
      return data.takeError();
    entry.offset = *data;
    entry.bytes = file.slice(*data, n.size);
    expected = *data + n.size;
    if (!names.insert(entry.name).second)
      return damaged("two entries are named '" + entry.name + "'");
    at += zip::centralSize + nameSize + extraSize;
    if (isSignature) {
      contents.signature = std::move(entry);
      continue;
    }
    contents.entries.push_back(std::move(entry));
    contents.entriesEnd = expected;
    contents.records = file.slice(dir->offset, at - dir->offset);
  }
  if (at != end || expected != dir->offset)
    return damaged("there are bytes between its parts");
  return contents;
}

} // namespace dmxc::bundle
