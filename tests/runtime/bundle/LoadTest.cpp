//===- LoadTest.cpp - mapped and copied bundles ---------------------------===//
//
// What happens to a bundle's bytes while it is open: with DMX_BUNDLE_COPY nothing matters, without it only the
// weights follow the file.
//
//===----------------------------------------------------------------------===//

#include "../RuntimeTest.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

using namespace dmxtest;

namespace {

constexpr size_t kLarge = 1 << 16;

class Load : public testing::Test {
protected:
  Load() {
    std::string name = std::filesystem::temp_directory_path() / "dmxrt-load-XXXXXX";
    if (!mkdtemp(name.data()))
      std::abort();
    folder = name;
    path = folder / "m.bundle";
  }
  ~Load() override { std::filesystem::remove_all(folder); }

  std::filesystem::path folder, path;
};

BundlePtr openWith(const std::string &path, uint32_t flags) {
  dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
  options.flags = flags;
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  EXPECT_EQ(dmx_bundle_open_with(path.c_str(), &options, &bundle, &error), DMX_OK) << error.message;
  return BundlePtr(bundle);
}

/// y = x + c with weights of many pages.
TestBundle weightsModel() {
  ModelBuilder builder;
  int64_t n = kLarge;
  int x = builder.input("x", "f32", {n}), y = builder.output("y", "f32", {n});
  auto values = iota<float>(kLarge);
  int c = builder.constant(std::string(reinterpret_cast<const char *>(values.data()), n * sizeof(float)), "f32", {n});
  builder.dispatch("add", {x, c, y}, 1, n);
  return builder.finish();
}

/// The last element that y = x + c gives for x = 1.
float runLast(dmx_bundle *bundle) {
  SessionPtr session = makeSession(bundle);
  std::vector<float> x(kLarge, 1), y(kLarge);
  int64_t n = kLarge;
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 0, x, {n}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {n}), DMX_OK);
  EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  return y.back();
}

/// Writes 0xCC, which is a trap as code and no JSON, over all of a file in place.
void overwrite(const std::filesystem::path &path) {
  int fd = open(path.c_str(), O_WRONLY);
  std::string trap(std::filesystem::file_size(path), '\xCC');
  EXPECT_EQ(pwrite(fd, trap.data(), trap.size(), 0), static_cast<ssize_t>(trap.size()));
  close(fd);
}

/// With code of a level "base" beside the one that is taken.
TestBundle modelOfTwoLevels() {
  TestBundle model = addModel(4);
  Json best = model.manifest["targets"][0], base = best;
  base["arch"] = "base", base["entry"] = "code/cpu/base/kernels.so", base["features"] = Json::array();
  model.files["code/cpu/base/kernels.so"] = model.files["code/cpu/x86-64/kernels.so"];
  model.manifest["targets"] = {base, best};
  return model;
}

dmx_status createAt(const dmx_bundle *bundle, const char *isa, std::string &message) {
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.isa = isa;
  dmx_error error = DMX_ERROR_INIT;
  dmx_session *session = nullptr;
  dmx_status status = dmx_session_create(bundle, nullptr, &options, &session, &error);
  message = error.message;
  dmx_session_destroy(session);
  return status;
}

} // namespace

TEST_F(Load, ACopyDoesNotFollowItsFile) {
  std::string text = weightsModel().zip();
  for (auto spoil : {+[](const std::filesystem::path &file) { std::filesystem::resize_file(file, 0); }, +overwrite}) {
    writeFile(path, text);
    BundlePtr bundle = openWith(path, DMX_BUNDLE_COPY);
    ASSERT_TRUE(bundle);
    spoil(path);
    EXPECT_EQ(dmx_bundle_verify(bundle.get(), nullptr), DMX_OK);
    EXPECT_EQ(runLast(bundle.get()), float(kLarge));
  }
  weightsModel().writeDirectory(folder / "m");
  BundlePtr bundle = openWith(folder / "m", DMX_BUNDLE_COPY);
  ASSERT_TRUE(bundle);
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder / "m"))
    if (entry.is_regular_file())
      std::filesystem::resize_file(entry, 0);
  EXPECT_EQ(dmx_bundle_verify(bundle.get(), nullptr), DMX_OK);
  EXPECT_EQ(runLast(bundle.get()), float(kLarge));
}

TEST_F(Load, ACopyOfMemoryAndOfADescriptor) {
  std::string text = weightsModel().zip();
  std::vector<char> memory(text.size() + 1); // and at an address that is not aligned
  std::memcpy(memory.data() + 1, text.data(), text.size());
  dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
  options.flags = DMX_BUNDLE_COPY;
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  ASSERT_EQ(dmx_bundle_open_memory_with(memory.data() + 1, text.size(), &options, &bundle, &error), DMX_OK)
      << error.message;
  std::memset(memory.data(), 0xCC, memory.size());
  EXPECT_EQ(runLast(bundle), float(kLarge));
  dmx_bundle_close(bundle);

  writeFile(path, std::string(64, 'x') + text + "tail");
  int fd = open(path.c_str(), O_RDONLY);
  ASSERT_EQ(dmx_bundle_open_fd_with(fd, 64, text.size(), &options, &bundle, &error), DMX_OK) << error.message;
  close(fd);
  overwrite(path);
  EXPECT_EQ(runLast(bundle), float(kLarge));
  dmx_bundle_close(bundle);
}

/// What was hashed at open is what runs, mapped or not.
TEST_F(Load, CodeIsNotReadAgain) {
  writeFile(path, addModel(4).zip());
  BundlePtr bundle = openWith(path, 0);
  ASSERT_TRUE(bundle);
  overwrite(path);
  SessionPtr session = makeSession(bundle.get());
  ASSERT_TRUE(session) << "the code was read from the file again";
  auto a = iota<float>(4), b = iota<float>(4, 100);
  std::vector<float> y(4);
  bindVector(session.get(), DMX_INPUT, 0, a, {4});
  bindVector(session.get(), DMX_INPUT, 1, b, {4});
  bindVector(session.get(), DMX_OUTPUT, 0, y, {4});
  EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  EXPECT_EQ(y.back(), 106.0f);

  const void *data = nullptr;
  size_t size = 0;
  for (const char *name : {"manifest.json", "graph.json"}) {
    ASSERT_EQ(dmx_bundle_entry(bundle.get(), name, &data, &size, nullptr), DMX_OK);
    EXPECT_EQ(*static_cast<const char *>(data), '{') << name;
  }
}

/// The same where the caller writes into its memory.
TEST_F(Load, CodeIsNotReadAgainFromMemory) {
  OpenBundle open(addModel(4));
  ASSERT_EQ(open.status, DMX_OK);
  std::memset(open.bytes.get(), 0xCC, open.bytes.size());
  EXPECT_TRUE(makeSession(open.get()));
}

/// Code that no session takes here without asking is left alone at open, and checked by who asks for it.
TEST_F(Load, CodeOfAnotherLevelIsCheckedWhenItIsTaken) {
  TestBundle model = modelOfTwoLevels();
  std::string text = model.zip();
  size_t at = text.find(model.files["code/cpu/base/kernels.so"]); // entries lie in the order of their names
  ASSERT_NE(at, text.npos);
  std::string message;
  for (bool damaged : {false, true}) {
    if (damaged)
      text[at + 100] ^= 1;
    writeFile(path, text);
    BundlePtr bundle = openWith(path, 0);
    ASSERT_TRUE(bundle);
    EXPECT_EQ(createAt(bundle.get(), nullptr, message), DMX_OK) << message;
    dmx_status wanted = damaged ? DMX_STATUS_CHECKSUM : DMX_OK;
    for (int repeat = 0; repeat < 2; ++repeat)
      EXPECT_EQ(createAt(bundle.get(), "base", message), wanted) << message;
    EXPECT_EQ(dmx_bundle_verify(bundle.get(), nullptr), wanted);
    for (uint32_t flags : {DMX_BUNDLE_COPY, DMX_BUNDLE_CONTRACTS}) { // which look at all code
      dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
      options.flags = flags;
      dmx_bundle *other = nullptr;
      dmx_status status = dmx_bundle_open_with(path.c_str(), &options, &other, nullptr);
      EXPECT_EQ(status == DMX_STATUS_CHECKSUM, damaged) << flags;
      dmx_bundle_close(other);
    }
  }
  createAt(openWith(path, 0).get(), "base", message);
  EXPECT_NE(message.find("'code/cpu/base/kernels.so' does not have its recorded sha256"), message.npos) << message;
}

/// And once it was taken, it is not read again.
TEST_F(Load, CodeOfAnotherLevelIsNotReadAgain) {
  writeFile(path, modelOfTwoLevels().zip());
  BundlePtr bundle = openWith(path, 0);
  std::string message;
  EXPECT_EQ(createAt(bundle.get(), "base", message), DMX_OK) << message;
  overwrite(path);
  EXPECT_EQ(createAt(bundle.get(), "base", message), DMX_OK) << message;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they report the signal themselves
/// What dmx.h says of a mapped file that is truncated.
TEST_F(Load, AMappedFileMustNotBeTruncated) {
  writeFile(path, weightsModel().zip());
  BundlePtr bundle = openWith(path, 0);
  ASSERT_TRUE(bundle);
  std::filesystem::resize_file(path, 4096);
  EXPECT_EXIT(runLast(bundle.get()), testing::KilledBySignal(SIGBUS), "");
  // Replacing it is safe.
  writeFile(path, weightsModel().zip());
  bundle = openWith(path, 0);
  writeFile(folder / "new", "something else");
  std::filesystem::rename(folder / "new", path);
  EXPECT_EQ(runLast(bundle.get()), float(kLarge));
}
#endif

TEST_F(Load, OptionsThatAreNotKnownAreRefused) {
  writeFile(path, addModel(4).zip());
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  auto open = [&](const void *options) {
    dmx_bundle_close(bundle);
    bundle = nullptr;
    return dmx_bundle_open_with(path.c_str(), static_cast<const dmx_bundle_options *>(options), &bundle, &error);
  };
  EXPECT_EQ(open(nullptr), DMX_OK) << error.message;
  dmx_bundle_options options = DMX_BUNDLE_OPTIONS_INIT;
  options.struct_size = 0;
  EXPECT_EQ(open(&options), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("DMX_BUNDLE_OPTIONS_INIT"), std::string::npos) << error.message;
  options = DMX_BUNDLE_OPTIONS_INIT;
  options.flags = 1u << 31;
  EXPECT_EQ(open(&options), DMX_STATUS_UNSUPPORTED);

  // A caller built against a newer header.
  struct {
    dmx_bundle_options known = DMX_BUNDLE_OPTIONS_INIT;
    uint64_t more = 0;
  } longer;
  longer.known.struct_size = sizeof longer;
  EXPECT_EQ(open(&longer), DMX_OK) << error.message;
  longer.more = 1;
  EXPECT_EQ(open(&longer), DMX_STATUS_UNSUPPORTED);
  EXPECT_NE(std::string(error.message).find("use a newer one"), std::string::npos) << error.message;
  // One built against an older one.
  options = DMX_BUNDLE_OPTIONS_INIT;
  options.struct_size = offsetof(dmx_bundle_options, flags);
  options.flags = ~0u;
  EXPECT_EQ(open(&options), DMX_OK) << error.message;
  dmx_bundle_close(bundle);
}
