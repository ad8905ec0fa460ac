//===- LoadTest.cpp - mapped and copied bundles ---------------------------===//
//
// What happens to a bundle's bytes while it is open: with DMX_BUNDLE_COPY nothing matters, without it only the
// weights follow the file.
//
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

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
