//===- NoOnnxTensorTest.cpp - .pb files without the ONNX front end --------===//
#include "TestDir.h"
#include "dmxc/Tools/TensorDirectory.h"

#include <gtest/gtest.h>

namespace dmxc::tools::test {
namespace {

void expectRefusal(const Error &error) {
  EXPECT_EQ(error.kind, ErrorKind::IO);
  EXPECT_NE(error.message.find("input_0.pb': this build has no ONNX front end"), std::string::npos) << error.message;
}

TEST(Pb, IsRefusedByName) {
  TestDir dir;
  std::string path = dir.path("input_0.pb");
  Status written = writeTensorFile(path, {"x", Tensor(DType::F32, {})});
  ASSERT_FALSE(written);
  expectRefusal(written.error());
  EXPECT_FALSE(std::filesystem::exists(path));
  writeFile(path, std::string("\x08\x01\x10\x01\x4a\x04\x00\x00\x80\x3f", 10)); // a tensor of one f32
  auto read = readTensorFile(path);
  ASSERT_FALSE(read);
  expectRefusal(read.error());
  auto directory = readTensorDirectory(dir.path(), TensorRole::Input, {{"x", DType::F32}});
  ASSERT_FALSE(directory);
  expectRefusal(directory.error());
}

} // namespace
} // namespace dmxc::tools::test
