//===- SignatureTest.cpp - opening with trusted keys ----------------------===//
//
// What is not byte for byte what a trusted key signed is refused, each case by its own sentence, and what was checked
// is what runs. SignatureForm.* hold in every build of the runtime, Trust.* where signatures are checked.
//
//===----------------------------------------------------------------------===//

#include "../RuntimeTest.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

using namespace dmxtest;

namespace {

/// A signature's text that nobody made: of the right form and naming the right manifest.
std::string formOf(const TestBundle &model) {
  return "dmx-bundle-signature 1\nmanifest-sha256 " + model.manifestSha256() + "\nkey " + std::string(64, 'a') +
         "\nsignature " + std::string(128, 'b') + "\n";
}

dmx_bundle_options keysOf(std::string_view keys) {
  dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
  options.trusted_keys = reinterpret_cast<const unsigned char *>(keys.data());
  options.trusted_key_count = static_cast<uint32_t>(keys.size() / DMX_PUBLIC_KEY_BYTES);
  return options;
}

} // namespace

TEST(SignatureForm, IsCheckedWithoutKeys) {
  TestBundle model = addModel(4);
  std::string form = formOf(model);
  model.signature = form;
  OpenBundle signedOne(model);
  EXPECT_EQ(signedOne.status, DMX_OK) << signedOne.error.message;
  EXPECT_EQ(dmx_bundle_verify(signedOne.get(), nullptr), DMX_OK);
  for (size_t size = 1; size < form.size(); ++size) {
    model.signature = form.substr(0, size);
    expectRefused(model, DMX_STATUS_INVALID_BUNDLE, "the signature in the bundle is truncated");
  }
  for (const std::string &text : {form + "\n", "x" + form, "dmx-bundle-signature 01" + form.substr(22),
                                  "dmx-bundle-signature +1" + form.substr(22), std::string("dmx-bundle-signature \n"),
                                  std::string("dmx-bundle-signature 1234567890\n"), std::string("\0", 1)}) {
    model.signature = text;
    expectRefused(model, DMX_STATUS_INVALID_BUNDLE, "the signature in the bundle is truncated");
  }
  // A later version may have any form.
  model.signature = "dmx-bundle-signature 2\nsomething else";
  EXPECT_EQ(OpenBundle(model).status, DMX_OK);
  model.signature = formOf(addModel(5));
  expectRefused(model, DMX_STATUS_INVALID_BUNDLE, "is of another bundle");
}

TEST(SignatureForm, HasItsPlace) {
  TestBundle model = addModel(4);
  model.files["manifest.sig"] = "x"; // no group: not written, but may be listed
  model.manifest["entries"] =
      Json::parse(R"([{"name": "manifest.sig", "size": 1, "sha256": ")" + std::string(64, '0') + R"("}])");
  expectRefused(model, DMX_STATUS_INVALID_BUNDLE, "or its signature");
  TestBundle good = addModel(4);
  std::string manifest = good.manifestSha256();
  OpenBundle plain(good);
  ASSERT_EQ(plain.status, DMX_OK);
  std::vector<std::pair<std::string, std::string>> entries;
  entries.emplace_back("manifest.json", dmx_bundle_describe(plain.get()));
  entries.emplace_back("manifest.sig", formOf(good));
  entries.emplace_back("graph.json", good.graph.dump());
  entries.emplace_back("code/cpu/x86-64/kernels.so", kernelObject());
  OpenBundle inTheMiddle(storedZip(entries, "dmx-manifest-sha256:" + manifest));
  EXPECT_EQ(inTheMiddle.status, DMX_STATUS_INVALID_BUNDLE);
  EXPECT_NE(std::string(inTheMiddle.error.message).find("not its last entry"), std::string::npos)
      << inTheMiddle.error.message;
}

/// What a caller may get wrong without being less safe for it.
TEST(SignatureForm, OptionsAreChecked) {
  AlignedBytes bytes(addModel(4).zip());
  std::string key(DMX_PUBLIC_KEY_BYTES, '\1');
  auto expect = [&](const dmx_bundle_options &options, const char *part) {
    dmx_error error = DMX_ERROR_INIT;
    dmx_bundle *bundle = nullptr;
    EXPECT_EQ(dmx_bundle_open_memory_with(bytes.get(), bytes.size(), &options, &bundle, &error),
              DMX_STATUS_INVALID_ARGUMENT)
        << part;
    EXPECT_NE(std::string(error.message).find(part), std::string::npos) << error.message;
    EXPECT_EQ(bundle, nullptr);
  };
  dmx_bundle_options options = keysOf(key);
  options.trusted_key_count = 0; // an empty list trusts nobody, which is not what "no list" means
  expect(options, "trusted_key_count is 0");
  options = keysOf(key);
  options.trusted_keys = nullptr;
  expect(options, "trusted_keys is NULL");
  options = DMX_BUNDLE_OPTIONS_INIT;
  options.signature = key.data();
  options.signature_size = key.size();
  expect(options, "without trusted keys");
  options = keysOf(key);
  options.signature_size = 5;
  expect(options, "signature is NULL");
}

#if !DMXC_SIGNATURES

TEST(Trust, IsRefusedWhereItIsNotBuilt) {
  AlignedBytes bytes(addModel(4).zip());
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  dmx_bundle_options options = keysOf(std::string(DMX_PUBLIC_KEY_BYTES, '\1'));
  EXPECT_EQ(dmx_bundle_open_memory_with(bytes.get(), bytes.size(), &options, &bundle, &error), DMX_STATUS_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("built without signatures"), std::string::npos) << error.message;
}

#else

#include "TestKey.h"

namespace {

/// Opens over its own memory with keys and, when it is not empty, a detached signature.
struct OpenTrusted {
  AlignedBytes bytes;
  BundlePtr bundle;
  dmx_error error = DMX_ERROR_INIT;
  dmx_status status;

  OpenTrusted(const std::string &text, std::vector<TestKey> keys, const std::string &detached = "") : bytes(text) {
    std::string list;
    for (const TestKey &key : keys)
      list.append(key.key.begin(), key.key.end());
    dmx_bundle_options options = keysOf(list);
    if (!detached.empty()) {
      options.signature = detached.data();
      options.signature_size = detached.size();
    }
    dmx_bundle *opened = nullptr;
    status = dmx_bundle_open_memory_with(bytes.get(), bytes.size(), &options, &opened, &error);
    bundle.reset(opened);
  }
  void expectRefused(dmx_status wanted, const std::string &part) {
    EXPECT_EQ(status, wanted) << error.message;
    EXPECT_EQ(bundle, nullptr);
    EXPECT_NE(std::string(error.message).find(part), std::string::npos)
        << "message: " << error.message << "\nexpected part: " << part;
  }
};

dmx_status openPath(const std::string &path, const TestKey &key, BundlePtr &bundle, dmx_error &error) {
  dmx_bundle_options options = keysOf({reinterpret_cast<const char *>(key.key.data()), key.key.size()});
  dmx_bundle *opened = nullptr;
  dmx_status status = dmx_bundle_open_with(path.c_str(), &options, &opened, &error);
  bundle.reset(opened);
  return status;
}

/// y = (x + 1) * 2 by the weights of batchModel.
void expectRuns(dmx_bundle *bundle) {
  SessionPtr session = makeSession(bundle);
  ASSERT_TRUE(session);
  auto x = iota<float>(8);
  std::vector<float> y(8);
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 0, x, {2, 4}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {2, 4}), DMX_OK);
  EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], (x[i] + 1) * 2) << i;
}

TestBundle signedModel(const TestKey &key) {
  TestBundle model = batchModel();
  model.files["debug/note"] = "a note";
  model.signature = key.sign(model);
  return model;
}

size_t executableMappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("r-xp") != std::string::npos;
  return count;
}

struct Scratch {
  Scratch() {
    std::string name = std::filesystem::temp_directory_path() / "dmxrt-XXXXXX";
    if (!mkdtemp(name.data()))
      std::abort();
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::string path;
};

std::string contentsOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const TestKey ours(1), others(2), strangers(3);

} // namespace

TEST(Trust, OpensWhatATrustedKeySigned) {
  Scratch scratch;
  TestBundle model = signedModel(ours);
  std::string text = model.zip();
  OpenTrusted one(text, {ours}), two(text, {others, ours});
  ASSERT_EQ(one.status, DMX_OK) << one.error.message;
  ASSERT_EQ(two.status, DMX_OK) << two.error.message;
  expectRuns(one.bundle.get());
  expectRuns(two.bundle.get());

  dmx_error error = DMX_ERROR_INIT;
  BundlePtr bundle;
  writeFile(scratch / "m.bundle", text);
  ASSERT_EQ(openPath(scratch / "m.bundle", ours, bundle, error), DMX_OK) << error.message;
  expectRuns(bundle.get());
  model.writeDirectory(scratch / "m");
  ASSERT_EQ(openPath(scratch / "m", ours, bundle, error), DMX_OK) << error.message;
  expectRuns(bundle.get());

  writeFile(scratch / "big", std::string(4096 + 64, 'x') + text + std::string(100, 'y'));
  int fd = open((scratch / "big").c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  dmx_bundle_options options = keysOf({reinterpret_cast<const char *>(ours.key.data()), ours.key.size()});
  dmx_bundle *opened = nullptr;
  ASSERT_EQ(dmx_bundle_open_fd_with(fd, 4096 + 64, text.size(), &options, &opened, &error), DMX_OK) << error.message;
  close(fd);
  bundle.reset(opened);
  expectRuns(bundle.get());
}

TEST(Trust, DetachedSignaturesCountAlone) {
  TestBundle model = batchModel();
  std::string unsignedText = model.zip(), detached = ours.sign(model);
  OpenTrusted open(unsignedText, {ours}, detached);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  expectRuns(open.bundle.get());
  OpenTrusted(unsignedText, {others}, detached).expectRefused(DMX_STATUS_UNTRUSTED, "which is not the trusted key");
  // A stranger's in the bundle does no harm, ours there does not replace a bad one that was given.
  model.signature = strangers.sign(model);
  EXPECT_EQ(OpenTrusted(model.zip(), {ours}, detached).status, DMX_OK);
  model.signature = ours.sign(model);
  OpenTrusted(model.zip(), {ours}, strangers.sign(model)).expectRefused(DMX_STATUS_UNTRUSTED, "is not the trusted key");
  OpenTrusted(model.zip(), {ours}, detached.substr(0, 200))
      .expectRefused(DMX_STATUS_UNTRUSTED, "the detached signature is truncated");
  OpenTrusted(model.zip(), {ours}, ours.sign(addModel(4)))
      .expectRefused(DMX_STATUS_UNTRUSTED, "the detached signature is of another bundle");
  OpenTrusted(model.zip(), {ours}, "dmx-bundle-signature 2\n")
      .expectRefused(DMX_STATUS_UNSUPPORTED, "the signature has version 2");
}

TEST(Trust, RefusesAllElse) {
  TestBundle good = signedModel(ours);
  std::string sha = good.manifestSha256();
  size_t code = executableMappings();
  auto refused = [&](const TestBundle &model, dmx_status status, const std::string &part) {
    OpenTrusted(model.zip(), {ours, others}).expectRefused(status, part);
  };
  auto resigned = [&](const std::string &signature) {
    TestBundle model = good;
    model.signature = signature;
    return model;
  };
  refused(resigned(""), DMX_STATUS_UNTRUSTED, "the bundle is not signed");
  refused(resigned(strangers.sign(sha)), DMX_STATUS_UNTRUSTED,
          "signed by key " + strangers.hex().substr(0, 16) + "..., which is not one of the trusted keys");
  refused(resigned(strangers.sign(sha, ours.hex())), DMX_STATUS_UNTRUSTED, "it was forged or changed");
  std::string changed = good.signature;
  changed[changed.size() - 2] ^= 1;
  refused(resigned(changed), DMX_STATUS_UNTRUSTED, "it was forged or changed");
  refused(resigned(good.signature.substr(0, 250)), DMX_STATUS_UNTRUSTED, "the signature in the bundle is truncated");
  refused(resigned("dmx-bundle-signature 7\nnew"), DMX_STATUS_UNSUPPORTED,
          "the signature has version 7; runtime " + std::string(dmx_version_string()) + " checks version 1");

  // Two bundles by the same signer: neither a signature nor an entry of one serves in the other.
  TestBundle other = good;
  other.files["debug/note"] = "b note";
  other.signature = ours.sign(other);
  refused(resigned(other.signature), DMX_STATUS_UNTRUSTED, "is of another bundle");
  Json entries = Json::parse(dmx_bundle_describe(OpenBundle(good).get()))["entries"];
  TestBundle swapped = good;
  swapped.manifest["entries"] = entries;
  ASSERT_EQ(swapped.manifestSha256(), sha);
  swapped.files["debug/note"] = other.files["debug/note"];
  refused(swapped, DMX_STATUS_CHECKSUM, "entry 'debug/note' does not have its recorded sha256");
  TestBundle weights = good;
  weights.manifest["entries"] = entries;
  weights.files["weights/model.safetensors"].back() ^= 1;
  refused(weights, DMX_STATUS_CHECKSUM, "entry 'weights/model.safetensors' does not have its recorded sha256");
  EXPECT_EQ(OpenBundle(weights).status, DMX_OK) << "without keys weights are left to dmx_bundle_verify";
  TestBundle added = good;
  added.manifest["entries"] = entries;
  added.files["code/more.so"] = kernelObject();
  refused(added, DMX_STATUS_INVALID_BUNDLE, "the archive has");
  EXPECT_EQ(executableMappings(), code) << "nothing of a bundle was mapped executable";
}

/// Everything is read before a session is made, and nothing afterwards.
TEST(Trust, RunsTheBytesThatWereChecked) {
  Scratch scratch;
  TestBundle model = signedModel(ours);
  std::string path = scratch / "m.bundle", folder = scratch / "m";
  writeFile(path, model.zip());
  model.writeDirectory(folder);
  dmx_error error = DMX_ERROR_INIT;
  BundlePtr file, directory;
  ASSERT_EQ(openPath(path, ours, file, error), DMX_OK) << error.message;
  ASSERT_EQ(openPath(folder, ours, directory, error), DMX_OK) << error.message;
  auto overwrite = [](const std::string &name) {
    std::fstream out(name, std::ios::in | std::ios::out | std::ios::binary);
    out << std::string(std::filesystem::file_size(name), '\xCC');
  };
  OpenTrusted memory(model.zip(), {ours});
  ASSERT_EQ(memory.status, DMX_OK) << memory.error.message;
  std::memset(memory.bytes.get(), 0xCC, memory.bytes.size());
  expectRuns(memory.bundle.get());
  overwrite(path);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      overwrite(entry.path());
  expectRuns(file.get());
  expectRuns(directory.get());
  std::filesystem::resize_file(path, 0);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      std::filesystem::resize_file(entry.path(), 0);
  expectRuns(file.get());
  expectRuns(directory.get());
}

/// A bit of every byte, one by one.
TEST(Trust, EveryFlippedByteIsRefused) {
  TestBundle model = addModel(4);
  model.signature = ours.sign(model);
  std::string text = model.zip();
  ASSERT_EQ(OpenTrusted(text, {ours}).status, DMX_OK);
  std::mt19937 random(5);
  for (size_t i = 0; i < text.size(); ++i) {
    char old = text[i];
    text[i] = static_cast<char>(old ^ (1 << random() % 8));
    OpenTrusted open(text, {ours});
    ASSERT_NE(open.status, DMX_OK) << "byte " << i;
    ASSERT_NE(open.status, DMX_STATUS_INTERNAL) << "byte " << i << ": " << open.error.message;
    ASSERT_STRNE(open.error.message, "") << "byte " << i;
    text[i] = old;
  }
}

TEST(Trust, EveryFlippedByteOfADirectoryIsRefused) {
  Scratch scratch;
  TestBundle model = addModel(4);
  model.files["code/cpu/x86-64/kernels.so"].resize(200); // never loaded here
  model.signature = ours.sign(model);
  std::string folder = scratch / "m";
  model.writeDirectory(folder);
  dmx_error error = DMX_ERROR_INIT;
  BundlePtr bundle;
  ASSERT_EQ(openPath(folder, ours, bundle, error), DMX_OK) << error.message;
  std::mt19937 random(6);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file())
      continue;
    std::string text = contentsOf(entry.path());
    ASSERT_FALSE(text.empty());
    for (size_t i = 0; i < text.size(); ++i) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << random() % 8));
      writeFile(entry.path(), flipped);
      ASSERT_NE(openPath(folder, ours, bundle, error), DMX_OK) << entry.path() << " byte " << i;
      ASSERT_STRNE(error.message, "") << entry.path() << " byte " << i;
    }
    writeFile(entry.path(), text);
  }
  EXPECT_EQ(openPath(folder, ours, bundle, error), DMX_OK) << error.message;
}

#endif
