//===- ReaderTest.cpp - broken and hostile model files --------------------===//
#include "ModelBuilder.h"
#include "onnx/reader/WireReader.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxc;
using namespace dmxc::test;
using namespace dmxc::onnxfe;

namespace {

Result<std::string> slim(const std::string &bytes) {
  return slimModel({reinterpret_cast<const std::byte *>(bytes.data()), bytes.size()});
}

ModelBuilder addModel() {
  ModelBuilder b;
  b.input("x", "16,16").output("y").weights("w", {16, 16}, 2);
  b.node("Add", {"x", "w"}, {"y"}, "add");
  return b;
}

TEST(WireReader, CutsRawDataAndRemembersItsPlace) {
  std::string bytes = addModel().bytes();
  Result<std::string> copy = slim(bytes);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_LT(copy->size(), bytes.size() - 1000);
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*copy));
  const onnx::TensorProto &w = model.graph().initializer(0);
  ASSERT_TRUE(w.has_segment());
  EXPECT_FALSE(w.has_raw_data());
  EXPECT_EQ(w.segment().end() - w.segment().begin(), 1024);
  float first;
  std::memcpy(&first, bytes.data() + w.segment().begin(), 4);
  EXPECT_EQ(first, 2);
}

TEST(WireReader, KeepsSmallRawData) {
  ModelBuilder b;
  b.weights("w", {4});
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(*slim(b.bytes())));
  EXPECT_EQ(model.graph().initializer(0).raw_data().size(), 16u);
}

TEST(WireReader, RefusesSegmentsOfTheFile) {
  ModelBuilder b;
  b.weights("w", {4}).mutable_segment()->set_begin(0);
  Result<std::string> copy = slim(b.bytes());
  ASSERT_FALSE(copy);
  EXPECT_NE(copy.error().message.find("segments"), std::string::npos);
}

TEST(WireReader, NamesWhatIsBroken) {
  struct Row {
    std::string bytes, words;
  };
  std::string elevenByteVarint = std::string("\x08") + std::string(10, '\xff') + "\x01";
  for (const Row &row :
       {Row{"", "empty"}, Row{std::string("\x0a\x7f", 2), "claims 127 bytes but only 0 remain"},
        Row{elevenByteVarint, "longer than 10 bytes"}, Row{std::string("\x0b", 1), "wire type 3"},
        Row{std::string("\x00\x00", 2), "out of range"},
        Row{std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), "claims 18446744073709551615 bytes"}}) {
    Result<std::string> copy = slim(row.bytes);
    ASSERT_FALSE(copy) << row.words;
    EXPECT_NE(copy.error().message.find(row.words), std::string::npos) << copy.error().message;
  }
}

TEST(WireReader, RefusesDeepNesting) {
  onnx::GraphProto inner;
  for (int i = 0; i < 60; ++i) {
    onnx::GraphProto outer;
    auto &attribute = *outer.add_node()->add_attribute();
    *attribute.mutable_g() = inner;
    inner.Swap(&outer);
  }
  onnx::ModelProto model;
  *model.mutable_graph() = inner;
  Result<std::string> copy = slim(model.SerializeAsString());
  ASSERT_FALSE(copy);
  EXPECT_NE(copy.error().message.find("nested deeper"), std::string::npos) << copy.error().message;
}

TEST(Reader, EveryTruncationIsAnError) {
  TempDir dir;
  std::string bytes = addModel().bytes();
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 37) {
    ImportRun run(optionsFor(dir.write("t.onnx", bytes.substr(0, size))));
    // Between two fields a cut cannot be seen by the wire; then the model lacks
    // something.
    EXPECT_EQ(run.imported.has_value(), run.diagnostics.errorCount() == 0) << size << run.text();
  }
}

TEST(Reader, MutatedModelsNeverCrash) {
  TempDir dir;
  std::string bytes = addModel().bytes();
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    std::string broken = bytes;
    for (int k = 0; k < 1 + round % 4; ++k)
      broken[random() % 120 % broken.size()] = static_cast<char>(random());
    ImportRun run(optionsFor(dir.write("m.onnx", broken)));
    EXPECT_TRUE(run.imported.has_value() || run.diagnostics.errorCount() > 0) << round;
  }
}

TEST(Reader, MissingFileIsAnIOError) {
  ImportRun run(optionsFor("/nonexistent/model.onnx"));
  EXPECT_FALSE(run.imported);
  EXPECT_EQ(run.diagnostics.exitCode(), 3);
}

TEST(Reader, LargeRawWeightsStayInTheFile) {
  TempDir dir;
  ImportRun run(optionsFor(dir.write("m.onnx", addModel().bytes())));
  ASSERT_TRUE(run.imported) << run.text();
  EXPECT_NE(run.ir().find("#dmir.file<"), std::string::npos) << run.ir();
  EXPECT_EQ(run.imported->files.size(), 1u);
}

TEST(Reader, WrongDataSizeIsNamed) {
  TempDir dir;
  ModelBuilder b = addModel();
  b.graph().mutable_initializer(0)->set_dims(0, 17);
  ImportRun run(optionsFor(dir.write("m.onnx", b.bytes())));
  EXPECT_FALSE(run.imported);
  EXPECT_NE(run.text().find("1024 bytes of data but f32 of shape 17x16 needs 1088"), std::string::npos) << run.text();
}

//===--- External data
//----------------------------------------------------------===//

ModelBuilder externalModel(const std::string &location, const std::string &offset = "",
                           const std::string &length = "") {
  ModelBuilder b = addModel();
  onnx::TensorProto &w = *b.graph().mutable_initializer(0);
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto add = [&](const char *key, const std::string &value) {
    if (value.empty())
      return;
    auto &entry = *w.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
  return b;
}

TEST(ExternalData, IsMappedAndListed) {
  TempDir dir;
  dir.write("w.bin", std::string(3, 'x') + std::string(1024, '\0'));
  ImportRun run(optionsFor(dir.write("m.onnx", externalModel("w.bin", "3", "1024").bytes())));
  ASSERT_TRUE(run.imported) << run.text();
  ASSERT_EQ(run.imported->files.size(), 2u);
  EXPECT_EQ(run.imported->files[1], (dir.path / "w.bin").string());
  EXPECT_NE(run.ir().find("w.bin\", 3, 1024>"), std::string::npos) << run.ir();
}

TEST(ExternalData, RefusesWhatLeadsOutOrIsShort) {
  TempDir dir, other;
  other.write("secret.bin", std::string(4096, 's'));
  dir.write("short.bin", std::string(100, 's'));
  std::filesystem::create_symlink(other.path / "secret.bin", dir.path / "link.bin");
  struct Row {
    std::string location, offset, length, words;
  };
  for (const Row &row :
       {Row{(other.path / "secret.bin").string(), "", "", "absolute path"}, Row{"../secret.bin", "", "", "'..'"},
        Row{"a/../../x", "", "", "'..'"}, Row{"link.bin", "", "", "link leads out"},
        Row{"missing.bin", "", "", "cannot be read"}, Row{"short.bin", "", "", "has only 100"},
        Row{"short.bin", "18446744073709551615", "", "has only 100"}, Row{"short.bin", "-1", "", "not a number"},
        Row{"short.bin", "0", "50", "50 bytes of data"}, Row{"", "", "", "without a file name"},
        Row{".", "", "", "."}}) {
    ImportRun run(optionsFor(dir.write("m.onnx", externalModel(row.location, row.offset, row.length).bytes())));
    EXPECT_FALSE(run.imported) << row.location;
    EXPECT_NE(run.text().find(row.words), std::string::npos) << run.text();
    EXPECT_NE(run.text().find("'w'"), std::string::npos) << run.text();
  }
}

TEST(ExternalData, OtherFolderWhenAllowed) {
  TempDir dir, other;
  other.write("w.bin", std::string(1024, '\0'));
  ImportOptions options = optionsFor(dir.write("m.onnx", externalModel("w.bin").bytes()));
  options.externalDataDirs = {other.path.string()};
  ImportRun run(options);
  EXPECT_TRUE(run.imported) << run.text();
}

} // namespace
