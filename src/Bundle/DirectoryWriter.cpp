//===- DirectoryWriter.cpp - a bundle as a directory ----------------------===//
#include "EntryName.h"
#include "WriterImpl.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <list>
#include <sys/stat.h>

namespace dmxc::bundle {

namespace fs = std::filesystem;

namespace {

class DirectoryWriter : public Writer {
public:
  DirectoryWriter(std::string path, std::string root) : Writer(std::move(path)), root(std::move(root)) {
    temporaries.emplace_back(this->root);
  }
  ~DirectoryWriter() override;

  Status writeAll(const std::vector<Item> &items) override;
  Status commit() override;

private:
  Status makeParents(const std::string &name);
  Status writeFile(const std::string &name, uint64_t size, const Producer &produce, std::string &sha256);

  std::string root;
  std::list<TemporaryName> temporaries; // the root first: see TemporaryName
  std::list<std::unique_ptr<OutputFile>> files;
  bool committed = false;
};

DirectoryWriter::~DirectoryWriter() {
  files.clear();
  std::error_code ignored;
  if (!committed)
    fs::remove_all(root, ignored);
}

Status DirectoryWriter::makeParents(const std::string &name) {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    std::string directory = root + "/" + name.substr(0, slash);
    if (mkdir(directory.c_str(), 0755) == 0)
      temporaries.emplace_back(directory);
    else if (errno != EEXIST)
      return ioError("cannot make the directory '" + directory + "': " + std::strerror(errno));
  }
  return Status::ok();
}

Status DirectoryWriter::writeFile(const std::string &name, uint64_t size, const Producer &produce,
                                  std::string &sha256) {
  if (Status done = makeParents(name); !done)
    return done;
  auto file = OutputFile::create(root + "/" + name);
  if (!file)
    return file.takeError();
  HashingSink sink(**file, name, size);
  if (Status done = produce(sink); !done)
    return done;
  if (Status done = sink.finish(); !done)
    return done;
  sha256 = sink.sha256();
  total += size;
  Status closed = (*file)->close();
  files.push_back(std::move(*file));
  return closed;
}

Status DirectoryWriter::writeAll(const std::vector<Item> &items) {
  for (size_t i = 0; i < items.size(); ++i)
    if (Status done = writeFile(items[i].name, items[i].size, items[i].produce, contents.entries[i].sha256); !done)
      return done;
  std::string text = manifestText(), sha, ignored;
  auto put = [](const std::string &bytes) { return [&bytes](ByteSink &sink) { return sink.write(bytes); }; };
  if (Status done = writeFile("manifest.json", text.size(), put(text), sha); !done)
    return done;
  sha += "\n";
  return writeFile("manifest.sha256", sha.size(), put(sha), ignored);
}

Status DirectoryWriter::commit() {
  std::error_code ignored;
  // Exchanging the names keeps a complete bundle at `path` at every moment.
  bool exchanged = renameat2(AT_FDCWD, root.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0;
  if (!exchanged && errno != ENOENT)
    fs::remove_all(path, ignored); // a file system that cannot exchange
  if (!exchanged && std::rename(root.c_str(), path.c_str()) != 0)
    return ioError("cannot rename '" + root + "' to '" + path + "': " + std::strerror(errno));
  for (auto &file : files)
    file->keep();
  for (TemporaryName &name : temporaries)
    name.release();
  committed = true;
  if (exchanged)
    fs::remove_all(root, ignored);
  return Status::ok();
}

} // namespace

Result<std::unique_ptr<Writer>> createDirectoryWriter(const std::string &given) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  std::error_code error;
  if (fs::exists(path, error) && !fs::exists(path + "/manifest.json", error) &&
      !(fs::is_directory(path, error) && fs::is_empty(path, error)))
    return ioError("cannot write the bundle directory '" + path +
                   "': it exists and is not a bundle; remove it or choose "
                   "another name");
  for (unsigned attempt = 0;; ++attempt) {
    std::string root = temporaryPath(path, attempt);
    if (mkdir(root.c_str(), 0755) == 0)
      return std::unique_ptr<Writer>(new DirectoryWriter(path, root));
    if (errno != EEXIST || attempt == 100)
      return ioError("cannot make the directory '" + root + "': " + std::strerror(errno));
  }
}

} // namespace dmxc::bundle
