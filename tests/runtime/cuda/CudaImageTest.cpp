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
      {replaced(good, "\"launch_table\": 1", "\"launch_table\": 5"), "launch_table"},
      {replaced(good, "[19, 2, 1", "[19, 3, 1"), "kernel 'copy' has no contract"},
      {replaced(good, "\"dims\": [\"n\"]", "\"dims\": [\"n\", \"m\"]"), "kernel 'copy' has 2 dims, its contract 1"},
      {replaced(good, "\"add\", \"n\"", "\"add\", \"m\""), "grid"},
      {replaced(good, "\"block\"", "\"multiply_adds\": [\"mul\", 3, \"m\"], \"block\""), "multiply_adds"},
      {replaced(good, "\"block\"", "\"multiply_adds\": {}, \"block\""), "multiply_adds"},
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

/// Blocks of a task's grid; -1: they do not fit it.
int64_t blocks(const std::string &text, int64_t n, int64_t work, uint64_t scratch) {
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
}

// Blocks must be those that the work items need.
TEST(CudaImage, GridsOfTasks) {
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

// What the model asks for, whatever blocks do.
TEST(CudaImage, MultiplyAddsOfTasks) {
  auto count = [](const std::string &expression, int64_t n) -> std::string {
    auto image = loadEntry(
        expression.empty() ? entryText()
                           : replaced(entryText(), "\"block\"", "\"multiply_adds\": " + expression + ", \"block\""));
    EXPECT_TRUE(image) << image.error().message;
    DeviceTask task;
    task.kernel = (*image)->findKernel("copy");
    task.dims = &n;
    task.dimCount = 1;
    auto given = static_cast<const CudaImage &>(**image).multiplyAddsOf(task);
    return !given ? given.error().message : *given ? std::to_string(**given) : "none";
  };
  EXPECT_EQ(count("", 5), "none");
  EXPECT_EQ(count("0", 5), "0");
  EXPECT_EQ(count(R"(["mul", 40, ["mul", 72, "n"]])", 5), "14400");
  EXPECT_EQ(count(R"(["sub", 3, "n"])", 5), "kernel 'copy': the launch table has -2 multiply-adds");
  EXPECT_NE(count(R"(["mul", 9000000000000000000, "n"])", 5).find("64 bits"), std::string::npos);
}

/// The same kernel with shared memory and a map of a tensor of n rows of 32 f32.
std::string tiledText(const std::string &map = R"("buffer": 0, "type": "f32", "sizes": [32, "n"], "strides": [128],)"
                                               R"( "box": [32, 64], "swizzle": 128)",
                      const std::string &grid = R"(["min", "n", 132])") {
  std::string text = replaced(entryText(), "\"launch_table\": 1", "\"launch_table\": 2");
  text = replaced(text, R"(["floordiv", ["add", "n", 127], 128])", grid);
  text = replaced(text, "\"block\": 128", R"("block": 128, "shared": 16384, "item": "block", "maps": [{)" + map + "}]");
  return replaced(text, ".param .u64 status", ".param .u64 status, .param .align 64 .b8 map[128]");
}

TEST(CudaImage, LaunchTablesWithMaps) {
  const std::string good = tiledText();
  auto image = loadEntry(good);
  ASSERT_TRUE(image) << image.error().message;
  const auto *kernel = static_cast<const KernelLaunch *>((*image)->findKernel("copy"));
  EXPECT_EQ(kernel->shared, 16384u);
  EXPECT_TRUE(kernel->byBlock);
  ASSERT_EQ(kernel->maps.size(), 1u);
  struct Case {
    std::string text, words;
  };
  const Case cases[] = {
      {replaced(good, "\"launch_table\": 2", "\"launch_table\": 1"), "is known from launch table 2 on"},
      {replaced(good, "\"launch_table\": 2", "\"launch_table\": 5"), "launch_table"},
      {replaced(good, "16384", "232449"), "shared"},
      {replaced(good, "\"item\": \"block\"", "\"item\": \"warp\""), "is neither thread nor block"},
      {replaced(good, ", .param .align 64 .b8 map[128]", ""),
       "has 7 parameters; 7 of 64 bits follow from its contract, and 1 of 128 bytes from its maps"},
      {replaced(good, "b8 map[128]", "b8 map[64]"), "has 8 parameters; 7 of 64 bits follow"},
      {replaced(good, ".align 64", ".align 16"), "has 8 parameters; 7 of 64 bits follow"},
      {replaced(good, "\"buffer\": 0", "\"buffer\": 2"), "map 0 of its launch: it is of buffer 2, and there are 2"},
      {replaced(good, "\"f32\"", "\"f31\""), "is no type of a tensor map"},
      {replaced(good, "[128]", "[]"), "has no 1 to 5 sizes, or strides that are not one fewer"},
      {replaced(good, "[128]", "[120]"), "its stride along axis 1 is 120 bytes, no multiple of 16 below 2^40"},
      {replaced(good, "[128]", "[1099511627776]"), "its stride along axis 1 is 1099511627776 bytes"},
      {replaced(good, "[32, \"n\"]", "[0, \"n\"]"), "it has 0 elements along axis 0, not 1 to 2^32"},
      {replaced(good, "[32, \"n\"]", "[32, \"m\"]"), "sizes"},
      {replaced(good, "[32, 64]", "[32]"), "does not have one number for each of the map's sizes"},
      {replaced(good, "[32, 64]", "[32, 257]"), "its box has 257 elements along axis 1, not 1 to 256"},
      {replaced(good, "[32, 64]", "[3, 64]"), "its box has 12 bytes along axis 0, no multiple of 16"},
      {replaced(good, "\"swizzle\": 128", "\"swizzle\": 64"), "more than the 64 that it swizzles"},
      {replaced(good, "\"swizzle\": 128", "\"swizzle\": 16"), "it swizzles 16 bytes"},
      {replaced(good, "\"swizzle\"", "\"steps\": [1, 9], \"swizzle\""), "it takes each 9th element along axis 1"},
      {replaced(good, "\"swizzle\"", "\"steps\": [2, 1], \"swizzle\""), "it leaves elements of the innermost axis out"},
      // 2^31 * 2^33 is 0, and 2^32 * 2^39 as well
      {replaced(replaced(good, "[32, \"n\"]", "[32, 2147483649]"), "[128]", "[8589934592]"),
       "its elements reach over more than 2^63 bytes"},
      {replaced(replaced(good, "[32, \"n\"]", "[32, 4294967296]"), "[128]", "[549755813888]"),
       "its elements reach over more than 2^63 bytes"},
  };
  for (const Case &each : cases) {
    auto loaded = loadEntry(each.text);
    ASSERT_FALSE(loaded) << each.words;
    EXPECT_NE(loaded.error().message.find(each.words), std::string::npos) << loaded.error().message;
    EXPECT_EQ(loaded.error().status, DMX_STATUS_INVALID_BUNDLE);
  }
}

// Blocks of a cluster do a work item together.
TEST(CudaImage, Clusters) {
  auto texts = [](const char *version, const char *table, const char *directive) {
    std::string text = replaced(entryText(), "\"launch_table\": 1", std::string("\"launch_table\": ") + version);
    text = replaced(text, R"(["floordiv", ["add", "n", 127], 128])", R"(["mul", 4, "n"])");
    text = replaced(text, "\"block\": 128", std::string(R"("block": 128, "item": "block")") + table);
    return replaced(text, ".reqntid 128", std::string(".reqntid 128") + directive);
  };
  const char *four = ", \"cluster\": 4", *directive = "\n.explicitcluster\n.reqnctapercluster 4, 1, 1";
  const std::string good = texts("3", four, directive);
  auto image = loadEntry(good);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(static_cast<const KernelLaunch *>((*image)->findKernel("copy"))->cluster, 4u);
  const std::pair<std::string, std::string> cases[] = {
      {texts("2", four, directive), "is known from launch table 3 on"},
      {texts("3", ", \"cluster\": 9", directive), "cluster"},
      {texts("3", ", \"cluster\": 2", directive), "has clusters of 4 blocks, the table says 2"},
      {texts("3", four, ""), "has clusters of 1 blocks, the table says 4"},
  };
  for (const auto &[text, words] : cases) {
    auto loaded = loadEntry(text);
    ASSERT_FALSE(loaded) << words;
    EXPECT_NE(loaded.error().message.find(words), std::string::npos) << loaded.error().message;
  }
  EXPECT_EQ(blocks(good, 10, 10, 0), 40);
  EXPECT_EQ(blocks(good, 10, 9, 0), -1); // more clusters than there are items
  EXPECT_EQ(blocks(replaced(good, R"(["mul", 4, "n"])", R"(["add", 2, ["mul", 4, "n"]])"), 10, 20, 0), -1);
}

// What a task's dims make of maps and grids.
TEST(CudaImage, MapsOfTasks) {
  auto check = [](const std::string &text, int64_t n, int64_t work, uint64_t bytes) -> std::string {
    auto image = loadEntry(text);
    EXPECT_TRUE(image) << image.error().message;
    const uint64_t sizes[] = {bytes, bytes};
    DeviceTask task;
    task.kernel = (*image)->findKernel("copy");
    task.dims = &n;
    task.dimCount = 1;
    task.work = work;
    task.bufferBytes = sizes;
    Status status = (*image)->checkTask(task);
    return status ? "" : status.error().message;
  };
  const std::string good = tiledText();
  EXPECT_EQ(check(good, 10, 10, 1280), "");
  EXPECT_EQ(check(good, 0, 0, 0), ""); // nothing is launched
  EXPECT_EQ(check(good, 200, 200, 25600), "");
  EXPECT_NE(check(good, 200, 100, 25600).find("132 blocks of 128 threads for 100 work items of a block each"),
            std::string::npos);
  EXPECT_EQ(check(good, 10, 10, 1279),
            "kernel 'copy', map 0 of its launch: it reaches over bytes 0 to 1280 of buffer 0, which has 1279");
  // The same where a run brings one of the two: one row less is below 2^63, and still more than there is.
  const std::string wide = replaced(good, "[128]", "[8589934592]");
  EXPECT_EQ(
      check(wide, 2147483649, 2147483649, 1280),
      "kernel 'copy', map 0 of its launch: it reaches over bytes 0 to more than 2^63 of buffer 0, which has 1280");
  EXPECT_EQ(check(wide, 1073741824, 1073741824, 1280),
            "kernel 'copy', map 0 of its launch: it reaches over bytes 0 to 9223372028264841344 of buffer 0, which has "
            "1280");
  EXPECT_NE(check(tiledText(R"("buffer": 1, "type": "u8", "sizes": [16], "strides": [], "box": [16], "swizzle": 0,)"
                            R"( "offset": ["sub", "n", 48])"),
                  32, 32, 48)
                .find("it reaches over bytes -16 to "),
            std::string::npos);
  EXPECT_NE(check(tiledText(R"("buffer": 1, "type": "u8", "sizes": [16, "n"], "strides": ["n"], "box": [16, 1],)"
                            R"( "swizzle": 0)"),
                  24, 24, 1000)
                .find("its stride along axis 1 is 24 bytes"),
            std::string::npos);
  EXPECT_NE(check(tiledText(R"("buffer": 1, "type": "u8", "sizes": [16], "strides": [], "box": [16], "swizzle": 0,)"
                            R"( "offset": "n")"),
                  24, 24, 1000)
                .find("it begins at an address that is no multiple of 16"),
            std::string::npos);
  EXPECT_EQ(check(tiledText(R"("buffer": 1, "type": "u8", "sizes": [16], "strides": [], "box": [16], "swizzle": 0,)"
                            R"( "offset": "n")"),
                  32, 32, 48),
            "");
}

TEST(CudaImage, DamagedEntries) {
  for (const std::string &text : {entryText(), tiledText()}) {
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
}

} // namespace
