//===- Folder.h - where a fuzzer writes its files ---------------*- C++ -*-===//
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace dmxfuzz {

/// A folder of this process with a file of weights that hostile inputs can name; goes away with the object.
class Folder {
public:
  Folder() : path(std::filesystem::temp_directory_path() / ("dmxc-fuzz-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
    write("weights.bin", std::string(256, '\2'));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string write(const char *name, const std::string &bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }

private:
  std::filesystem::path path;
};

} // namespace dmxfuzz
