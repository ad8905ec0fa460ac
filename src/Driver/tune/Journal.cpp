//===- Journal.cpp - what a tuner measured so far -------------------------===//
#include "Journal.h"

#include "dmxc/Support/JsonDepth.h"
#include "dmxc/Support/MappedFile.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using nlohmann::json;

namespace dmxc::driver {

Error Journal::failure() const {
  return ioError("cannot write '" + path + "', which keeps what is measured: " + std::strerror(errno) +
                 (errno == ENOSPC || errno == EDQUOT ? "; free some space, or give a --db elsewhere" : "") + advice());
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string &path) {
  bool isThere = access(path.c_str(), F_OK) == 0;
  std::unique_ptr<Journal> journal(new Journal(path));
  if (!isThere)
    journal->empty = std::make_unique<TemporaryName>(AT_FDCWD, path);
  // O_NONBLOCK: a pipe of that name is refused when it is read, not waited for.
  journal->file = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!journal->file)
    return journal->failure();
  if (flock(journal->file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return ioError("'" + path +
                   "' is in use: another dmxc tunes with this database; wait for it, or give another --db");
  if (Status done = journal->read(); !done)
    return done.takeError();
  return journal;
}

Journal::~Journal() {
  if (size == 0)
    unlink(path.c_str());
}

Status Journal::read() {
  auto content = MappedFile::open(path);
  if (!content)
    return content.takeError();
  size = 0;
  std::string_view text(reinterpret_cast<const char *>((*content)->bytes().data()), (*content)->bytes().size());
  for (size_t end; (end = text.find('\n', static_cast<size_t>(size))) != std::string_view::npos;) {
    std::string_view line = text.substr(static_cast<size_t>(size), end - static_cast<size_t>(size));
    json row = jsonDepthIsBounded(line) ? json::parse(line, nullptr, /*allow_exceptions=*/false) : json();
    if (row.is_array() && row.size() == 2 && row[0].is_string() && row[1].is_number_integer())
      rows[row[0].get<std::string>()] = row[1].get<int64_t>();
    size = static_cast<int64_t>(end) + 1;
  }
  return ftruncate(file.get(), size) == 0 ? Status::ok() : Status(failure());
}

std::optional<int64_t> Journal::find(const std::string &key) const {
  auto row = rows.find(key);
  return row == rows.end() ? std::nullopt : std::optional(row->second);
}

Status Journal::reserve() {
  constexpr int64_t room = 256; // more than a line has: a hash and a number
  while (fallocate(file.get(), FALLOC_FL_KEEP_SIZE, size, room) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
      break; // then it shows when the line is written
    if (errno != EINTR)
      return failure();
  }
  return Status::ok();
}

Status Journal::add(const std::string &key, int64_t clocks) {
  std::string line = json{key, clocks}.dump() + "\n";
  for (size_t done = 0; done < line.size();) {
    ssize_t now = pwrite(file.get(), line.data() + done, line.size() - done, size + static_cast<int64_t>(done));
    if (now < 0 && errno == EINTR)
      continue;
    if (now <= 0) {
      Error error = failure();
      if (ftruncate(file.get(), size) != 0)
        error.message += "; its last line is cut, which does no harm";
      return error;
    }
    done += static_cast<size_t>(now);
  }
  size += static_cast<int64_t>(line.size());
  rows[key] = clocks;
  empty.reset();
  return Status::ok();
}

void Journal::remove() {
  unlink(path.c_str());
  size = -1;
}

std::string Journal::advice() const {
  return size > 0 ? "; what was measured is in '" + path + "': the same command goes on from there" : "";
}

} // namespace dmxc::driver
