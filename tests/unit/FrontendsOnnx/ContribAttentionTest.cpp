//===- ContribAttentionTest.cpp - what attention of com.microsoft refuses -===//
#include "ModelBuilder.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::test;

namespace {

constexpr int kF32 = 1, kI8 = 3, kI32 = 6, kI64 = 7;

struct Operand {
  const char *dims; ///< null: left out
  int type = kF32;
};

struct Refused {
  const char *name, *op;
  std::vector<Operand> operands;
  std::vector<std::pair<const char *, int64_t>> attributes;
  const char *clause;
};

const std::vector<std::pair<const char *, int64_t>> kHeads{{"num_heads", 4}, {"kv_num_heads", 2}};
const Operand kNone{nullptr}, kLengths{"1", kI32}, kTotal{"", kI32};

std::vector<Refused> refusals() {
  const Operand q{"1,1,64"}, kv{"1,1,32"}, past{"1,2,8,16"};
  return {
      {"QueryHeads",
       "GroupQueryAttention",
       {{"1,1,66"}, kv, kv, past, past, kLengths, kTotal},
       kHeads,
       "the 66 numbers of the query do not divide into 4 heads"},
      {"KeyHeads",
       "GroupQueryAttention",
       {q, kv, kv, past, past, kLengths, kTotal},
       {{"num_heads", 4}, {"kv_num_heads", 3}},
       "num_heads (4) must be a positive multiple of kv_num_heads (3)"},
      {"Past",
       "GroupQueryAttention",
       {q, kv, kv, past, {"1,2,7,16"}, kLengths, kTotal},
       kHeads,
       "the past f32[1x2x7x16] must be [1x2x8x16]"},
      {"OnePast",
       "GroupQueryAttention",
       {q, kv, kv, past, kNone, kLengths, kTotal},
       kHeads,
       "past_key and past_value must both be there"},
      {"Lengths",
       "GroupQueryAttention",
       {q, kv, kv, past, past, {"3", kI32}, kTotal},
       kHeads,
       "seqlens_k i64[3] must have one number for each of 1 batch entries"},
      {"CacheType",
       "GroupQueryAttention",
       {q, kv, kv, {"1,2,8,16", kI8}, {"1,2,8,16", kI8}, kLengths, kTotal},
       kHeads,
       "the cache has another type than the query"},
      {"Caches",
       "GroupQueryAttention",
       {q, kv, kv, past, past, kLengths, kTotal, {"16,9"}, {"16,9"}},
       {{"num_heads", 4}, {"kv_num_heads", 2}, {"do_rotary", 1}},
       "cos_cache f32[16x9] does not fit heads of 16 numbers"},
      {"Window",
       "GroupQueryAttention",
       {q, kv, kv, past, past, kLengths, kTotal},
       {{"num_heads", 4}, {"kv_num_heads", 2}, {"local_window_size", 9}, {"sliding_window_cache", 1}},
       "the cache has 8 rows, less than the window of 9"},
      {"Values",
       "MultiHeadAttention",
       {{"2,3,8"}, {"2,5,8"}, {"2,4,8"}},
       {{"num_heads", 2}},
       "the value has the dims 2x2x4x4 where 2x2x5x4 (batch, heads, rows, size) are asked for"},
      {"Mask",
       "MultiHeadAttention",
       {{"2,3,8"}, {"2,5,8"}, {"2,5,8"}, kNone, {"2,4", kI32}},
       {{"num_heads", 2}},
       "does not fit 2 batch entries of 3 queries and 5 keys"},
      {"Beams",
       "MultiHeadAttention",
       {{"2,1,8"}, {"2,1,8"}, {"2,1,8"}, kNone, kNone, kNone, {"2,2,8,4"}, {"2,2,8,4"}, {"1", kI32}, {"1,2,8", kI32}},
       {{"num_heads", 2}},
       "cache_indirection (a beam search inside the node) is not supported"},
      {"Columns",
       "Attention",
       {{"2,3,6"}, {"6,25"}, {"25"}},
       {{"num_heads", 2}},
       "the 25 columns do not divide into query, key and value"},
      {"Shared",
       "Attention",
       {{"2,3,6"}, {"6,24"}, {"24"}, kNone, {"2,2,2,8,4"}},
       {{"num_heads", 2}, {"past_present_share_buffer", 1}},
       "past_present_share_buffer needs past_sequence_length"},
      {"Positions",
       "RotaryEmbedding",
       {{"2,3,16"}, {"2,4", kI64}, {"8,4"}, {"8,4"}},
       {},
       "position_ids i64[2x4] do not fit 2x3 positions"},
      {"Skip",
       "SkipSimplifiedLayerNormalization",
       {{"2,3,8"}, {"2,2,8"}, {"8"}},
       {},
       "skip f32[2x2x8] does not fit the input f32[2x3x8]"},
      {"Groups",
       "GroupNorm",
       {{"2,3,3,8"}, {"8"}, {"8"}},
       {{"groups", 3}, {"activation", 0}},
       "the channels must divide into num_groups groups"},
      {"Segments",
       "EmbedLayerNormalization",
       {{"2,3", kI32}, {"2,3", kI32}, {"5,4"}, {"6,4"}, kNone, {"4"}, {"4"}},
       {},
       "segment_ids and segment_embedding must both be there"},
      {"Buckets",
       "RelativePositionBias",
       {{"8,2"}, {"", kI64}, {"", kI64}},
       {{"max_distance", 2}},
       "max_distance must be greater than 4"},
      {"States",
       "LinearAttention",
       {{"1,3,8"}, {"1,3,8"}, {"1,3,8"}, kNone, {"1,3,2"}, {"1,3,2"}},
       {{"q_num_heads", 2}, {"kv_num_heads", 2}, {"state_window", 9}},
       "state_window must be 0 to 8, not 9"},
      {"Axes", "CausalConvWithState", {{"1,4,5"}, {"4,1,2"}}, {{"ndim", 2}}, "ndim=2 is not supported"},
  };
}

/// One result or two: the operators here that have more have at least two.
std::vector<std::string> resultsOf(std::string_view op) {
  for (std::string_view one : {"RotaryEmbedding", "GroupNorm", "RelativePositionBias"})
    if (op == one)
      return {"y"};
  return {"y", "z"};
}

TEST(ContribAttention, RefusesWhatDoesNotFitByOneSentence) {
  for (const Refused &refused : refusals()) {
    TempDir dir;
    ModelBuilder b(20);
    b.domain("com.microsoft", 1).output("y");
    std::vector<std::string> names;
    for (const Operand &operand : refused.operands) {
      names.push_back(operand.dims ? "x" + std::to_string(names.size()) : "");
      if (operand.dims)
        b.input(names.back(), operand.dims, operand.type);
    }
    onnx::NodeProto &node = b.node(refused.op, names, resultsOf(refused.op), "node");
    node.set_domain("com.microsoft");
    for (auto [name, value] : refused.attributes)
      ModelBuilder::setInt(node, name, value);
    ImportRun run(optionsFor(dir.write("m.onnx", b.bytes())));
    EXPECT_EQ(run.diagnostics.errorCount(), 1u) << refused.name << ": " << run.text();
    EXPECT_NE(run.text().find(refused.clause), std::string::npos) << refused.name << ": " << run.text();
    EXPECT_EQ(run.diagnostics.exitCode(), 1) << refused.name;
  }
}

} // namespace
