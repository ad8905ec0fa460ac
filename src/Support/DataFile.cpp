//===- DataFile.cpp - where the data of a model may lie -------------------===//
#include "dmxc/Support/DataFile.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace dmxc {

static bool liesBelow(const fs::path &real, const std::string &folder) {
  std::error_code code;
  fs::path base = fs::canonical(folder.empty() ? "." : folder, code);
  return !code && std::mismatch(base.begin(), base.end(), real.begin(), real.end()).first == base.end();
}

Result<DataFile> findDataFile(const std::string &path, const std::vector<std::string> &folders) {
  std::vector<fs::path> places;
  if (fs::path(path).is_absolute())
    places.emplace_back(path);
  else
    for (const std::string &folder : folders)
      places.push_back(fs::path(folder) / path);
  std::error_code code = std::make_error_code(std::errc::no_such_file_or_directory);
  for (const fs::path &place : places) {
    fs::path real = fs::canonical(place, code);
    if (code)
      continue;
    bool isBelow =
        std::any_of(folders.begin(), folders.end(), [&](const std::string &folder) { return liesBelow(real, folder); });
    return DataFile{place.string(), real.string(), isBelow};
  }
  return ioError("'" + (places.empty() ? path : places.front().string()) + "' cannot be read: " + code.message());
}

std::string folderOf(const std::string &path) {
  std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

} // namespace dmxc
