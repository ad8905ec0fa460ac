//===- Journal.h - what a tuner measured so far -----------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/OutputFile.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace dmxc::driver {

/// What was measured before an end that came too early: a file beside the database, a line a trial, written at once.
/// Whoever tunes again with the same database measures none of it again.
class Journal {
public:
  /// Reads what is there; a line that was cut is taken off.
  static Result<std::unique_ptr<Journal>> open(const std::string &path);
  /// Leaves no empty file.
  ~Journal();
  std::optional<int64_t> find(const std::string &key) const;
  /// Makes sure of room for a line, so that what is measured next can be kept.
  Status reserve();
  Status add(const std::string &key, int64_t clocks);
  /// Its content is in the database.
  void remove();
  /// "; what was measured is in 'FILE', ...", for the end of a sentence; "" while there is nothing.
  std::string advice() const;

private:
  explicit Journal(std::string path) : path(std::move(path)) {}
  Status read();
  Error failure() const;

  std::string path;
  Descriptor file;
  int64_t size = -1; ///< of the file, in bytes; negative until it is known to be a journal
  std::map<std::string, int64_t> rows;
  std::unique_ptr<TemporaryName> empty; ///< of a new file, until there is a line in it
};

} // namespace dmxc::driver
