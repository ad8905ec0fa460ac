//===- TestDir.h - a scratch directory ------------------------*- C++ -*-===//
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace dmxc::tools::test {

/// A directory of its own, removed at the end.
class TestDir {
public:
  TestDir() {
    std::string name = (std::filesystem::temp_directory_path() / "dmxc-XXXXXX").string();
    root = mkdtemp(name.data());
  }
  ~TestDir() { std::filesystem::remove_all(root); }
  std::string path(const std::string &name = "") const { return root + "/" + name; }

private:
  std::string root;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void writeFile(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace dmxc::tools::test
