//===- WeightsTest.cpp - safetensors entries ------------------------------===//
#include "SampleBundle.h"

#include <cstring>

namespace dmxc::bundle::test {
namespace {

/// Collects a stream into memory.
class StringSink : public ByteSink {
public:
  Status write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return Status::ok();
  }
  std::string text;
};

std::string streamed(WeightsWriter &weights) {
  StringSink sink;
  Status done = weights.write(sink);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(sink.text.size(), weights.size());
  return sink.text;
}

std::span<const std::byte> bytesOf(const std::string &text) { return std::as_bytes(std::span(text)); }

std::string entryWith(const std::string &header, size_t dataSize) {
  uint64_t length = header.size();
  std::string text(reinterpret_cast<const char *>(&length), 8);
  return text + header + std::string(dataSize, 'd');
}

TEST(Weights, EveryTypeComesBack) {
  WeightsWriter weights;
  for (int i = 0; i < static_cast<int>(kDTypeCount); ++i) {
    Tensor t(static_cast<DType>(i), {3, 3});
    std::memset(t.mutableData(), i + 1, t.byteSize());
    ASSERT_TRUE(weights.add(std::string(dtypeName(t.dtype())), t));
  }
  std::string text = streamed(weights);
  auto tensors = readWeights(bytesOf(text));
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), kDTypeCount);
  for (const WeightInfo &info : *tensors) {
    std::optional<DType> type = dtypeFromName(info.name);
    ASSERT_TRUE(type) << info.name;
    EXPECT_EQ(info.offset, weights.offsetOf(info.name));
    EXPECT_EQ(info.offset % 64, 0u);
    EXPECT_EQ(info.size, dtypeBytes(*type, 9));
    EXPECT_EQ(text[info.offset], static_cast<char>(static_cast<int>(*type) + 1));
  }
}

TEST(Weights, DataStartsAtThePageThatFitsTheHeader) {
  WeightsWriter small, large;
  ASSERT_TRUE(small.add("a", Tensor(DType::F32, {1})));
  EXPECT_EQ(small.offsetOf("a"), 4096u);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(large.add("tensor" + std::to_string(i), Tensor(DType::F32, {16})));
  EXPECT_GT(large.offsetOf("tensor0"), 4096u);
  EXPECT_EQ(large.offsetOf("tensor0") % 4096, 0u);
  std::string text = streamed(large);
  EXPECT_TRUE(readWeights(bytesOf(text)));
}

TEST(Weights, RefusesMisuse) {
  WeightsWriter weights;
  ASSERT_TRUE(weights.add("a", Tensor(DType::F32, {1})));
  EXPECT_FALSE(weights.add("a", Tensor(DType::F32, {1})));
  EXPECT_FALSE(weights.add("__metadata__", Tensor(DType::F32, {1})));
  EXPECT_FALSE(weights.add("__pad0__", Tensor(DType::F32, {1})));
  weights.layout();
  EXPECT_FALSE(weights.add("b", Tensor(DType::F32, {1})));
}

TEST(Weights, AShortProducerIsNamed) {
  for (size_t count : {3, 5}) {
    WeightsWriter weights;
    ASSERT_TRUE(weights.add("short one", DType::F32, {1}, [=](ByteSink &sink) { return sink.writeZeros(count); }));
    StringSink sink;
    Status done = weights.write(sink);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::Internal);
  }
}

TEST(Weights, EmptyEntry) {
  WeightsWriter weights;
  std::string text = streamed(weights);
  auto tensors = readWeights(bytesOf(text));
  ASSERT_TRUE(tensors) << tensors.error().message;
  EXPECT_TRUE(tensors->empty());
}

TEST(Weights, HostileHeadersAreRefused) {
  auto refusal = [](const std::string &entry) {
    auto tensors = readWeights(bytesOf(entry));
    return tensors ? std::string("accepted") : tensors.error().message;
  };
  EXPECT_EQ(refusal(entryWith(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8)), "accepted");
  const char *bad[] = {
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})",
      R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"X9","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
      R"({"a":7})",
      R"([])",
      R"({)",
      R"({"__metadata__":{"a":1}})"};
  for (const char *header : bad)
    EXPECT_NE(refusal(entryWith(header, 8)), "accepted") << header;
  EXPECT_NE(refusal("1234567"), "accepted");
  EXPECT_NE(refusal(std::string(8, '\xff') + "{}"), "accepted");
}

} // namespace
} // namespace dmxc::bundle::test
