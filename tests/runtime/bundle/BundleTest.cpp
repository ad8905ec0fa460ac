//===- BundleTest.cpp - opening and describing bundles --------------------===//

#include "../RuntimeTest.h"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

using namespace dmxtest;

namespace {

/// A directory of this test's own, removed at its end.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    std::string name = std::filesystem::temp_directory_path() / "dmxrt-XXXXXX";
    if (!mkdtemp(name.data()))
      std::abort();
    path = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }

private:
  std::string path;
};

/// Runs y = a + b over whatever was opened.
void expectAdds(dmx_bundle *bundle) {
  SessionPtr session = makeSession(bundle);
  ASSERT_TRUE(session);
  auto a = iota<float>(10), b = iota<float>(10, 100);
  std::vector<float> y(10);
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 0, a, {10}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 1, b, {10}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {10}), DMX_OK);
  EXPECT_EQ(dmx_session_run(session.get(), nullptr), DMX_OK);
  EXPECT_EQ(y[9], 118.0f);
}

} // namespace

TEST(Bundle, OpensFromPathMemoryAndDescriptor) {
  TemporaryDirectory directory;
  std::string text = addModel(10).zip(), path = directory / "m.bundle";
  writeFile(path, text);
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  ASSERT_EQ(dmx_bundle_open(path.c_str(), &bundle, &error), DMX_OK) << error.message;
  expectAdds(bundle);
  dmx_bundle_close(bundle);

  OpenBundle inMemory(text);
  ASSERT_EQ(inMemory.status, DMX_OK) << inMemory.error.message;
  expectAdds(inMemory.get());

  // Inside another file, at an offset that is no multiple of the page size.
  writeFile(directory / "big", std::string(4096 + 64, 'x') + text + std::string(100, 'y'));
  int fd = open((directory / "big").c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(dmx_bundle_open_fd(fd, 4096 + 64, text.size(), &bundle, &error), DMX_OK) << error.message;
  EXPECT_EQ(dmx_bundle_open_fd(fd, 4096 + 63, 100, &bundle, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_open_fd(fd, 1 << 20, 0, &bundle, &error), DMX_STATUS_INVALID_ARGUMENT);
  close(fd);
  expectAdds(bundle);
  dmx_bundle_close(bundle);
}

TEST(Bundle, OpensDirectories) {
  TemporaryDirectory directory;
  addModel(10).writeDirectory(directory / "m");
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  EXPECT_EQ(dmx_bundle_check_header((directory / "m").c_str(), &error), DMX_OK) << error.message;
  ASSERT_EQ(dmx_bundle_open((directory / "m").c_str(), &bundle, &error), DMX_OK) << error.message;
  EXPECT_EQ(dmx_bundle_verify(bundle, &error), DMX_OK) << error.message;
  expectAdds(bundle);
  dmx_bundle_close(bundle);
  std::filesystem::remove(directory / "m/graph.json");
  EXPECT_EQ(dmx_bundle_open((directory / "m").c_str(), &bundle, &error), DMX_STATUS_IO);
  EXPECT_NE(std::string(error.message).find("graph.json"), std::string::npos);
  std::filesystem::remove(directory / "m/manifest.sha256");
  EXPECT_EQ(dmx_bundle_open((directory / "m").c_str(), &bundle, &error), DMX_STATUS_IO);
  EXPECT_NE(std::string(error.message).find("manifest.sha256"), std::string::npos);
}

TEST(Bundle, PathErrors) {
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = nullptr;
  EXPECT_EQ(dmx_bundle_open("/nonexistent/x.bundle", &bundle, &error), DMX_STATUS_IO);
  EXPECT_NE(std::string(error.message).find("/nonexistent/x.bundle"), std::string::npos);
  EXPECT_EQ(error.status, DMX_STATUS_IO);
  EXPECT_EQ(dmx_bundle_open("/dev/null", &bundle, &error), DMX_STATUS_IO);
  EXPECT_EQ(dmx_bundle_open(nullptr, &bundle, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_open("x", nullptr, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_open_memory(nullptr, 10, &bundle, &error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_open_fd(-1, 0, 0, &bundle, &error), DMX_STATUS_IO);
  EXPECT_EQ(dmx_bundle_verify(nullptr, &error), DMX_STATUS_INVALID_ARGUMENT);
  TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(dmx_bundle_open((directory / "pipe").c_str(), &bundle, &error), DMX_STATUS_IO) << "and does not wait";
  EXPECT_NE(std::string(error.message).find("not a regular file"), std::string::npos);
  writeFile(directory / "empty", "");
  EXPECT_EQ(dmx_bundle_open((directory / "empty").c_str(), &bundle, &error), DMX_STATUS_INVALID_BUNDLE);
  EXPECT_EQ(bundle, nullptr);
  dmx_bundle_close(nullptr);
}

TEST(Bundle, CheckHeaderReadsTheManifestOnly) {
  TemporaryDirectory directory;
  TestBundle model = addModel(10);
  std::string text = model.zip(), path = directory / "m.bundle";
  size_t graph = text.find("\"graphs\"");
  text[graph + 1] = 'X';
  writeFile(path, text);
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_bundle_check_header(path.c_str(), &error), DMX_OK) << error.message;
  dmx_bundle *bundle = nullptr;
  EXPECT_EQ(dmx_bundle_open(path.c_str(), &bundle, &error), DMX_STATUS_CHECKSUM);
  EXPECT_NE(std::string(error.message).find("graph.json"), std::string::npos);
  text[text.find("\"producer\"") + 1] = 'X';
  writeFile(path, text);
  EXPECT_EQ(dmx_bundle_check_header(path.c_str(), &error), DMX_STATUS_CHECKSUM);
  EXPECT_NE(std::string(error.message).find("manifest.json"), std::string::npos);
}

TEST(Bundle, VerifyFindsChangedWeights) {
  TestBundle model = batchModel();
  model.files["tests/input_0.bin"] = "hello";
  std::string text = model.zip();
  size_t data = text.find(std::string("\x00\x00\x80\x3f\x00\x00\x80\x3f", 8)); // 1.0f 1.0f
  ASSERT_NE(data, std::string::npos);
  OpenBundle good(text);
  ASSERT_EQ(good.status, DMX_OK) << good.error.message;
  EXPECT_EQ(dmx_bundle_verify(good.get(), &good.error), DMX_OK) << good.error.message;
  text[data] = 1;
  OpenBundle bad(text);
  ASSERT_EQ(bad.status, DMX_OK) << "weights are checked on request";
  EXPECT_EQ(dmx_bundle_verify(bad.get(), &bad.error), DMX_STATUS_CHECKSUM);
  EXPECT_NE(std::string(bad.error.message).find("weights/model.safetensors"), std::string::npos);
}

TEST(Bundle, EntriesAndDescription) {
  TestBundle model = addModel(10);
  model.files["tests/input_0.bin"] = "hello";
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  const void *data = nullptr;
  size_t size = 0;
  ASSERT_EQ(dmx_bundle_entry(open.get(), "tests/input_0.bin", &data, &size, nullptr), DMX_OK);
  EXPECT_EQ(std::string(static_cast<const char *>(data), size), "hello");
  EXPECT_EQ(dmx_bundle_entry(open.get(), "nothing", &data, &size, &open.error), DMX_STATUS_INVALID_ARGUMENT);
  Json manifest = Json::parse(dmx_bundle_describe(open.get()));
  EXPECT_EQ(manifest["producer"]["name"], "test");
  EXPECT_EQ(dmx_bundle_describe(nullptr), nullptr);
}

TEST(Bundle, TensorInfo) {
  OpenBundle open(batchModel());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  dmx_bundle *bundle = open.get();
  EXPECT_EQ(dmx_bundle_entry_point_count(bundle), 1u);
  EXPECT_STREQ(dmx_bundle_entry_point_name(bundle, 0), "main");
  EXPECT_EQ(dmx_bundle_entry_point_name(bundle, 1), nullptr);
  EXPECT_EQ(dmx_bundle_tensor_count(bundle, nullptr, DMX_INPUT), 1u);
  EXPECT_EQ(dmx_bundle_tensor_count(bundle, "main", DMX_OUTPUT), 1u);
  EXPECT_EQ(dmx_bundle_tensor_count(bundle, "other", DMX_OUTPUT), 0u);
  dmx_tensor_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_bundle_tensor_info(bundle, nullptr, DMX_INPUT, 0, &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype, DMX_DTYPE_F32);
  ASSERT_EQ(info.rank, 2u);
  EXPECT_STREQ(info.dims[0].name, "batch");
  EXPECT_EQ(info.dims[0].min, 1);
  EXPECT_EQ(info.dims[0].max, 64);
  EXPECT_EQ(info.dims[1].name, nullptr);
  EXPECT_EQ(info.dims[1].min, 4);
  EXPECT_EQ(info.dims[1].max, 4);
  uint32_t index = 7;
  EXPECT_EQ(dmx_bundle_find_tensor(bundle, nullptr, DMX_OUTPUT, "y", &index, nullptr), DMX_OK);
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(dmx_bundle_find_tensor(bundle, nullptr, DMX_INPUT, "z", &index, &open.error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(open.error.message).find("there are 'x'"), std::string::npos) << open.error.message;
  EXPECT_EQ(dmx_bundle_tensor_info(bundle, nullptr, DMX_INPUT, 1, &info, nullptr), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_tensor_info(bundle, nullptr, 5, 0, &info, nullptr), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(dmx_bundle_tensor_info(bundle, "nope", DMX_INPUT, 0, &info, &open.error), DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(open.error.message).find("it has 'main'"), std::string::npos);
}

TEST(Bundle, WordsOfTheModel) {
  TestBundle model = batchModel();
  OpenBundle silent(model);
  ASSERT_EQ(silent.status, DMX_OK) << silent.error.message;
  EXPECT_EQ(dmx_bundle_metadata(silent.get(), "labels"), nullptr);
  model.manifest["format"]["minor"] = 3;
  model.manifest["model"]["metadata"] = {{"labels", "cat, d\u00f6g"}, {"", "nameless"}};
  model.manifest["entry_points"][0]["outputs"][0]["description"] = "scores";
  OpenBundle open(model);
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  EXPECT_STREQ(dmx_bundle_metadata(open.get(), "labels"), "cat, d\u00f6g");
  EXPECT_STREQ(dmx_bundle_metadata(open.get(), ""), "nameless");
  EXPECT_EQ(dmx_bundle_metadata(open.get(), "label"), nullptr);
  EXPECT_EQ(dmx_bundle_metadata(open.get(), nullptr), nullptr);
  EXPECT_EQ(dmx_bundle_metadata(nullptr, "labels"), nullptr);
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT}) {
    dmx_tensor_info info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(dmx_bundle_tensor_info(open.get(), nullptr, io, 0, &info, nullptr), DMX_OK);
    EXPECT_STREQ(info.description, io == DMX_INPUT ? nullptr : "scores");
  }
}

TEST(Bundle, ComputedOutputDimsAreDescribed) {
  ModelBuilder builder;
  builder.dim("n", 2, 8, 0, 0);
  int x = builder.input("x", "f32", {"n"});
  int y = builder.output("y", "f32", {Json::array({"mul", "n", Json::array({"add", "n", 1})})});
  builder.dispatch("add", {x, x, y}, 1, 0);
  OpenBundle open(builder.finish());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  dmx_tensor_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(dmx_bundle_tensor_info(open.get(), nullptr, DMX_OUTPUT, 0, &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.dims[0].name, "n * (n + 1)");
  EXPECT_EQ(info.dims[0].min, 6);
  EXPECT_EQ(info.dims[0].max, 72);
}

/// A caller built against a shorter struct gets no more than it has room for.
TEST(Bundle, StructSizeIsRespected) {
  OpenBundle open(addModel(4));
  ASSERT_EQ(open.status, DMX_OK);
  dmx_tensor_info info;
  std::memset(&info, 0x5A, sizeof info);
  info.struct_size = offsetof(dmx_tensor_info, rank);
  ASSERT_EQ(dmx_bundle_tensor_info(open.get(), nullptr, DMX_INPUT, 0, &info, nullptr), DMX_OK);
  EXPECT_STREQ(info.name, "a");
  EXPECT_EQ(info.rank, 0x5A5A5A5Au);
  info.struct_size = 0;
  EXPECT_EQ(dmx_bundle_tensor_info(open.get(), nullptr, DMX_INPUT, 0, &info, nullptr), DMX_STATUS_INVALID_ARGUMENT);

  // An error struct with room for 16 characters.
  struct Small {
    size_t struct_size;
    dmx_status status;
    char message[16];
    char after[16];
  } small;
  std::memset(&small, 0x5A, sizeof small);
  small.struct_size = offsetof(Small, after);
  dmx_bundle *none = nullptr;
  EXPECT_EQ(dmx_bundle_open("/nonexistent/with/a/long/name", &none, reinterpret_cast<dmx_error *>(&small)),
            DMX_STATUS_IO);
  EXPECT_EQ(small.status, DMX_STATUS_IO);
  EXPECT_EQ(std::string(small.message), "/nonexistent/wi");
  EXPECT_EQ(small.after[0], 0x5A);
}
