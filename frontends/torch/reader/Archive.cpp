//===- Archive.cpp - the records of a PyTorch archive ---------------------===//
#include "Archive.h"

#include "dmxc/Support/ZipFormat.h"

#include "llvm/Support/ConvertUTF.h"

#include <algorithm>
#include <optional>
#include <vector>
#include <zlib.h>

namespace dmxc::torchfe {
namespace {

/// More records than any exported program has.
constexpr uint64_t kMaxRecords = 1 << 20;
constexpr size_t kMaxName = 4096;

Error damaged(const std::string &what) {
  return modelError("not a readable PyTorch archive: " + what + "; save the program again with torch.export.save");
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

/// The end record is the last one whose comment reaches the end of the file.
std::optional<uint64_t> findEnd(const zip::View &file) {
  if (file.size() < zip::endSize)
    return std::nullopt;
  uint64_t last = file.size() - zip::endSize, first = last > UINT16_MAX ? last - UINT16_MAX : 0;
  for (uint64_t at = last + 1; at-- > first;)
    if (file.u32(at) == zip::endSignature && at + zip::endSize + file.u16(at + 20) == file.size())
      return at;
  return std::nullopt;
}

Result<Directory> findDirectory(const zip::View &file) {
  std::optional<uint64_t> end = findEnd(file);
  if (!end)
    return damaged("it has no zip end record (cut off, or no zip file at all)");
  Directory dir{file.u32(*end + 16), file.u32(*end + 12), file.u16(*end + 10)};
  uint64_t limit = *end;
  if (*end >= zip::locator64Size && file.u32(*end - zip::locator64Size) == zip::locator64Signature) {
    uint64_t wide = file.u64(*end - zip::locator64Size + 8);
    if (!file.has(wide, zip::end64Size) || file.u32(wide) != zip::end64Signature)
      return damaged("its ZIP64 end record is missing");
    dir = {file.u64(wide + 48), file.u64(wide + 40), file.u64(wide + 32)};
    limit = wide;
  }
  if (dir.offset > limit || dir.size > limit - dir.offset || dir.count > dir.size / zip::centralSize ||
      dir.count > kMaxRecords)
    return damaged("its central directory has impossible bounds");
  return dir;
}

/// Why a name is refused, "" for a good one.
std::string nameProblem(std::string_view name) {
  if (name.empty() || name.size() > kMaxName)
    return "its name is empty or too long";
  const auto *start = reinterpret_cast<const llvm::UTF8 *>(name.data());
  if (!llvm::isLegalUTF8String(&start, start + name.size()) || name.find('\0') != std::string_view::npos)
    return "its name is not UTF-8";
  if (name.front() == '/' || name.find('\\') != std::string_view::npos || (name.size() > 1 && name[1] == ':'))
    return "its name is an absolute path";
  for (size_t at = 0; at <= name.size();) {
    size_t slash = std::min(name.find('/', at), name.size());
    std::string_view part = name.substr(at, slash - at);
    if (part == ".." || part == "." || (part.empty() && slash != name.size()))
      return "its name leaves the archive";
    at = slash + 1;
  }
  return "";
}

/// Text of a name for a message, even of a hostile one.
std::string shown(std::string_view name) {
  std::string text;
  for (char c : name.substr(0, 200))
    text += c >= ' ' && c < 0x7f ? c : '?';
  return "record '" + text + "': ";
}

struct Central {
  std::string name;
  uint64_t size, packed, offset, next;
  uint32_t crc;
};

/// Takes the 64-bit numbers of the ZIP64 field in the place of those that do not fit 32 bits.
bool readWide(const zip::View &file, uint64_t at, uint64_t length, Central &entry) {
  for (uint64_t end = at + length; end - at >= 4;) {
    uint64_t size = file.u16(at + 2), body = at + 4;
    if (end - body < size)
      return false;
    if (file.u16(at) == zip::zip64Extra) {
      uint64_t used = 0;
      for (uint64_t *number : {&entry.size, &entry.packed, &entry.offset})
        if (*number == UINT32_MAX && used + 8 <= size) {
          *number = file.u64(body + used);
          used += 8;
        }
    }
    at = body + size;
  }
  return true;
}

Result<Central> readCentral(const zip::View &file, uint64_t at, uint64_t end) {
  if (end - at < zip::centralSize || file.u32(at) != zip::centralSignature)
    return damaged("a central record is missing");
  uint64_t nameSize = file.u16(at + 28), extraSize = file.u16(at + 30), commentSize = file.u16(at + 32);
  if (end - at - zip::centralSize < nameSize + extraSize + commentSize)
    return damaged("a central record leaves the directory");
  Central entry{file.text(at + zip::centralSize, nameSize),
                file.u32(at + 24),
                file.u32(at + 20),
                file.u32(at + 42),
                at + zip::centralSize + nameSize + extraSize + commentSize,
                file.u32(at + 16)};
  if (std::string problem = nameProblem(entry.name); !problem.empty())
    return damaged(shown(entry.name) + problem);
  if (file.u16(at + 8) & 1)
    return damaged(shown(entry.name) + "it is encrypted");
  if (file.u16(at + 10) != 0)
    return damaged(shown(entry.name) + "it is compressed (method " + std::to_string(file.u16(at + 10)) +
                   "); torch stores its records as they are");
  if (!readWide(file, at + zip::centralSize + nameSize, extraSize, entry) || entry.size != entry.packed)
    return damaged(shown(entry.name) + "its sizes contradict each other");
  return entry;
}

Result<Record> readData(const zip::View &file, const Central &entry, uint64_t limit) {
  uint64_t at = entry.offset;
  if (!file.has(at, zip::localSize) || file.u32(at) != zip::localSignature)
    return damaged(shown(entry.name) + "it has no local header");
  uint64_t nameSize = file.u16(at + 26), data = at + zip::localSize + nameSize + file.u16(at + 28);
  if (file.text(at + zip::localSize, nameSize) != entry.name)
    return damaged(shown(entry.name) + "its local header has another name");
  if (data > limit || entry.size > limit - data)
    return damaged(shown(entry.name) + "its data leaves the archive");
  Record record{file.slice(data, entry.size), data};
  uint32_t crc = crc32_z(0, reinterpret_cast<const Bytef *>(record.bytes.data()), record.bytes.size());
  if (crc != entry.crc)
    return damaged(shown(entry.name) + "its checksum is wrong (the file is damaged)");
  return record;
}

/// Length of the folder that all names share, with its slash; 0 where they share none.
size_t rootLength(const std::vector<std::pair<std::string, Record>> &records) {
  if (records.empty())
    return 0;
  size_t slash = records.front().first.find('/');
  if (slash == std::string::npos)
    return 0;
  std::string root = records.front().first.substr(0, slash + 1);
  bool shared = std::all_of(records.begin(), records.end(), [&](const auto &r) { return r.first.starts_with(root); });
  return shared ? root.size() : 0;
}

/// Two records that share bytes are an attack on whoever unpacks them.
bool overlap(const std::vector<std::pair<std::string, Record>> &records) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto &[name, record] : records)
    if (!record.bytes.empty())
      ranges.push_back({record.offset, record.offset + record.bytes.size()});
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return true;
  return false;
}

} // namespace

Result<Archive> Archive::read(std::span<const std::byte> bytes, uint64_t offset) {
  zip::View file(bytes);
  Result<Directory> dir = findDirectory(file);
  if (!dir)
    return dir.takeError();
  std::vector<std::pair<std::string, Record>> records;
  uint64_t at = dir->offset, end = at + dir->size;
  for (uint64_t i = 0; i < dir->count; ++i) {
    Result<Central> entry = readCentral(file, at, end);
    if (!entry)
      return entry.takeError();
    at = entry->next;
    if (entry->name.back() == '/' && entry->size == 0)
      continue; // a folder
    Result<Record> record = readData(file, *entry, dir->offset);
    if (!record)
      return record.takeError();
    record->offset += offset;
    records.push_back({std::move(entry->name), *record});
  }
  if (overlap(records))
    return damaged("two records share bytes");
  size_t root = rootLength(records);
  Archive archive;
  for (auto &[name, record] : records)
    if (!archive.byName.emplace(name.substr(root), record).second)
      return damaged(shown(name) + "the name stands twice");
  return archive;
}

const Record *Archive::find(std::string_view name) const {
  auto found = byName.find(name);
  return found == byName.end() ? nullptr : &found->second;
}

} // namespace dmxc::torchfe
