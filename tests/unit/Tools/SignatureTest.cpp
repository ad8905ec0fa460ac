//===- SignatureTest.cpp - the text of signatures -------------------------===//
//
// The tools' reader and the runtime's share no code; they must accept the same signatures.
//
//===----------------------------------------------------------------------===//
#include "BundleBuilder.h"
#include "TestDir.h"
#include "dmx/dmx.h"
#include "dmxc/Bundle/Reader.h"

#include <gtest/gtest.h>
#include <random>

namespace dmxc::tools::test {
namespace {

bundle::Signature signatureOf(const dmxtest::TestBundle &model) {
  return {1, model.manifestSha256(), std::string(64, 'a'), std::string(128, '0')};
}

/// A small model; its code is never loaded.
dmxtest::TestBundle smallModel() {
  dmxtest::TestBundle model = dmxtest::addModel(4);
  model.files["code/cpu/x86-64/kernels.so"].resize(100);
  return model;
}

/// Whether the readers open it; fails the test when they disagree.
bool opens(const std::string &path) {
  auto ours = bundle::Bundle::open(path);
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *opened = nullptr;
  bool theirs = dmx_bundle_open(path.c_str(), &opened, &error) == DMX_OK;
  dmx_bundle_close(opened);
  EXPECT_EQ(static_cast<bool>(ours), theirs)
      << (ours ? "opened" : ours.error().message) << "\nthe runtime: " << error.message;
  return theirs;
}

std::vector<std::string> variants(const std::string &good) {
  std::vector<std::string> all = {good,
                                  good + "\n",
                                  good + good,
                                  "\n" + good,
                                  "dmx-bundle-signature 2\n",
                                  "dmx-bundle-signature 2",
                                  "dmx-bundle-signature 2\nall else is unknown",
                                  "dmx-bundle-signature 999999999\n",
                                  "dmx-bundle-signature 1000000000\n",
                                  "dmx-bundle-signature 18446744073709551617\n",
                                  "dmx-bundle-signature 0\n",
                                  "dmx-bundle-signature -1\n",
                                  "dmx-bundle-signature 01" + good.substr(22),
                                  "dmx-bundle-signature +1" + good.substr(22),
                                  "dmx-bundle-signature 1 " + good.substr(22),
                                  "dmx-bundle-signature \n",
                                  std::string("dmx-bundle-signature 2\0\n", 24)};
  for (size_t size = 1; size < good.size(); ++size)
    all.push_back(good.substr(0, size));
  std::mt19937 random(7);
  for (size_t i = 0; i < good.size(); ++i) {
    all.push_back(good);
    all.back()[i] = static_cast<char>(all.back()[i] ^ (1 << random() % 8));
  }
  return all;
}

TEST(Signature, ReadersJudgeAlike) {
  TestDir dir;
  dmxtest::TestBundle model = smallModel();
  std::string good = bundle::toText(signatureOf(model));
  model.signature = good;
  model.writeDirectory(dir.path("m"));
  size_t accepted = 0;
  for (const std::string &text : variants(good)) {
    SCOPED_TRACE(text);
    model.signature = text;
    writeFile(dir.path("m.bundle"), model.zip());
    writeFile(dir.path("m/manifest.sig"), text);
    bool file = opens(dir.path("m.bundle"));
    EXPECT_EQ(opens(dir.path("m")), file);
    accepted += file;
  }
  // The good one, three of other versions, and those with a digit changed where the readers cannot know better.
  EXPECT_GT(accepted, 10u);
  EXPECT_LT(accepted, 200u);
  std::filesystem::remove(dir.path("m/manifest.sig"));
  EXPECT_TRUE(opens(dir.path("m")));
}

TEST(Signature, PlaceInTheArchiveIsJudgedAlike) {
  TestDir dir;
  dmxtest::TestBundle model = smallModel();
  std::string text = bundle::toText(signatureOf(model));
  writeFile(dir.path("plain"), model.zip());
  auto plain = bundle::Bundle::open(dir.path("plain"));
  ASSERT_TRUE(plain);
  std::vector<std::pair<std::string, std::string>> entries;
  for (const bundle::BundleEntry &entry : plain->entries())
    entries.emplace_back(entry.name, entry.text());
  for (size_t at = 0; at <= entries.size(); ++at) {
    auto all = entries;
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), {"manifest.sig", text});
    writeFile(dir.path("m"), dmxtest::storedZip(all, "dmx-manifest-sha256:" + model.manifestSha256()));
    EXPECT_EQ(opens(dir.path("m")), at == entries.size()) << at;
  }
  entries.insert(entries.end(), 2, {"manifest.sig", text});
  writeFile(dir.path("m"), dmxtest::storedZip(entries, "dmx-manifest-sha256:" + model.manifestSha256()));
  EXPECT_FALSE(opens(dir.path("m")));
}

TEST(Signature, IsAttachedWithoutMovingAnything) {
  TestDir dir;
  dmxtest::TestBundle model = smallModel();
  bundle::Signature signature = signatureOf(model);
  std::string text = bundle::toText(signature), path = dir.path("m.bundle");
  writeFile(path, model.zip());
  auto before = bundle::Bundle::open(path);
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_FALSE(before->signature());
  for (int round = 0; round < 2; ++round) { // a second signature replaces the first
    signature.value = std::string(128, static_cast<char>('1' + round));
    ASSERT_TRUE(bundle::attachSignature(path, bundle::toText(signature)));
    auto after = bundle::Bundle::open(path);
    ASSERT_TRUE(after) << after.error().message;
    ASSERT_TRUE(after->signature());
    EXPECT_EQ(after->signature()->value, signature.value);
    EXPECT_EQ(after->manifestSha256(), before->manifestSha256());
    ASSERT_EQ(after->entries().size(), before->entries().size());
    for (size_t i = 0; i < after->entries().size(); ++i) {
      EXPECT_EQ(after->entries()[i].offset, before->entries()[i].offset);
      EXPECT_EQ(after->entries()[i].text(), before->entries()[i].text());
    }
    EXPECT_TRUE(opens(path));
  }
  // What the test's own writer makes of it.
  model.signature = bundle::toText(signature);
  EXPECT_EQ(readFile(path), model.zip());

  writeFile(dir.path("text"), "no bundle");
  Status refused = bundle::attachSignature(dir.path("text"), text);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Model);
  refused = bundle::attachSignature(dir.path("none"), text);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::IO);
  EXPECT_EQ(readFile(dir.path("text")), "no bundle");
}

} // namespace
} // namespace dmxc::tools::test
