//===- DirectoryWriter.cpp - a bundle as a directory ----------------------===//
#include "EntryName.h"
#include "WriterImpl.h"

#include <filesystem>

namespace dmxc::bundle {

namespace fs = std::filesystem;

namespace {

class DirectoryWriter : public Writer {
public:
  DirectoryWriter(std::string path, std::unique_ptr<OutputFolder> folder)
      : Writer(std::move(path)), folder(std::move(folder)) {}

  Status writeAll(const std::vector<Item> &items) override;
  Result<std::string> readablePath() override { return folder->readablePath(); }
  Status commit() override { return folder->commit(Durability::Disk); }

private:
  Status writeEntry(const std::string &name, uint64_t size, const Producer &produce, std::string &sha256);

  std::unique_ptr<OutputFolder> folder;
};

Status DirectoryWriter::writeEntry(const std::string &name, uint64_t size, const Producer &produce,
                                   std::string &sha256) {
  auto file = folder->add(name);
  if (!file)
    return file.takeError();
  HashingSink sink(**file, name, size);
  if (Status done = produce(sink); !done)
    return done;
  if (Status done = sink.finish(); !done)
    return done;
  sha256 = sink.sha256();
  total += size;
  return (*file)->close(/*durable=*/true);
}

Status DirectoryWriter::writeAll(const std::vector<Item> &items) {
  for (size_t i = 0; i < items.size(); ++i)
    if (Status done = writeEntry(items[i].name, items[i].size, items[i].produce, contents.entries[i].sha256); !done)
      return done;
  std::string text = manifestText(), sha, ignored;
  auto put = [](const std::string &bytes) { return [&bytes](ByteSink &sink) { return sink.write(bytes); }; };
  if (Status done = writeEntry("manifest.json", text.size(), put(text), sha); !done)
    return done;
  sha += "\n";
  return writeEntry("manifest.sha256", sha.size(), put(sha), ignored);
}

} // namespace

Result<std::unique_ptr<Writer>> createDirectoryWriter(const std::string &path) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::exists(path + "/manifest.json", error) &&
      !(fs::is_directory(path, error) && fs::is_empty(path, error)))
    return ioError("cannot write the bundle directory '" + path +
                   "': it exists and is not a bundle; remove it or choose "
                   "another name");
  auto folder = OutputFolder::create(path);
  if (!folder)
    return folder.takeError();
  return std::unique_ptr<Writer>(new DirectoryWriter(path, std::move(*folder)));
}

} // namespace dmxc::bundle
