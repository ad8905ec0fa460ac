//===- Writer.cpp - what both shapes of a bundle share --------------------===//
#include "dmxc/Bundle/Writer.h"

#include "EntryName.h"
#include "WriterImpl.h"

#include "dmxc/Support/WorkCount.h"

#include <algorithm>
#include <array>

namespace dmxc::bundle {

namespace {
Error misuse(std::string message) { return {ErrorKind::Internal, std::move(message)}; }
} // namespace

Status ByteSink::writeZeros(uint64_t count) {
  static constexpr std::array<std::byte, 4096> zeros{};
  while (count) {
    uint64_t step = std::min<uint64_t>(count, zeros.size());
    if (Status done = write(std::span(zeros.data(), step)); !done)
      return done;
    count -= step;
  }
  return Status::ok();
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string &path, BundleFormat format) {
  if (path.empty())
    return ioError("cannot write a bundle: the path is empty");
  return format == BundleFormat::Zip ? createZipWriter(path) : createDirectoryWriter(path);
}

Writer::~Writer() = default;

Status Writer::addEntry(const std::string &name, std::string bytes) {
  uint64_t size = bytes.size();
  auto held = std::make_shared<std::string>(std::move(bytes));
  return addStream(name, size, [held](ByteSink &sink) { return sink.write(*held); });
}

Status Writer::addStream(const std::string &name, uint64_t size, Producer produce) {
  if (std::string problem = entryNameProblem(name); !problem.empty())
    return misuse("bundle entry '" + name + "': " + problem);
  for (const Item &item : items)
    if (item.name == name)
      return misuse("bundle entry '" + name + "' was added twice");
  items.push_back({name, size, std::move(produce)});
  return Status::ok();
}

Status Writer::finish() {
  if (finished)
    return misuse("this bundle was finished before");
  finished = true;
  std::sort(items.begin(), items.end(), [](const Item &a, const Item &b) {
    return std::pair(entryGroup(a.name), std::string_view(a.name)) <
           std::pair(entryGroup(b.name), std::string_view(b.name));
  });
  contents.entries.clear();
  uint64_t bytes = 0;
  for (const Item &item : items) {
    contents.entries.push_back({item.name, item.size, std::string(64, '0')});
    bytes += item.size;
  }
  beginWork("bytes", bytes);
  if (Status done = writeAll(items); !done)
    return done;
  if (inspection) {
    auto written = readablePath();
    if (!written)
      return written.takeError();
    noteWork("checking what was written");
    if (Status done = inspection(*written); !done)
      return done;
  }
  noteWork("waiting for the disk");
  WorkTimer timer("write", "writing");
  return commit();
}

} // namespace dmxc::bundle
