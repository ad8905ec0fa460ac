//===- Archive.cpp - the entries of a bundle ------------------------------===//
//
// The directory form and what both forms share; Zip.cpp reads the file form.
//
//===----------------------------------------------------------------------===//

#include "Archive.h"
#include "Zip.h"

#include <algorithm>

namespace dmxrt {
namespace {

constexpr std::string_view kCommentPrefix = "dmx-manifest-sha256:";

bool isHexDigest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

} // namespace

bool isEntryName(std::string_view name) {
  if (name.empty() || name.size() > 4096)
    return false;
  for (char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
          std::string_view("._+/-").find(c) != std::string_view::npos))
      return false;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('/', begin), name.size());
    std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..")
      return false;
    begin = end + 1;
  }
  return true;
}

Result<Archive> Archive::openPath(const std::string &path, Load load) {
  Archive archive;
  archive.mode = load;
  if (isDirectory(path)) {
    if (Status status = archive.openDirectory(path); !status)
      return status.takeError();
    return archive;
  }
  auto mapping = Mapping::openFile(path, load);
  if (!mapping)
    return mapping.takeError();
  return openMemory((*mapping)->bytes(), *mapping, load);
}

Result<Archive> Archive::openMemory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner, Load load) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % 64)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the bundle's memory starts at an address that is not 64-byte "
                                             "aligned; copy it to aligned_alloc(64, size)");
  Archive archive;
  archive.mode = load;
  if (owner)
    archive.owners.push_back(std::move(owner));
  if (Status status = archive.readZip(bytes); !status)
    return status.takeError();
  return archive;
}

Status Archive::readZip(std::span<const std::byte> bytes) {
  auto zip = readStoredZip(bytes);
  if (!zip)
    return zip.takeError();
  std::string_view comment = zip->comment;
  if (!comment.starts_with(kCommentPrefix) || !isHexDigest(comment.substr(kCommentPrefix.size())))
    return badBundle("the archive's comment is not '", kCommentPrefix,
                     "<64 hex digits>': this is not a bundle, or it was rewritten by an archive tool; "
                     "compile the model again");
  manifestHash = comment.substr(kCommentPrefix.size());
  if (zip->entries.empty() || zip->entries.front().name != "manifest.json")
    return badBundle("the archive's first entry is not 'manifest.json': this is not a bundle");
  for (const ZipEntry &entry : zip->entries) {
    std::string name(entry.name);
    if (name == kSignatureName && &entry != &zip->entries.back())
      return badBundle("the archive's signature is not its last entry");
    if (!isEntryName(name))
      return badBundle("the archive has an entry with an unsafe name (only [A-Za-z0-9._+/-], relative, "
                       "no '..')");
    if (!table.emplace(std::move(name), Entry{entry.data, entry.crc, mode == Load::Copy}).second)
      return badBundle("the archive has two entries named '", entry.name, "'");
  }
  return {};
}

Status Archive::openDirectory(const std::string &path) {
  directory = path;
  auto hash = Mapping::openFile(path + "/manifest.sha256", Load::Copy);
  if (!hash)
    return within("directory bundle without its checksum", hash.takeError());
  std::string_view text = asText((*hash)->bytes());
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  if (!isHexDigest(text))
    return badBundle("'", path, "/manifest.sha256' does not hold 64 hex digits");
  manifestHash = text;
  if (Status status = addFile("manifest.json", Load::Copy); !status)
    return status;
  return fileExists(path + "/" + std::string(kSignatureName)) ? addFile(std::string(kSignatureName), Load::Copy)
                                                              : Status();
}

Status Archive::addFile(const std::string &name, Load load) {
  auto mapping = Mapping::openFile(directory + "/" + name, load);
  if (!mapping)
    return mapping.takeError();
  table.emplace(name, Entry{(*mapping)->bytes(), 0, load == Load::Copy});
  owners.push_back(*mapping);
  return {};
}

Status Archive::load(const std::string &name, uint64_t size) {
  auto it = table.find(name);
  if (it == table.end()) {
    if (directory.empty())
      return badBundle("the manifest lists entry '", name, "', but the archive has none of that name");
    if (!isEntryName(name))
      return badBundle("the manifest lists an entry with an unsafe name");
    if (Status status = addFile(name, mode); !status)
      return status;
    it = table.find(name);
  }
  if (it->second.data.size() != size)
    return badBundle("entry '", name, "' has ", it->second.data.size(), " bytes, the manifest says ", size);
  return {};
}

Status Archive::hold(std::span<const std::string_view> names) {
  std::vector<Entry *> moved;
  std::vector<std::span<const std::byte>> pieces;
  for (std::string_view name : names)
    if (auto it = table.find(name); it != table.end() && !it->second.isHeld) {
      moved.push_back(&it->second);
      pieces.push_back(it->second.data);
      it->second.isHeld = true;
    }
  if (pieces.empty())
    return {};
  // One mapping for all: opening a small bundle is mostly system calls.
  auto copy = Mapping::copyOf(pieces, names.size() == 1 ? names.front() : "entries of the bundle");
  if (!copy)
    return copy.takeError();
  owners.push_back(*copy);
  std::span<const std::byte> rest = (*copy)->bytes();
  for (Entry *entry : moved) {
    uint64_t size = entry->data.size();
    entry->data = rest.first(size);
    rest = rest.subspan(std::min(Mapping::padded(size), rest.size()));
  }
  return {};
}

const Archive::Entry *Archive::find(std::string_view name) const {
  auto it = table.find(name);
  return it == table.end() ? nullptr : &it->second;
}

} // namespace dmxrt
