//===- ZipWriter.cpp - a bundle as one ZIP64 file -------------------------===//
//
// Every entry is stored, and every record is a ZIP64 one whatever its size, so
// that small tests run the code that large models need. The manifest comes
// first although it holds the checksums of what follows: its length is known
// before them, so its place is kept free and filled at the end.
//
//===----------------------------------------------------------------------===//
#include "EntryName.h"
#include "WriterImpl.h"
#include "Zip.h"
#include "ZipReader.h"

#include <algorithm>
#include <sys/stat.h>

namespace dmxc::bundle {

namespace {

struct ZipEntry {
  std::string name;
  uint64_t size = 0;
  uint64_t offset = 0; ///< of the local header
  uint32_t crc = 0;
};

/// The header, padded so that the data after it is aligned.
std::string localHeader(const ZipEntry &entry) {
  constexpr uint64_t zip64Bytes = 20, fieldHeader = 4;
  uint64_t alignment = entryAlignment(entry.name);
  uint64_t end = entry.offset + zip::localSize + entry.name.size() + zip64Bytes + fieldHeader;
  uint16_t padding = static_cast<uint16_t>((alignment - end % alignment) % alignment);
  zip::Fields f;
  f.u32(zip::localSignature).u16(zip::version45).u16(0);
  f.u16(0).u16(0).u16(zip::dosEpoch).u32(entry.crc);
  f.u32(UINT32_MAX).u32(UINT32_MAX);
  f.u16(static_cast<uint16_t>(entry.name.size()));
  f.u16(static_cast<uint16_t>(zip64Bytes + fieldHeader + padding));
  f.text(entry.name);
  f.u16(zip::zip64Extra).u16(16).u64(entry.size).u64(entry.size);
  f.u16(zip::paddingExtra).u16(padding);
  f.bytes.append(padding, '\0');
  return f.bytes;
}

std::string centralHeader(const ZipEntry &entry) {
  zip::Fields f;
  f.u32(zip::centralSignature);
  f.u16(3 << 8 | zip::version45); // made on Unix, so that the mode counts
  f.u16(zip::version45).u16(0);
  f.u16(0).u16(0).u16(zip::dosEpoch).u32(entry.crc);
  f.u32(UINT32_MAX).u32(UINT32_MAX);
  f.u16(static_cast<uint16_t>(entry.name.size())).u16(28).u16(0);
  f.u16(0).u16(0).u32(static_cast<uint32_t>(S_IFREG | 0644) << 16);
  f.u32(UINT32_MAX);
  f.text(entry.name);
  f.u16(zip::zip64Extra).u16(24).u64(entry.size).u64(entry.size);
  f.u64(entry.offset);
  return f.bytes;
}

std::string endRecords(uint64_t count, uint64_t centralOffset, uint64_t centralBytes, const std::string &comment) {
  zip::Fields f;
  f.u32(zip::end64Signature).u64(zip::end64Size - 12);
  f.u16(3 << 8 | zip::version45).u16(zip::version45).u32(0).u32(0);
  f.u64(count).u64(count).u64(centralBytes).u64(centralOffset);
  f.u32(zip::locator64Signature).u32(0).u64(centralOffset + centralBytes).u32(1);
  f.u32(zip::endSignature).u16(0).u16(0).u16(UINT16_MAX).u16(UINT16_MAX);
  f.u32(UINT32_MAX).u32(UINT32_MAX);
  f.u16(static_cast<uint16_t>(comment.size())).text(comment);
  return f.bytes;
}

class ZipWriter : public Writer {
public:
  ZipWriter(std::string path, std::unique_ptr<OutputFile> file) : Writer(std::move(path)), file(std::move(file)) {}

  Status writeAll(const std::vector<Item> &items) override;
  Result<std::string> readablePath() override { return file->readablePath(); }
  Status commit() override;

private:
  Status writeManifest();
  Status writeEntry(const Item &item, EntryDesc &row);
  Status writeEnd();

  std::unique_ptr<OutputFile> file;
  std::vector<ZipEntry> entries;
  std::string manifestSha;
};

Status ZipWriter::writeAll(const std::vector<Item> &items) {
  entries.push_back({"manifest.json", manifestText().size()});
  std::string placeholder = localHeader(entries[0]);
  placeholder.append(entries[0].size, ' ');
  if (Status done = file->write(bytesOf(placeholder)); !done)
    return done;
  for (size_t i = 0; i < items.size(); ++i)
    if (Status done = writeEntry(items[i], contents.entries[i]); !done)
      return done;
  if (Status done = writeManifest(); !done)
    return done;
  return writeEnd();
}

Status ZipWriter::writeEntry(const Item &item, EntryDesc &row) {
  ZipEntry entry{item.name, item.size, file->position()};
  if (Status done = file->write(bytesOf(localHeader(entry))); !done)
    return done;
  HashingSink sink(*file, item.name, item.size);
  if (Status done = item.produce(sink); !done)
    return done;
  if (Status done = sink.finish(); !done)
    return done;
  row.sha256 = sink.sha256();
  entry.crc = sink.crc32();
  // The header's length does not depend on the checksum.
  if (Status done = file->writeAt(entry.offset, bytesOf(localHeader(entry))); !done)
    return done;
  entries.push_back(std::move(entry));
  return Status::ok();
}

Status ZipWriter::writeManifest() {
  std::string text = manifestText();
  if (text.size() != entries[0].size)
    return Error{ErrorKind::Internal, "the manifest's length changed while the "
                                      "bundle was written"};
  entries[0].crc = updateCrc32(0, bytesOf(text));
  manifestSha = Sha256::hexOf(bytesOf(text));
  return file->writeAt(0, bytesOf(localHeader(entries[0]) + text));
}

Status ZipWriter::writeEnd() {
  uint64_t start = file->position();
  std::string tail;
  for (const ZipEntry &entry : entries)
    tail += centralHeader(entry);
  tail += endRecords(entries.size(), start, tail.size(), std::string(zip::commentPrefix) + manifestSha);
  return file->write(bytesOf(tail));
}

Status ZipWriter::commit() {
  total = file->position();
  return file->commit(Durability::Disk);
}

} // namespace

/// The bundle's bytes up to the end of its data, the signature, its directory with a record more.
Status attachToZip(const std::string &path, const std::string &text) {
  auto bundle = MappedFile::open(path);
  if (!bundle)
    return bundle.takeError();
  std::span<const std::byte> bytes = (*bundle)->bytes();
  auto contents = readZip(bytes);
  if (!contents)
    return contents.takeError();
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    if (Status done = (*file)->setMode(info.st_mode & 07777); !done)
      return done;
  if (Status done = (*file)->write(bytes.first(contents->entriesEnd)); !done)
    return done;
  ZipEntry entry{std::string(signatureName), text.size(), contents->entriesEnd, updateCrc32(0, bytesOf(text))};
  if (Status done = (*file)->write(bytesOf(localHeader(entry) + text)); !done)
    return done;
  uint64_t start = (*file)->position();
  if (Status done = (*file)->write(contents->records); !done)
    return done;
  std::string last = centralHeader(entry);
  last += endRecords(contents->entries.size() + 1, start, contents->records.size() + last.size(), contents->comment);
  if (Status done = (*file)->write(bytesOf(last)); !done)
    return done;
  return (*file)->commit(Durability::Disk);
}

Result<std::unique_ptr<Writer>> createZipWriter(const std::string &path) {
  struct stat info;
  // Renaming over a device node or a directory would not do what was meant.
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return ioError("cannot write the bundle '" + path + "': it exists and is " +
                   (S_ISDIR(info.st_mode) ? "a directory" : "not a regular file") + "; give the name of a file");
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  return std::unique_ptr<Writer>(new ZipWriter(path, std::move(*file)));
}

} // namespace dmxc::bundle
