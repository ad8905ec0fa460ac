// Kernels of rows: what they touch, what they refuse, and clocks by hand from schemas/aie/NUMERICS.md.
#include "schemas/aie/RowKernels.h"

#include <gtest/gtest.h>

using namespace dmx::aie;

static Call callOf(std::string_view name, int64_t first, int64_t second = 0) {
  Call call;
  call.kernel = *kernelNamed(name);
  call.scalars = {first, second};
  return call;
}

static int64_t clocks(const Call &call) { return clocksOf(*machineOf("npu1"), call); }

// 40 a call, 4 an entry of a loop; 2 for 16 numbers, which are stored in two accesses.
TEST(AieRowKernels, JoinsTakeTheirStoresOrTheirSlots) {
  EXPECT_EQ(clocks(callOf("copy_f32", 64)), 40 + 4 + 4 * 2);
  EXPECT_EQ(clocks(callOf("add_f32", 72)), 40 + 4 + 5 * 2); // the last vector is half full
  EXPECT_EQ(clocks(callOf("multiply_row_f32", 3, 32)), 40 + 3 * (4 + 2 * 6));
  EXPECT_EQ(clocks(callOf("divide_into_f32", 16)), 40 + 4 + 30);
}

// Two of the three loops of a softmax end in lanes that are joined, 8 each, and a sum in a reciprocal of 24. Of 16
// numbers: 1 a maximum; of exp 1 a difference, 7 for each of three products and seven terms, 1 the power of two; 1 a
// sum; 6 a product.
TEST(AieRowKernels, NormalisationsTakeWhatTheirRulesCountTo) {
  EXPECT_EQ(clocks(callOf("softmax_f32", 2, 32)), 40 + 2 * (3 * 4 + 2 * 8 + 24 + 2 * (1 + (1 + 10 * 7 + 1) + 1 + 6)));
  EXPECT_EQ(clocks(callOf("layer_norm_f32", 1, 16)), 40 + 3 * 4 + 2 * 8 + 2 * 24 + (1 + 8 + 7));
  EXPECT_EQ(clocks(callOf("rms_norm_f32", 1, 16)), 40 + 2 * 4 + 8 + 2 * 24 + (7 + 6));
}

TEST(AieRowKernels, TouchWholeRows) {
  std::string error;
  std::vector<Touch> row = touches(callOf("add_row_f32", 5, 24), error);
  ASSERT_EQ(row.size(), 2U);
  EXPECT_EQ(row[0].bytes, 4 * 24);
  EXPECT_EQ(row[1].bytes, 4 * 5 * 24);
  EXPECT_TRUE(row[1].reads && row[1].writes && !row[0].writes);
  EXPECT_FALSE(touches(callOf("copy_f32", 24), error)[1].reads);
  EXPECT_EQ(touches(callOf("softmax_f32", 5, 24), error)[0].bytes, 4 * kParameterWords);
  EXPECT_TRUE(error.empty());
}

TEST(AieRowKernels, RefuseRowsOfNoWholeVectors) {
  for (int64_t columns : {0, 12, -8, 1 << 20}) {
    std::string error;
    EXPECT_TRUE(touches(callOf("softmax_f32", 2, columns), error).empty());
    EXPECT_NE(error.find("softmax_f32 takes rows of a multiple of 8 numbers"), std::string::npos) << error;
  }
}
