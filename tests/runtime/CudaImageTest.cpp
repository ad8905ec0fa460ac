//===- CudaImageTest.cpp - launch tables of kernels in PTX --------------------===//

#include "runtime/devices/cuda/CudaImage.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxrt;
using namespace dmxrt::cuda;

namespace {

/// An entry with a kernel of one operand and one result of n elements of f32 each.
std::string entryText(const std::string &table = R"({"launch_table": 1, "level": "sm_90a", "kernels": [
//   {"name": "copy", "nodes": ["a node"], "dims": ["n"], "block": 128, "grid": ["floordiv", ["add", "n", 127], 128],
//    "contract": [19, 2, 1, 1, 0, 1, 0, 0, 0, 4, 0, 4, 1, 0, 4, 0, 4, 1, 0]}
// ]})",
                      const std::string &parameters = "a, b, n, scratch, bytes, results, status") {
  std::string declared;
  for (size_t at = 0; at < parameters.size();) {
    size_t end = std::min(parameters.find(", ", at), parameters.size());
    declared += (declared.empty() ? ".param .u64 " : ", .param .u64 ") + parameters.substr(at, end - at);
    at = end + 2;
  }
  return "// " + table + "\n.version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry copy(" + declared + R"()
.reqntid 128
{
	ret;
}
)";
}

Result<std::shared_ptr<const CodeImage>> loadEntry(const std::string &text) {
  return CudaImage::load({reinterpret_cast<const std::byte *>(text.data()), text.size()});
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CudaImage, LaunchTablesThatDoNotFit) {
  const std::string good = entryText();
  auto image = loadEntry(good);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ((*image)->findKernel("other"), nullptr);
  ASSERT_NE((*image)->findKernel("copy"), nullptr);
  struct Case {
    std::string text, words;
  };
  const Case cases[] = {
      {good.substr(3), "does not begin with a launch table"},
      {replaced(good, "\"block\": 128", "\"block\": 64"), "kernel 'copy' has blocks of 128 threads, the table says 64"},
      {replaced(good, "\"block\": 128", "\"block\": 4096"), "block"},
      {replaced(good, "\"copy\"", "\"copy2\""), "kernel 'copy2' is not there"},
      {replaced(good, "\"sm_90a\"", "\"sm_80\""), "is no level that is known here"},
      {replaced(good, "\"launch_table\": 1", "\"launch_table\": 2"), "launch_table"},
      {replaced(good, "[19, 2, 1", "[19, 3, 1"), "kernel 'copy' has no contract"},
      {replaced(good, "\"dims\": [\"n\"]", "\"dims\": [\"n\", \"m\"]"), "kernel 'copy' has 2 dims, its contract 1"},
      {replaced(good, "\"add\", \"n\"", "\"add\", \"m\""), "grid"},
      {entryText(R"({"launch_table": 1, "level": "sm_90a", "kernels": []})"),
       "the launch table has 0 kernels, its PTX 1"},
      {replaced(good, ", .param .u64 status", ""),
       "kernel 'copy' has 6 parameters; 7 of 64 bits follow from its contract"},
      {replaced(good, ".param .u64 status", ".param .u32 status"),
       "kernel 'copy' has 7 parameters; 7 of 64 bits follow"},
  };
  for (const Case &each : cases) {
    auto loaded = loadEntry(each.text);
    ASSERT_FALSE(loaded) << each.words;
    EXPECT_NE(loaded.error().message.find(each.words), std::string::npos) << loaded.error().message;
    EXPECT_EQ(loaded.error().status, DMX_STATUS_INVALID_BUNDLE);
  }
}

// Blocks must be those that the work items need.
TEST(CudaImage, GridsOfTasks) {
  auto blocks = [](const std::string &text, int64_t n, int64_t work, uint64_t scratch) {
    auto image = loadEntry(text);
    EXPECT_TRUE(image) << image.error().message;
    DeviceTask task;
    task.kernel = (*image)->findKernel("copy");
    task.dims = &n;
    task.dimCount = 1;
    task.work = work;
    task.scratch = scratch;
    auto given = static_cast<const CudaImage &>(**image).blocksOf(task);
    return given ? int64_t(*given) : -1;
  };
  EXPECT_EQ(blocks(entryText(), 0, 0, 0), 0);
  EXPECT_EQ(blocks(entryText(), 1, 1, 0), 1);
  EXPECT_EQ(blocks(entryText(), 128, 128, 0), 1);
  EXPECT_EQ(blocks(entryText(), 129, 129, 0), 2);
  EXPECT_EQ(blocks(entryText(), 1000, 100, 0), -1);
  const std::string fewer = replaced(entryText(), "[\"floordiv\", [\"add\", \"n\", 127], 128]", "3");
  EXPECT_EQ(blocks(fewer, 5000, 5000, 0), -1);
  EXPECT_EQ(blocks(fewer, 5000, 5000, 16), 3); // threads with scratch may be fewer than items
  EXPECT_EQ(blocks(fewer, 100, 100, 16), -1);  // and never more
}

TEST(CudaImage, DamagedEntries) {
  const std::string text = entryText();
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string damaged = text;
    size_t at = random() % text.find(".version");
    if (random() % 2)
      damaged[at] = static_cast<char>(random() % 256);
    else
      damaged.erase(at, 1 + random() % 16);
    auto loaded = loadEntry(damaged);
    if (loaded)
      continue;
    EXPECT_NE(loaded.error().message.find("the kernels cannot be used"), std::string::npos) << loaded.error().message;
    ++refused;
  }
  EXPECT_GT(refused, 250);
}

} // namespace
