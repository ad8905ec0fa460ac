//===- CorruptTest.cpp - damaged and hostile bundles ----------------------===//
//
// Nothing a file holds may crash the reader; every damaged byte is found.
//
//===----------------------------------------------------------------------===//
#include "SampleBundle.h"
#include "dmxc/Bundle/Diff.h"
#include "dmxc/Bundle/Validate.h"

#include <random>

namespace dmxc::bundle::test {
namespace {

/// Opens and examines bytes as a bundle; the first complaint, or nothing.
std::string complaint(const ScratchDir &scratch, const std::string &bytes) {
  std::string path = scratch.path("c");
  writeFile(path, bytes);
  auto bundle = Bundle::open(path);
  if (!bundle)
    return bundle.error().message;
  auto problems = validate(*bundle, CheckLevel::Everything);
  return problems.empty() ? "" : problems[0].where + ": " + problems[0].message;
}

class Corrupt : public testing::Test {
protected:
  void SetUp() override {
    writeSample(scratch.path("m"));
    bytes = readFile(scratch.path("m"));
    ASSERT_EQ(complaint(scratch, bytes), "");
  }
  ScratchDir scratch;
  std::string bytes;
};

TEST_F(Corrupt, AnyFlippedByteIsFound) {
  // The header's padding inside the safetensors entry is data like any other.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= static_cast<char>(1 << (i % 8));
    ASSERT_NE(complaint(scratch, damaged), "") << "byte " << i << " of " << bytes.size();
  }
}

TEST_F(Corrupt, AnyTruncationIsFound) {
  for (size_t size = 0; size < bytes.size(); size += 1 + size % 7)
    ASSERT_NE(complaint(scratch, bytes.substr(0, size)), "") << size;
  ASSERT_NE(complaint(scratch, bytes + "x"), "");
  ASSERT_NE(complaint(scratch, "x" + bytes), "");
}

TEST_F(Corrupt, RandomNumbersInTheArchiveDoNotCrash) {
  std::mt19937 random(1);
  size_t tail = bytes.size() - 900;
  const uint64_t nasty[] = {0, 1, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFF0, bytes.size()};
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = bytes;
    for (unsigned k = 0; k < 1 + random() % 3; ++k) {
      size_t at = (random() % 2 ? tail : 0) + random() % 880;
      uint64_t value = random() % 2 ? nasty[random() % 7] : random();
      damaged.replace(at, 8, reinterpret_cast<const char *>(&value), 8);
    }
    if (damaged != bytes) {
      ASSERT_NE(complaint(scratch, damaged), "") << round;
    }
  }
}

TEST_F(Corrupt, HostileGraphsDoNotCrash) {
  // Random edits of the graph's numbers and names, with correct checksums.
  WeightsWriter weights;
  sampleWeights(weights);
  std::string text = toJson(sampleGraph(weights));
  std::vector<size_t> digits;
  for (size_t i = 0; i < text.size(); ++i)
    if (isdigit(static_cast<unsigned char>(text[i])))
      digits.push_back(i);
  const char *nasty[] = {"-1",
                         "0",
                         "9223372036854775807",
                         "-9223372036854775808",
                         "4294967296",
                         "\"batch\"",
                         "\"nobody\"",
                         "[\"mul\",\"batch\",9223372036854775807]",
                         "[\"mod\",1,0]",
                         "null",
                         "[]",
                         "1e99"};
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    size_t at = digits[random() % digits.size()];
    changed.replace(at, 1, nasty[random() % std::size(nasty)]);
    auto graph = parseGraph(changed);
    if (!graph)
      continue;
    Manifest manifest = sampleManifest();
    for (const GraphDesc &g : graph->graphs) {
      auto size = [](const std::string &) { return std::optional<uint64_t>(4220); };
      if (validateGraph(g, &manifest.entryPoints[0], size).empty())
        for (bool upper : {false, true})
          if (auto dims = extremeDims(g, upper))
            findHazards(g, *dims);
    }
  }
}

TEST_F(Corrupt, OtherFilesAreRefused) {
  EXPECT_NE(complaint(scratch, ""), "");
  EXPECT_NE(complaint(scratch, std::string(5000, '\0')), "");
  EXPECT_NE(complaint(scratch, "PK\x05\x06" + std::string(18, '\0')), "");
  auto missing = Bundle::open(scratch.path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::IO);
  std::filesystem::create_directory(scratch.path("empty"));
  auto directory = Bundle::open(scratch.path("empty"));
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("has no manifest.json"), std::string::npos);
}

TEST_F(Corrupt, DamagedDirectoriesAreRefused) {
  for (const char *name :
       {"manifest.json", "manifest.sha256", "graph.json", "weights/model.safetensors", "tests/note.txt"}) {
    writeSample(scratch.path("d"), BundleFormat::Directory);
    std::string text = readFile(scratch.path("d/") + name);
    text[text.size() / 2] ^= 1;
    writeFile(scratch.path("d/") + name, text);
    auto bundle = Bundle::open(scratch.path("d"));
    EXPECT_TRUE(!bundle || !validate(*bundle, CheckLevel::Everything).empty()) << name;
    std::filesystem::remove(scratch.path("d/") + name);
    EXPECT_FALSE(Bundle::open(scratch.path("d"))) << name;
    std::filesystem::remove_all(scratch.path("d"));
  }
}

} // namespace
} // namespace dmxc::bundle::test
