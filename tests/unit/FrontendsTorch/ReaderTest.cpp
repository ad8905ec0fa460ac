//===- ReaderTest.cpp - archives, programs, payloads, pickles -------------===//
#include "ArchiveBuilder.h"

#include "frontends/torch/SymbolicExpr.h"
#include "frontends/torch/reader/ModelFile.h"
#include "frontends/torch/reader/Pickle.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace dmxc;
using namespace dmxc::torchfe;
using namespace torchtest;

namespace {

std::span<const std::byte> bytesOf(const std::string &text) {
  return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

std::string floats(const std::vector<float> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)};
}

const std::string three = R"([{"as_int":3}])", one = R"([{"as_int":1}])";

/// An archive of torch 2.9 with the weight's table and bytes.
Records archive(const std::string &config, const std::string &weight) {
  return {{"archive_format", "pt2"},
          {"archive_version", "0"},
          {"byteorder", "little"},
          {"models/model.json", programJson()},
          {"data/weights/model_weights_config.json", config},
          {"data/weights/weight_0", weight}};
}

Result<ModelFile> read(const Records &records, const std::string &root = "m") {
  return readModelFile(mapped(makeArchive(records, root)), "");
}

std::vector<float> weightOf(const Result<ModelFile> &file) {
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  Result<Payload> payload = file->weights.read("w");
  EXPECT_TRUE(payload) << (payload ? "" : payload.error().message);
  std::vector<float> values(payload->tensor.numElements());
  std::memcpy(values.data(), payload->tensor.data(), payload->tensor.byteSize());
  return values;
}

std::string errorOf(const Records &records) {
  Result<ModelFile> file = read(records);
  if (!file)
    return file.error().message;
  Result<Payload> payload = file->weights.read("w");
  return payload ? "" : payload.error().message;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Archive, FindsRecordsWhateverTheRootIs) {
  for (const char *root : {"m", "linear.export", "archive", ""}) {
    Result<Archive> read = Archive::read(bytesOf(makeArchive({{"a/b", "xyz"}, {"c", ""}}, root)));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(read->find("a/b")) << root;
    EXPECT_EQ(read->find("a/b")->text(), "xyz");
    EXPECT_EQ(read->find("a/b")->offset % 64, 0u);
    EXPECT_TRUE(read->has("c"));
    EXPECT_FALSE(read->has("b"));
  }
}

TEST(Archive, RefusesHostileNamesAndDamage) {
  auto error = [](const std::string &bytes) {
    Result<Archive> read = Archive::read(bytesOf(bytes));
    return read ? std::string() : read.error().message;
  };
  for (const char *name : {"../x", "a/../../x", "/etc/passwd", "a\\b", "c:/x", "a//b", "./a"})
    EXPECT_HAS(error(makeArchive({{name, "1"}}, "")), "its name") << name;
  EXPECT_HAS(error(makeArchive({{"a", "1"}, {"a", "2"}})), "stands twice");
  std::string good = makeArchive({{"a", "hello"}, {"b", "world"}});
  EXPECT_EQ(error(good), "");
  std::string flipped = good;
  flipped[flipped.find("hello")] = 'j';
  EXPECT_HAS(error(flipped), "checksum");
  for (size_t cut : {size_t(1), size_t(21), size_t(60), good.size() / 2, good.size()})
    EXPECT_NE(error(good.substr(0, good.size() - cut)), "") << cut;
  EXPECT_HAS(error("hello world"), "no zip end record");
  std::string packed = good;
  for (size_t at = packed.find("PK\1\2"); at != std::string::npos; at = packed.find("PK\1\2", at + 1))
    packed[at + 10] = 8;
  EXPECT_HAS(error(packed), "compressed");
}

TEST(Payloads, AreViewsOfTheFile) {
  std::string weight = floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(weightOf(read(archive(configJson(three, one, 0), weight))), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(weightOf(read(archive(configJson(three, one, 7), weight))), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(weightOf(read(archive(configJson(three, R"([{"as_int":2}])", 3), weight))), (std::vector<float>{3, 5, 7}));
  EXPECT_EQ(weightOf(read(archive(configJson(three, R"([{"as_int":0}])", 4), weight))), (std::vector<float>{4, 4, 4}));
  std::string matrix = R"([{"as_int":2},{"as_int":3}])", transposed = R"([{"as_int":1},{"as_int":2}])";
  EXPECT_EQ(weightOf(read(archive(configJson(matrix, transposed, 1), weight))), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  Result<ModelFile> file = read(archive(configJson(three, one, 1), weight));
  ASSERT_TRUE(file);
  Result<Payload> payload = file->weights.read("w");
  ASSERT_TRUE(payload);
  EXPECT_TRUE(payload->mapped);
}

TEST(Payloads, RefuseNumbersThatAreNoTensors) {
  std::string weight = floats({0, 1, 2, 3});
  EXPECT_HAS(errorOf(archive(configJson(three, one, 2), weight)), "needs 20 bytes, the record has 16");
  EXPECT_HAS(errorOf(archive(configJson(three, one, -1), weight)), "offset -1 are not those of a tensor");
  EXPECT_HAS(errorOf(archive(configJson(three, R"([{"as_int":-1}])", 2), weight)), "strides [-1]");
  EXPECT_HAS(errorOf(archive(configJson(R"([{"as_int":-3}])", one, 0), weight)), "sizes [-3]");
  EXPECT_HAS(errorOf(archive(configJson(R"([{"as_int":4611686018427387904}])", one, 0), weight)),
             "not those of a tensor");
  EXPECT_HAS(errorOf(archive(configJson(R"([{"as_int":35184372088832}])", R"([{"as_int":0}])", 0), weight)),
             "too often");
  EXPECT_HAS(errorOf(archive(configJson(R"([{"as_int":3},{"as_int":3}])", one, 0), weight)), "not those of a tensor");
  EXPECT_HAS(errorOf(archive(configJson(three, one, 0, "../../etc/passwd"), weight)), "no name of a record");
  EXPECT_HAS(errorOf(archive(configJson(three, one, 0, "weight_9"), weight)), "no such record");
  EXPECT_HAS(errorOf(archive(configJson(three, one, 0), "")), "without its weights");
  EXPECT_HAS(errorOf(archive(configJson(three, one, 0, "weight_0", 10), weight)), "needs 24 bytes"); // complex64
  EXPECT_HAS(errorOf(archive(configJson(three, one, 0, "weight_0", 99), weight)), "type 99");
  EXPECT_EQ(errorOf(archive(configJson(R"([{"as_int":0}])", one, 0), "")), "");
}

TEST(ModelFile, AllLayouts) {
  std::string storage = floats({1, 2, 3, 4});
  std::string nested = makeArchive({{"data.pkl", pickle(1)}, {"byteorder", "little"}, {"data/0", storage}}, "archive");
  Records middle{{"archive_format", "pt2"},
                 {"archive_version", "0"},
                 {"models/model.json", programJson()},
                 {"data/weights/model.pt", nested}};
  EXPECT_EQ(weightOf(read(middle)), (std::vector<float>{2, 3, 4}));
  Records legacy{
      {"serialized_exported_program.json", programJson()}, {"serialized_state_dict.pt", nested}, {"version", "8.2"}};
  EXPECT_EQ(weightOf(read(legacy, "")), (std::vector<float>{2, 3, 4}));
  std::string big = makeArchive({{"data.pkl", pickle()}, {"byteorder", "big"}, {"data/0", storage}}, "archive");
  middle.back().second = big;
  EXPECT_HAS(errorOf(middle), "not little-endian");
  Records raw = archive(configJson(three, one, 0), storage);
  raw[2].second = "big";
  EXPECT_HAS(errorOf(raw), "'byteorder'");
}

TEST(Pickle, RefusesWhatIsNoTensor) {
  auto error = [](const std::string &code) {
    auto read = readPickledTensors(bytesOf(code));
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(error(pickle()), "");
  EXPECT_HAS(error(pickle(0, "os\nsystem")), "'os.system'");
  EXPECT_HAS(error(pickle(0, "torch._export.serde.serialize\n_reconstruct_fake_tensor")), "_reconstruct_fake_tensor");
  EXPECT_HAS(error(std::string("\x80\x02(ios\nsystem\n.")), "opcode 105");
  EXPECT_HAS(error(std::string("\x80\x02h\x07.")), "recalls the value 7");
  EXPECT_HAS(error(std::string("\x80\x02X\x01\0\0\0a)R.", 11)), "no function");
  EXPECT_HAS(error(std::string("\x80\x02X\xff\xff\0\0ab", 9)), "ends in the middle");
  EXPECT_HAS(error("\x80\x02]q\1h\1a."), "no dictionary"); // a list that holds itself
  EXPECT_HAS(error("\x80\x02K\1."), "no dictionary");
  EXPECT_HAS(error("\x80\x02."), "empty stack");
  std::string deep = "\x80\x02" + std::string(5'000'000, '(');
  EXPECT_HAS(error(deep), "more values");
}

TEST(Program, RefusesWhatItDoesNotKnow) {
  auto error = [](std::string json, const std::string &from, const std::string &to) {
    size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    auto read = readProgram(json.replace(at, from.size(), to), "models/model.json");
    return read ? std::string() : read.error().message;
  };
  std::string json = programJson();
  EXPECT_EQ(error(json, "2.9.0", "2.9.1"), "");
  EXPECT_HAS(error(json, R"("major":8)", R"("major":9)"), "schema version 9");
  EXPECT_HAS(error(json, R"({"as_tensor":{"name":"x"}},"kind")", R"({"as_hologram":1},"kind")"), "as_hologram");
  EXPECT_HAS(error(json, R"({"as_tensor":{"name":"x"}},"kind")", R"({"as_int":1,"as_none":true},"kind")"), "2 tags");
  EXPECT_HAS(error(json, R"("torch.ops.aten.add.Tensor")", "7"), "nodes[0].target is no string");
  EXPECT_HAS(
      error(json, R"({"user_input":{"arg":{"as_tensor":{"name":"x"}}}})", R"({"custom_obj":{"arg":{"name":"x"}}})"),
      "'custom_obj'");
  EXPECT_HAS(error(json, R"(,{"user_input":{"arg":{"as_tensor":{"name":"x"}}}})", ""),
             "signature of 1 inputs for a graph with 2");
  EXPECT_HAS(error(json, R"("2.9.0"})", R"("2.9.0")"), "no valid JSON");
  EXPECT_HAS(error(json, "2.9.0", "\xff"), "no valid JSON");
  auto deep = readProgram(std::string(100000, '['), "models/model.json");
  EXPECT_HAS(deep.error().message, "nested too deep");
}

TEST(SymbolicExpr, BothFormsOfSizes) {
  auto parsed = [](const std::string &text) {
    std::string problem;
    std::optional<Dim> dim = parseSize({0, text}, problem);
    return dim ? dim->str() : "error: " + problem;
  };
  EXPECT_EQ(parsed("Symbol('s77', positive=True, integer=True)"), "s77");
  EXPECT_EQ(parsed("Add(Mul(Integer(2), Symbol('s0', integer=True, positive=True)), Integer(-1))"), parsed("2*s0 - 1"));
  EXPECT_EQ(parsed("FloorDiv(Symbol('s0'), Integer(2))"), parsed("s0//2"));
  EXPECT_EQ(parsed("Max(Integer(1), Symbol('u0'))"), "max(1, u0)");
  EXPECT_EQ(parsed("s0**2"), parsed("s0*s0"));
  EXPECT_EQ(parsed("(s0 + 1)*(s0 - 1)"), parsed("s0**2 - 1"));
  EXPECT_EQ(parsed("PythonMod(Symbol('s0'), Integer(4))"), parsed("s0 % 4"));
  for (const char *bad : {" ", "s0 +", "Symbol(s0)", "Symbol('s0'", "Where(s0, s1, s2)", "s0 // 0", "s0**s1",
                          "9999999999999999999", "f(", "(((("})
    EXPECT_HAS(parsed(bad), "cannot be read") << bad;
  EXPECT_HAS(parsed(std::string(5000, '(')), "nested too deep");
  std::string doubling = "s0"; // a remainder has its operand twice
  for (int i = 0; i < 60; ++i)
    doubling += " % s" + std::to_string(i + 1);
  EXPECT_HAS(parsed(doubling), "too complex");
}

} // namespace
