//===- Streams.h - a model from stdin, a bundle to stdout -------*- C++ -*-===//
//
// Models are mapped and bundles are written out of order, which streams do not allow: bytes lie in a temporary file
// meanwhile (TMPDIR).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/OutputFile.h"

#include <memory>
#include <string>

namespace dmxc::driver {

/// A path of this name in a new folder of its own; the folder is removed, with all that is in it then, at the end and
/// by signals.
class TemporaryFile {
public:
  static Result<std::unique_ptr<TemporaryFile>> create(const std::string &name);
  ~TemporaryFile();
  const std::string &path() const { return file; }
  /// For what else there is to keep as long.
  const std::string &folderPath() const { return folder; }

private:
  TemporaryFile(std::string folder, const std::string &name);
  std::string folder, file;
  TemporaryName interrupted;
};

/// A file with all that stdin gives: the one that stands there already, or a temporary, which must live as long as the
/// path is used.
Result<std::string> fileOfStdin(std::unique_ptr<TemporaryFile> &temporary);

/// All of a file to stdout.
Status copyToStdout(const std::string &path);

} // namespace dmxc::driver
