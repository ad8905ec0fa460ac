//===- Isa.cpp - names, kinds, moves and building of instructions ---------===//

#include "Isa.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>

namespace dmx::corsair {
namespace {

constexpr std::string_view kMemoryNames[] = {"DDR", "GM", "ST", "OB", "WB", "IB", "DRE", "SIMD"};

struct KindInfo {
  std::string_view name;
  uint8_t bytes; ///< of an element, 0: Raw or tiled
  uint8_t precision;
  uint16_t block; ///< tiled kinds
  int depth;
};
constexpr KindInfo kKinds[] = {
    {"raw", 0, 0, 0, 0},        {"bool", 1, 0, 0, 0},       {"i8", 1, 0, 0, 0},          {"u8", 1, 0, 0, 0},
    {"i16", 2, 0, 0, 0},        {"i32", 4, 0, 0, 0},        {"i64", 8, 0, 0, 0},         {"f16", 2, 0, 0, 0},
    {"f32", 4, 0, 0, 0},        {"bfp32", 4, 0, 0, 0},      {"bfp16r", 0, 8, 64, 64},    {"bfp16c", 0, 8, 64, 64},
    {"bfp12r", 0, 4, 128, 128}, {"bfp12c", 0, 4, 128, 128}, {"bfp12x64r", 0, 4, 64, 64}, {"bfp12x64c", 0, 4, 64, 64},
    {"bfp24r", 0, 16, 64, 64},  {"bfp24c", 0, 16, 64, 64},
};
static_assert(std::size(kKinds) == kElemKinds);

struct FunctionInfo {
  std::string_view name;
  uint8_t operands;
};
constexpr FunctionInfo kFunctionInfos[] = {
    {"copy", 1},
    {"add", 2},
    {"sub", 2},
    {"mul", 2},
    {"div", 2},
    {"max", 2},
    {"min", 2},
    {"pow", 2},
    {"fma", 3},
    {"mod", 2},
    {"neg", 1},
    {"abs", 1},
    {"sign", 1},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"relu", 1},
    {"leaky_relu", 1},
    {"clip", 1},
    {"affine", 1},
    {"exp", 1},
    {"log", 1},
    {"tanh", 1},
    {"erf", 1},
    {"gelu", 1},
    {"gelu_tanh", 1},
    {"sigmoid", 1},
    {"silu", 1},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"reciprocal", 1},
    {"sin", 1},
    {"cos", 1},
    {"hard_sigmoid", 1},
    {"hard_swish", 1},
    {"elu", 1},
    {"softplus", 1},
    {"eq", 2},
    {"ne", 2},
    {"lt", 2},
    {"le", 2},
    {"gt", 2},
    {"ge", 2},
    {"and", 2},
    {"or", 2},
    {"xor", 2},
    {"not", 1},
    {"is_nan", 1},
    {"select", 3},
    {"fill", 0},
    {"iota", 0},
    {"causal_mask", 1},
    {"softmax", 1},
    {"log_softmax", 1},
    {"layer_norm", 3},
    {"rms_norm", 2},
    {"reduce_sum", 1},
    {"reduce_mean", 1},
    {"reduce_max", 1},
    {"reduce_min", 1},
    {"reduce_prod", 1},
    {"reduce_sum_square", 1},
    {"argmax", 1},
    {"argmin", 1},
    {"cumsum", 1},
    {"rope", 3},
    {"rope_interleaved", 3},
    {"pool_max", 1},
    {"pool_avg", 1},
    {"depthwise_conv", 3},
};
static_assert(std::size(kFunctionInfos) == kSimdFunctions);

constexpr uint8_t to(std::initializer_list<Memory> memories) {
  uint8_t mask = 0;
  for (Memory memory : memories)
    mask |= static_cast<uint8_t>(1u << static_cast<int>(memory));
  return mask;
}
using M = Memory;
/// Destinations by source.
constexpr uint8_t kMoves[kMemories] = {
    to({M::GM, M::ST}),                                               // DDR
    to({M::DDR, M::GM, M::ST, M::IB, M::OB, M::WB, M::DRE, M::SIMD}), // GM
    to({M::DDR, M::GM, M::IB, M::WB, M::SIMD}),                       // ST
    to({M::GM, M::ST, M::IB, M::DRE, M::SIMD}),                       // OB
    0,
    0,
    0,
    0,
};

} // namespace

std::string_view nameOf(Memory memory) { return kMemoryNames[static_cast<int>(memory)]; }
std::string_view nameOf(ElemKind kind) { return kKinds[static_cast<int>(kind)].name; }

std::optional<ElemKind> elemKindFromName(std::string_view name) {
  for (int i = 0; i < kElemKinds; ++i)
    if (kKinds[i].name == name)
      return static_cast<ElemKind>(i);
  return std::nullopt;
}

int elementBytes(ElemKind kind) { return kKinds[static_cast<int>(kind)].bytes; }

std::optional<TileShape> tileOf(ElemKind kind) {
  const KindInfo &info = kKinds[static_cast<int>(kind)];
  if (!info.block)
    return std::nullopt;
  TileShape shape;
  shape.format.precision = info.precision;
  shape.format.block = info.block;
  shape.depth = info.depth;
  return shape;
}

bool sameBytes(ElemKind a, ElemKind b) {
  auto format = [](ElemKind kind) { return static_cast<int>(kind) & ~1; };
  static_assert((static_cast<int>(ElemKind::Bfp16R) & 1) == 0, "R and C differ in the lowest bit");
  return a == b || (isTiled(a) && isTiled(b) && format(a) == format(b));
}

std::string_view nameOf(SimdFunction function) { return kFunctionInfos[static_cast<int>(function)].name; }
std::optional<SimdFunction> simdFunctionFromName(std::string_view name) {
  for (int i = 0; i < kSimdFunctions; ++i)
    if (kFunctionInfos[i].name == name)
      return static_cast<SimdFunction>(i);
  return std::nullopt;
}
int operandCount(SimdFunction function) { return kFunctionInfos[static_cast<int>(function)].operands; }

bool isLegalMove(Memory source, Memory destination) {
  return kMoves[static_cast<int>(source)] >> static_cast<int>(destination) & 1;
}

std::string legalDestinations(Memory source) {
  std::string list;
  for (int i = 0; i < kMemories; ++i)
    if (isLegalMove(source, static_cast<Memory>(i)))
      list += (list.empty() ? "" : ", ") + std::string(kMemoryNames[i]);
  return list.empty() ? "nothing" : list;
}

bool mayConvert(Memory source, Memory destination) {
  return isLegalMove(source, destination) && source != M::DDR && destination != M::DDR;
}

Instruction::Instruction(Opcode opcode) : opcode(opcode) {
  std::span<const FieldInfo> fields = info().fields;
  operands.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i)
    operands[i].base = fields[i].byDefault;
}

Instruction &Instruction::set(std::string_view field, int64_t value, std::vector<Term> terms) {
  int index = info().field(field);
  assert(index >= 0 && "the instruction has no such field");
  std::erase_if(terms, [](const Term &term) { return term.scale == 0; });
  std::sort(terms.begin(), terms.end(), [](const Term &a, const Term &b) { return a.source < b.source; });
  operands[index] = {value, std::move(terms)};
  return *this;
}

Instruction &Instruction::setFloat(std::string_view field, float value) {
  return set(field, std::bit_cast<int32_t>(value));
}

Instruction &Instruction::key(ConfigKey key, int64_t value) {
  auto it = std::lower_bound(config.begin(), config.end(), key,
                             [](const ConfigPair &pair, ConfigKey wanted) { return pair.first < wanted; });
  if (it != config.end() && it->first == key)
    it->second = value;
  else
    config.insert(it, {key, value});
  return *this;
}

int64_t Instruction::get(std::string_view field) const {
  int index = info().field(field);
  assert(index >= 0 && "the instruction has no such field");
  return operands[index].base;
}

} // namespace dmx::corsair
