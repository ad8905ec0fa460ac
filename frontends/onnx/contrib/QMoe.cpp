//===- QMoe.cpp - mixtures of experts with weights of few bits ------------===//
#include "Moe.h"

#include "frontends/common/ops/BlockQuantized.h"
#include "frontends/common/ops/Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// Where a layer's parts stand among the operands; -1: there is no such operand.
struct LayerOperands {
  const char *name, *bits;
  int weights, scales, bias, zeros, globalScale;
};
constexpr LayerOperands kFc1{"fc1", "fc1_expert_weight_bits", 2, 3, 4, 11, 15};
constexpr LayerOperands kFc2{"fc2", "fc2_expert_weight_bits", 5, 6, 7, 12, 16};
constexpr LayerOperands kFc3{"fc3", "fc3_expert_weight_bits", 8, 9, 10, 13, -1};
constexpr int kRouterWeights = 14, kActivationScales = 17, kOperands = 21;

int64_t bitsOf(NodeContext &c, const LayerOperands &at) {
  int64_t bits = c.attrInt(at.bits, c.attrInt("expert_weight_bits", 4));
  if (bits != 3)
    requireBits(c, bits);
  return bits;
}

Val weightsOf(NodeContext &c, const LayerOperands &at) {
  Val packed = c.operand(at.weights);
  c.requireShape(packed.rank() == 3,
                 std::string("the weights of ") + at.name + " " + packed.describe() + " must be of rank 3");
  return packed;
}

std::string partOf(const LayerOperands &at, const char *part) { return std::string(part) + " of " + at.name; }

/// An integer layer whose rows have `k` numbers: one scale a row, or one a block of it.
Val dequantized(NodeContext &c, const LayerOperands &at, Dim k, int64_t block) {
  Emitter &e = c.e;
  const int64_t bits = bitsOf(c, at);
  Val packed = weightsOf(c, at);
  if (packed.dtype() != DType::U8)
    fail("op-dtype",
         partOf(at, "the weights") + " must be packed bytes (u8), not " + std::string(dtypeName(packed.dtype())));
  const Dim experts = packed.extent(0), rows = packed.extent(1);
  c.requireShape(c.has(at.scales), partOf(at, "the scales") + " are missing");
  c.requireShape(mayEqual(packed.extent(2), Dim::ceilDiv(k * bits, 8)),
                 partOf(at, "the weights") + " " + packed.describe() + " must have " + k.str() + " numbers of " +
                     std::to_string(bits) + " bits in each row");
  if (block)
    c.requireAttr(k.valueOr(0) % block == 0, "block_size " + std::to_string(block) + " does not divide the " + k.str() +
                                                 " numbers in a row of " + at.name);
  const Dim blocks = block ? Dim::floorDiv(k, block) : Dim(1);
  const std::string why = block ? ": one for each block of " + std::to_string(block) : ": one for each row";
  BlockQuantized q;
  q.codes = packed;
  q.bits = bits;
  q.block = block ? Dim(block) : k;
  q.count = k;
  Dims shape = block ? Dims{experts, rows, blocks} : Dims{experts, rows};
  q.scales =
      e.reshape(shaped(c, c.operand(at.scales), shape, partOf(at, "scales").c_str(), why), {experts, rows, blocks});
  if (c.has(at.zeros)) {
    shape.back() = Dim::ceilDiv(shape.back() * bits, 8);
    q.zeros = shaped(c, c.operand(at.zeros), shape, partOf(at, "zero points").c_str(), why);
    if (!block) // the rows' zero points share bytes
      q.zeros = e.cast(unsqueeze(e, unpackedBits(e, q.zeros, bits, rows), 2), DType::F32);
  }
  return blockDequantize(e, q);
}

/// A layer of f8 numbers: one scale for each expert, or one for each square block, which the edges may cut short.
Val scaledFloats(NodeContext &c, const LayerOperands &at, int64_t block) {
  Emitter &e = c.e;
  Val packed = weightsOf(c, at);
  if (packed.dtype() != DType::F8E4M3FN)
    fail("op-dtype", partOf(at, "the weights") + " must be f8e4m3fn for quant_type 'fp8', not " +
                         std::string(dtypeName(packed.dtype())));
  c.requireShape(!c.has(at.zeros), "weights of a float type have no zero points");
  const Dim experts = packed.extent(0), rows = packed.extent(1), columns = packed.extent(2);
  Val numbers = e.cast(packed, DType::F32);
  const int scaleAt = block ? at.scales : at.globalScale;
  c.requireShape(c.has(scaleAt),
                 partOf(at, block ? "the scales" : "the global scale") + (block ? " are missing" : " is missing"));
  Val scales = e.cast(c.operand(scaleAt), DType::F32);
  if (!block)
    return e.mul(numbers,
                 e.reshape(shaped(c, scales, {experts}, partOf(at, "global scale").c_str(), ": one for each expert"),
                           {experts, 1, 1}));
  const Dim down = Dim::ceilDiv(rows, block), across = Dim::ceilDiv(columns, block);
  scales = shaped(c, scales, {experts, down, across}, partOf(at, "scales").c_str(),
                  ": one for each square of " + std::to_string(block));
  scales = e.broadcast(e.reshape(scales, {experts, down, 1, across, 1}), {experts, down, block, across, block});
  scales = e.reshape(scales, {experts, down * block, across * block});
  return e.mul(numbers, e.sliceAxis(e.sliceAxis(scales, 1, 0, rows), 2, 0, columns));
}

ExpertLayer layerOf(NodeContext &c, const LayerOperands &at, Dim k, int64_t block, bool floats) {
  if (!c.has(at.weights)) {
    for (int other : {at.scales, at.bias, at.zeros})
      c.requireShape(!c.has(other), "operand " + std::to_string(other) + " belongs to the weights of " + at.name +
                                        ", which are missing");
    return {};
  }
  return {floats ? scaledFloats(c, at, block) : dequantized(c, at, k, block), c.optional(at.bias)};
}

int64_t blockOf(NodeContext &c, bool floats) {
  const int64_t block = c.attrInt("block_size", 0);
  if (block == 0 || (floats && block < 0))
    return 0;
  if (floats)
    c.requireAttr(block <= INT32_MAX, "block_size must be below 2^31");
  else
    requireBlock(c, block);
  return block;
}

bool hasFloatWeights(NodeContext &c) {
  std::string type = c.attrString("quant_type", "int");
  if (type == "fp4" || type == "nvfp4" || type == "wfp4afp8")
    fail("op-unsupported", "weights of quant_type '" + type +
                               "' are not supported; quantise the experts to quant_type " + "'int' or 'fp8'");
  c.requireAttr(type == "int" || type == "fp8", "the quant_type '" + type + "' is unknown");
  return type == "fp8";
}

void importQMoE(NodeContext &c) {
  ExpertActivation activation = expertActivationOf(c);
  const bool floats = hasFloatWeights(c);
  c.requireAttr(floats || activation.rows() == 1 || bitsOf(c, kFc3) == bitsOf(c, kFc1),
                "gate and up are in fc1, so that fc3_expert_weight_bits must be as those of fc1");
  c.requireAttr(c.attrInt("weights_prepacked", -1) <= 0,
                "the weights are packed for one device (weights_prepacked); export them with weights_prepacked 0");
  for (int i = kActivationScales; i < kOperands; ++i)
    c.requireShape(!c.has(i), "scales of quantised activations are not supported (operand " + std::to_string(i) + ")");
  const int64_t block = blockOf(c, floats);
  for (const LayerOperands &at : {kFc1, kFc2})
    c.requireShape(c.has(at.weights), partOf(at, "the weights") + " are missing");
  const Dim hidden = c.operand(0).rank() ? c.operand(0).extent(-1) : Dim(1);
  const Dim inner = Dim::floorDiv(weightsOf(c, kFc1).extent(1), activation.rows());
  Experts experts{layerOf(c, kFc1, hidden, block, floats), layerOf(c, kFc2, inner, block, floats),
                  layerOf(c, kFc3, hidden, block, floats)};
  Val given;
  if (c.has(kRouterWeights))
    given = c.e.cast(shaped(c, c.operand(kRouterWeights), c.operand(1).dims(), "router weights", " of router_probs"),
                     DType::F32);
  c.result(mixedExperts(c, experts, activation, routeOf(c, given)));
}

} // namespace

std::vector<OpRows> contribQMoeOps() {
  using namespace types;
  constexpr TypeSet Packed = bitOf(DType::U8) | bitOf(DType::F8E4M3FN), Scale = kContribFloat, F = kContribFloat;
  return {{"QMoE",
           {1},
           "TTUVTUVTUVTUUUTWWWWVV>1",
           importQMoE,
           "accuracy_level,activation_alpha=float,activation_beta=float,activation_type,block_size,expert_weight_bits,"
           "fc1_expert_weight_bits,fc2_expert_weight_bits,fc3_expert_weight_bits,k,normalize_routing_weights,"
           "quant_type,swiglu_fusion,swiglu_limit,swiglu_limit_after_activation,use_sparse_mixer,weights_prepacked",
           {F, F, Packed, Scale, F, Packed, Scale, F, Packed, Scale, F, Packed, Packed, Packed, F, Any},
           "quant_type int and fp8",
           kMicrosoft}};
}

} // namespace dmxc::onnxfe
