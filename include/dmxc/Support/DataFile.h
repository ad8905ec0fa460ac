//===- DataFile.h - where the data of a model may lie -----------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <string>
#include <vector>

namespace dmxc {

/// A file that a model names. Whoever wrote the model may have named any file of the machine: only what lies below some
/// folders is its data, and a file lies where its real path does, whatever links lead there.
struct DataFile {
  std::string path; ///< as it can be opened
  std::string real; ///< absolute, behind all links
  bool isBelow;     ///< it lies below one of the folders
};

/// The file `path`: itself where it is absolute, else below the first of `folders` that has one ("" is the current
/// folder). Fails where there is none; the sentence begins with its name.
Result<DataFile> findDataFile(const std::string &path, const std::vector<std::string> &folders);

/// The folder of a file; "." where its path has none.
std::string folderOf(const std::string &path);

} // namespace dmxc
