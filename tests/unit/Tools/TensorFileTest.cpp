//===- TensorFileTest.cpp - .npy files, directories -----------------------===//
#include "TestDir.h"
#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/TensorDirectory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/wait.h>

namespace dmxc::tools::test {
namespace {

/// Runs tensor_files.py; its exit code.
int script(const char *action, const TestDir &dir) {
  std::string command =
      std::string(DMXC_PYTHON) + " " + DMXC_TENSOR_SCRIPT + " " + action + " " + dir.path() + " " + DMXC_TENSOR_ENDINGS;
  int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define REQUIRE_NUMPY(code)                                                                                            \
  if (*DMXC_PYTHON == 0 || (code) == 77)                                                                               \
  GTEST_SKIP() << "python3-numpy is not installed: files of NumPy itself "                                             \
                  "were not tried"

struct Expected {
  std::string file, dtype, shape;
  std::vector<double> values;
};

std::vector<Expected> expectations(const TestDir &dir) {
  std::vector<Expected> all;
  std::ifstream list(dir.path("expect.txt"));
  for (std::string line; std::getline(list, line);) {
    std::istringstream in(line);
    Expected e;
    in >> e.file >> e.dtype >> e.shape;
    for (std::string value; in >> value;)
      e.values.push_back(std::strtod(value.c_str(), nullptr));
    all.push_back(e);
  }
  return all;
}

TEST(TensorFiles, ReadsWhatNumpyAndOnnxWrite) {
  TestDir dir;
  int code = script("write", dir);
  REQUIRE_NUMPY(code);
  ASSERT_EQ(code, 0);
  std::vector<Expected> all = expectations(dir);
  ASSERT_GT(all.size(), 200u);
  for (const Expected &e : all) {
    auto read = readTensorFile(dir.path(e.file));
    ASSERT_TRUE(read) << read.error().message;
    const Tensor &t = read->tensor;
    EXPECT_EQ(dtypeName(t.dtype()), e.dtype) << e.file;
    EXPECT_EQ(shapeString(t.shape()), e.shape) << e.file;
    ASSERT_EQ(t.numElements(), static_cast<int64_t>(e.values.size())) << e.file;
    for (size_t i = 0; i < e.values.size(); ++i)
      ASSERT_EQ(t.asDouble(static_cast<int64_t>(i)), e.values[i]) << e.file << " element " << i;
  }
}

TEST(TensorFiles, NumpyAndOnnxReadWhatIsWritten) {
  TestDir dir;
  int code = script("write", dir);
  REQUIRE_NUMPY(code);
  ASSERT_EQ(code, 0);
  for (const Expected &e : expectations(dir)) {
    auto read = readTensorFile(dir.path(e.file));
    ASSERT_TRUE(read) << read.error().message;
    std::filesystem::remove(dir.path(e.file)); // the mapping outlives the name
    ASSERT_TRUE(writeTensorFile(dir.path(e.file), {"t", read->tensor}));
  }
  EXPECT_EQ(script("check", dir), 0);
}

class EveryType : public testing::TestWithParam<int> {
protected:
  DType type() const { return static_cast<DType>(GetParam()); }
};

TEST_P(EveryType, RoundTripsThroughNpy) {
  TestDir dir;
  for (const Shape &shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{3, 1, 5}}) {
    Tensor t = randomTensor(type(), shape, 7);
    std::filesystem::remove(dir.path("t.npy"));
    ASSERT_TRUE(writeTensorFile(dir.path("t.npy"), {"t", t}));
    auto read = readTensorFile(dir.path("t.npy"), type());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->tensor.dtype(), type());
    EXPECT_EQ(read->tensor.shape(), shape);
    for (int64_t i = 0; i < t.numElements(); ++i)
      ASSERT_EQ(read->tensor.asDouble(i), t.asDouble(i)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryType, testing::Range(0, static_cast<int>(kDTypeCount)),
                         [](auto &info) { return std::string(dtypeName(static_cast<DType>(info.param))); });

/// A version 1 file with this header text and data.
std::string npy(const std::string &dict, const std::string &data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(dict.size());
  text += static_cast<char>(dict.size() >> 8);
  return text + dict + data;
}

TEST(Npy, BadFilesAreExplained) {
  TestDir dir;
  auto refusal = [&](const std::string &bytes) {
    std::filesystem::remove(dir.path("a.npy"));
    writeFile(dir.path("a.npy"), bytes);
    auto read = readNpy(dir.path("a.npy"));
    if (!read) {
      EXPECT_EQ(read.error().kind, ErrorKind::IO);
    }
    return read ? std::string("accepted") : read.error().message;
  };
  auto has = [](const std::string &text, const char *part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", std::string(8, 0))), "accepted");
  EXPECT_TRUE(has(refusal(""), "not a NumPy file"));
  EXPECT_TRUE(has(refusal("hello world"), "not a NumPy file"));
  EXPECT_TRUE(has(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234")), "truncated"));
  EXPECT_TRUE(
      has(refusal(npy("{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", std::string(16, 0))), "'<c8'"));
  EXPECT_TRUE(
      has(refusal(npy("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", std::string(16, 0))), "'<U4'"));
  EXPECT_TRUE(
      has(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")), "header"));
  EXPECT_TRUE(has(refusal(npy("{'descr': '<f4', 'fortran_order': False, "
                              "'shape': (9999999999, 9999999999), }",
                              "")),
                  "truncated"));
  EXPECT_TRUE(has(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "")), "header"));
  EXPECT_TRUE(has(refusal(npy("{'descr': '<f4', 'fortran_order': False", "")), "header"));
  EXPECT_TRUE(has(refusal(npy("{'descr': '<f4', 'fortran_order': False, }", "")), "header"));
  EXPECT_TRUE(has(refusal(std::string("\x93NUMPY\x01\x00\xff\xff{", 11)), "header"));
  EXPECT_TRUE(has(refusal(std::string("\x93NUMPY\x09\x00\xff\xff{}", 12)), "format 9"));
  EXPECT_FALSE(readNpy(dir.path("missing.npy")));
}

TEST(Npy, PackedTypesAreRangeChecked) {
  TestDir dir;
  writeFile(dir.path("a.npy"), npy("{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }", "\x07\xf8\x08"));
  auto read = readNpy(dir.path("a.npy"), DType::I4);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("element 2 is 8, out of range for i4"), std::string::npos)
      << read.error().message;
}

TEST(TensorFiles, EndingsDecide) {
  auto read = readTensorFile("x.txt");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::Usage);
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

TEST(TensorDirectory, ZooLayoutWithMangledNames) {
  TestDir dir;
  ASSERT_TRUE(writeNpy(dir.path("in_x:0.npy"), scalar(1)));
  ASSERT_TRUE(writeNpy(dir.path("in_y_b.npy"), scalar(2)));
  auto read = readTensorDirectory(dir.path(), TensorRole::Input, two);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(valueOf((*read)[0]), 1);
  EXPECT_EQ(valueOf((*read)[1]), 2);
}

TEST(TensorDirectory, PlainNamesAndAbsentOnes) {
  TestDir dir;
  ASSERT_TRUE(writeNpy(dir.path("y_b.npy"), scalar(2)));
  auto read = readTensorDirectory(dir.path(), TensorRole::Output, two);
  ASSERT_TRUE(read);
  EXPECT_TRUE((*read)[0].empty());
  EXPECT_EQ(valueOf((*read)[1]), 2);
}

TEST(TensorDirectory, NothingFoundSaysWhatWasLookedFor) {
  TestDir dir;
  auto read = readTensorDirectory(dir.path(), TensorRole::Output, two);
  ASSERT_FALSE(read);
  for (const char *part : {"out_x_0.npy", "x_0.npy", "output_0.pb"})
    EXPECT_NE(read.error().message.find(part), std::string::npos) << read.error().message;
  EXPECT_FALSE(readTensorDirectory(dir.path("none"), TensorRole::Input, two));
}

TEST(TensorDirectory, NamesDoNotLeaveTheDirectory) {
  TestDir dir;
  std::filesystem::create_directory(dir.path("in"));
  ASSERT_TRUE(writeNpy(dir.path("secret.npy"), scalar(9)));
  std::vector<WantedTensor> wanted = {{"../secret", DType::F32}};
  EXPECT_FALSE(readTensorDirectory(dir.path("in"), TensorRole::Input, wanted));
}

} // namespace
} // namespace dmxc::tools::test
