//===- OnnxTensorTest.cpp - .pb files, directories of them ----------------===//
#include "TestDir.h"
#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/TensorDirectory.h"

#include <gtest/gtest.h>

namespace dmxc::tools::test {
namespace {

TEST(Pb, EveryTypeRoundTrips) {
  TestDir dir;
  for (int type = 0; type < static_cast<int>(kDTypeCount); ++type)
    for (const Shape &shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{3, 1, 5}}) {
      Tensor t = randomTensor(static_cast<DType>(type), shape, 7);
      std::filesystem::remove(dir.path("t.pb"));
      ASSERT_TRUE(writeTensorFile(dir.path("t.pb"), {"t", t}));
      auto read = readTensorFile(dir.path("t.pb"));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(read->name, "t");
      EXPECT_EQ(read->tensor.dtype(), t.dtype());
      EXPECT_EQ(read->tensor.shape(), shape);
      for (int64_t i = 0; i < t.numElements(); ++i)
        ASSERT_EQ(read->tensor.asDouble(i), t.asDouble(i)) << dtypeName(t.dtype()) << " " << i;
    }
}

TEST(OnnxCodes, AreTheStandards) {
  EXPECT_EQ(onnxTypeCode(DType::F32), 1);
  EXPECT_EQ(onnxTypeCode(DType::BF16), 16);
  EXPECT_EQ(onnxTypeCode(DType::F8E5M2FNUZ), 20);
  EXPECT_EQ(onnxTypeCode(DType::F4E2M1), 23);
  EXPECT_EQ(onnxTypeCode(DType::F8E8M0), 24);
  EXPECT_EQ(onnxTypeCode(DType::U2), 25);
  EXPECT_EQ(onnxTypeCode(DType::I2), 26);
  for (int i = 0; i < static_cast<int>(kDTypeCount); ++i)
    EXPECT_EQ(dtypeFromOnnxCode(onnxTypeCode(static_cast<DType>(i))), static_cast<DType>(i));
  for (int code : {0, 8, 14, 15, 27, -1})
    EXPECT_EQ(dtypeFromOnnxCode(code), std::nullopt);
}

TEST(Pb, BadFilesAreExplained) {
  TestDir dir;
  auto refusal = [&](const std::string &bytes) {
    std::filesystem::remove(dir.path("a.pb"));
    writeFile(dir.path("a.pb"), bytes);
    auto read = readTensorProto(dir.path("a.pb"));
    return read ? std::string("accepted") : read.error().message;
  };
  auto has = [](const std::string &text, const char *part) { return text.find(part) != std::string::npos; };
  // dims = [1] (field 1), data_type (field 2), raw_data (field 9)
  std::string tensor("\x08\x01\x10\x01\x4a\x04\x00\x00\x80\x3f", 10);
  EXPECT_EQ(refusal(tensor), "accepted");
  EXPECT_TRUE(has(refusal(""), "not an ONNX TensorProto"));
  EXPECT_TRUE(has(refusal("\xff\xff\xff\xff"), "not an ONNX TensorProto"));
  EXPECT_TRUE(has(refusal(std::string("\x08\x01\x10\x08", 4)), "strings"));
  EXPECT_TRUE(has(refusal(std::string("\x08\x01\x10\x0e", 4)), "complex"));
  EXPECT_TRUE(has(refusal(std::string("\x08\x01\x10\x63", 4)), "unknown code 99"));
  EXPECT_TRUE(
      has(refusal(std::string("\x08\x02\x10\x01\x4a\x04\x00\x00\x80\x3f", 10)), "needs 8 bytes, raw_data has 4"));
  EXPECT_TRUE(has(refusal(std::string("\x08\x05\x10\x01", 4)), "elements in its data field"));
  EXPECT_TRUE(has(refusal(std::string("\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x10\x01", 11)), "impossible"));
  // SequenceProto: elem_type TENSOR (field 2), one tensor (field 3)
  EXPECT_TRUE(has(refusal(std::string("\x10\x01\x1a\x0a", 4) + tensor), "SequenceProto"));
}

//===----------------------------------------------------------------------===//
// Directories
//===----------------------------------------------------------------------===//

Tensor scalar(float value) {
  Tensor t(DType::F32, {});
  t.as<float>()[0] = value;
  return t;
}

float valueOf(const Tensor &t) { return t.empty() ? -1 : t.as<float>()[0]; }

const std::vector<WantedTensor> two = {{"x:0", DType::F32}, {"y/b", DType::F32}};

TEST(TensorDirectory, OnnxLayoutByPositionAndByName) {
  TestDir dir;
  ASSERT_TRUE(writeTensorProto(dir.path("input_0.pb"), {"", scalar(1)}));
  ASSERT_TRUE(writeTensorProto(dir.path("input_1.pb"), {"whatever", scalar(2)}));
  auto read = readTensorDirectory(dir.path(), TensorRole::Input, two);
  ASSERT_TRUE(read);
  EXPECT_EQ(valueOf((*read)[0]), 1);
  EXPECT_EQ(valueOf((*read)[1]), 2);
  std::filesystem::remove(dir.path("input_0.pb"));
  std::filesystem::remove(dir.path("input_1.pb"));
  ASSERT_TRUE(writeTensorProto(dir.path("input_0.pb"), {"y/b", scalar(3)}));
  ASSERT_TRUE(writeTensorProto(dir.path("input_1.pb"), {"x:0", scalar(4)}));
  read = readTensorDirectory(dir.path(), TensorRole::Input, two);
  ASSERT_TRUE(read);
  EXPECT_EQ(valueOf((*read)[0]), 4);
  EXPECT_EQ(valueOf((*read)[1]), 3);
}

TEST(TensorDirectory, OnnxNumbersCountEvenWhenTheyAreNames) {
  TestDir dir;
  ASSERT_TRUE(writeTensorProto(dir.path("output_0.pb"), {"", scalar(1)}));
  ASSERT_TRUE(writeTensorProto(dir.path("output_1.pb"), {"", scalar(2)}));
  std::vector<WantedTensor> swapped = {{"output_1", DType::F32}, {"output_0", DType::F32}};
  auto read = readTensorDirectory(dir.path(), TensorRole::Output, swapped);
  ASSERT_TRUE(read);
  EXPECT_EQ(valueOf((*read)[0]), 1);
  EXPECT_EQ(valueOf((*read)[1]), 2);
}

/// A field of a message: its number, then bytes with their length.
std::string field(int number, const std::string &bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
/// A TensorProto of one f32, without a name.
std::string tensorProto(float value) {
  return std::string("\x10\x01", 2) + field(9, std::string(reinterpret_cast<const char *>(&value), 4));
}

TEST(TensorDirectory, SequencesAndOptionalsHoldSeveralPositionsOrNone) {
  TestDir dir;
  const std::string isTensors("\x10\x01", 2), isSequence("\x10\x03", 2), isNothing("\x10\x00", 2);
  writeFile(dir.path("input_0.pb"), isTensors + field(3, tensorProto(1)) + field(3, tensorProto(2)));
  writeFile(dir.path("input_1.pb"), field(1, "none") + isNothing);
  ASSERT_TRUE(writeTensorProto(dir.path("input_2.pb"), {"", scalar(3)}));
  writeFile(dir.path("input_3.pb"), isSequence + field(5, isTensors + field(3, tensorProto(4))));
  writeFile(dir.path("input_4.pb"), field(1, "empty") + isTensors);
  ASSERT_TRUE(writeTensorProto(dir.path("input_5.pb"), {"", scalar(5)}));
  std::vector<WantedTensor> wanted;
  for (const char *name : {"s.0", "s.1", "t", "o.0", "u"})
    wanted.push_back({name, DType::F32});
  auto read = readTensorDirectory(dir.path(), TensorRole::Input, wanted);
  ASSERT_TRUE(read) << read.error().message;
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(valueOf((*read)[i]), i + 1.0F) << wanted[i].name;
  // More tensors than there are places are not left out in silence.
  writeFile(dir.path("input_3.pb"),
            isTensors + field(3, tensorProto(4)) + field(3, tensorProto(5)) + field(3, tensorProto(6)));
  read = readTensorDirectory(dir.path(), TensorRole::Input, wanted);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("holds 3 tensors, of which only 2 have a place"), std::string::npos)
      << read.error().message;
}

TEST(TensorDirectory, TensorsOfSequencesAreFoundByName) {
  TestDir dir;
  writeFile(dir.path("output_0.pb"),
            field(1, "y") + std::string("\x10\x01", 2) + field(3, tensorProto(1)) + field(3, tensorProto(2)));
  ASSERT_TRUE(writeTensorProto(dir.path("output_1.pb"), {"z", scalar(3)}));
  auto read = readTensorDirectory(dir.path(), TensorRole::Output,
                                  {{"z", DType::F32}, {"y.0", DType::F32}, {"y.1", DType::F32}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(valueOf((*read)[0]), 3);
  EXPECT_EQ(valueOf((*read)[1]), 1);
  EXPECT_EQ(valueOf((*read)[2]), 2);
}

} // namespace
} // namespace dmxc::tools::test
