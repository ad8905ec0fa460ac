//===- SampleBundle.h - small bundles for tests -----------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Reader.h"
#include "dmxc/Bundle/Writer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace dmxc::bundle::test {

/// A directory of its own, removed at the end.
class ScratchDir {
public:
  ScratchDir() {
    std::string name = (std::filesystem::temp_directory_path() / "dmxc-XXXXXX").string();
    root = mkdtemp(name.data());
  }
  ~ScratchDir() { std::filesystem::remove_all(root); }
  std::string path(const std::string &name) const { return root + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto &item : std::filesystem::directory_iterator(root))
      all.push_back(item.path().filename().string());
    return all;
  }

private:
  std::string root;
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void writeFile(const std::string &path, const std::string &bytes) {
  // A new file: some file systems flush a truncated one to the disk.
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

/// y = copy of x, z = copy of a constant, with every kind of buffer and field.
GraphFile sampleGraph(WeightsWriter &weights);
void sampleWeights(WeightsWriter &weights);
Manifest sampleManifest();
/// Writes the sample; fails the test on an error.
void writeSample(const std::string &path, BundleFormat format = BundleFormat::Zip);
/// The sample with its graph changed before writing.
void writeSample(const std::string &path, BundleFormat format,
                 const std::function<void(GraphFile &, Manifest &)> &change);

} // namespace dmxc::bundle::test
