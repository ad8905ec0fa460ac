//===- Costs.cpp - what a multiprocessor does with an instruction -------------===//

#include "Costs.h"
#include "runtime/devices/cuda/ptx/Ptx.h"

#include <algorithm>

namespace dmxrt::cuda {
namespace {

bool isOneOf(std::string_view word, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), word) != all.end();
}
bool has(const PtxInstruction &i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}
bool begins(const PtxInstruction &i, std::string_view modifier) {
  return !i.modifiers.empty() && i.modifiers.front() == modifier;
}

/// The type that an instruction computes with, its last one; kind 0: it has none.
PtxType typeOf(const PtxInstruction &i) {
  for (size_t at = i.modifiers.size(); at-- > 0;)
    if (PtxType type = typeOfName(i.modifiers[at]); type.kind)
      return type;
  return {};
}

constexpr InstructionCost none() { return {Effect::Plain, Unit::None, 0, 0, 0}; }
constexpr InstructionCost of(Unit unit, uint8_t issues, uint8_t clocks, uint16_t latency) {
  return {Effect::Plain, unit, issues, clocks, latency};
}
constexpr InstructionCost effect(Effect effect, Unit unit = Unit::None, uint8_t clocks = 0, uint16_t latency = 0) {
  return {effect, unit, 1, clocks, latency};
}

// Of a sub-partition, in lanes a clock: Float 32, Integer 16, Double 16, Special 4.

InstructionCost floatCost(std::string_view root, PtxType type) {
  bool isDouble = type.bits == 64;
  // A seed from the special unit, Newton steps, and a test for what needs the slow way.
  if (root == "div")
    return isDouble ? of(Unit::Double, 20, 40, 160) : of(Unit::Float, 10, 10, 44);
  if (root == "sqrt" || root == "rcp")
    return isDouble ? of(Unit::Double, 16, 32, 140) : of(Unit::Float, 8, 8, 40);
  if (isOneOf(root, {"ex2", "lg2", "sin", "cos", "rsqrt", "tanh"}))
    return of(Unit::Special, 1, 8, 18);
  InstructionCost cost = isDouble ? of(Unit::Double, 1, 2, 8) : of(Unit::Float, 1, 1, 4);
  cost.isFma = root == "fma" && type.bits == 32;
  return cost;
}

InstructionCost integerCost(std::string_view root, const PtxInstruction &i, PtxType type) {
  bool isWide = type.bits == 64;
  if (root == "div" || root == "rem") // a sequence with a reciprocal in floating point; of 64 bits a call
    return isWide ? of(Unit::Integer, 70, 140, 300) : of(Unit::Integer, 20, 40, 100);
  if (isOneOf(root, {"popc", "clz", "brev"}))
    return of(Unit::Special, isWide ? 2 : 1, isWide ? 16 : 8, 12);
  if (root == "mul" || root == "mad")
    return isWide && !has(i, "wide") ? of(Unit::Integer, 4, 8, 10) : of(Unit::Integer, 1, 2, 5);
  if (root == "bfe" || root == "bfi")
    return of(Unit::Integer, 2, 4, 8);
  return isWide ? of(Unit::Integer, 2, 4, 6) : of(Unit::Integer, 1, 2, 4);
}

InstructionCost conversionCost(const PtxInstruction &i) {
  PtxType from = typeOf(i), to;
  for (std::string_view modifier : i.modifiers)
    if (to = typeOfName(modifier); to.kind)
      break;
  bool floats = from.isFloat() || to.isFloat();
  if (!floats) // a register of zeros or of signs beside it
    return from.isSigned() && to.bits > from.bits ? of(Unit::Integer, 1, 2, 4) : none();
  if (from.bits == 64 || to.bits == 64)
    return of(Unit::Special, 1, 8, 14);
  return of(Unit::Special, 1, 2, 6);
}

InstructionCost barrierCost(std::string_view root, const PtxInstruction &i) {
  if (root == "mbarrier") {
    if (begins(i, "init"))
      return effect(Effect::Initialize, Unit::Memory, 1);
    if (begins(i, "try_wait") || begins(i, "test_wait"))
      return effect(Effect::Await, Unit::Memory, 1);
    if (begins(i, "inval"))
      return effect(Effect::Plain, Unit::Memory, 1);
    Effect what = begins(i, "expect_tx") ? Effect::Expect
                  : has(i, "expect_tx")  ? Effect::ArriveExpecting
                                         : Effect::Arrive;
    return effect(what, Unit::Memory, 1);
  }
  if (root == "bar" || root == "barrier") {
    if (begins(i, "cluster"))
      return effect(has(i, "arrive") ? Effect::ClusterArrive : Effect::ClusterAwait);
    if (has(i, "warp"))
      return effect(Effect::Plain, Unit::None, 0, 4);
    return effect(has(i, "arrive") ? Effect::MeetOnly : Effect::Meet);
  }
  return effect(Effect::Plain, Unit::None, 0, 4);
}

InstructionCost matrixCost(std::string_view root, const PtxInstruction &i) {
  if (root != "wgmma")
    return effect(Effect::Matrices, Unit::Memory);
  if (begins(i, "mma_async"))
    return effect(Effect::Multiply, Unit::Tensor);
  if (begins(i, "commit_group"))
    return effect(Effect::ProductsEnd);
  return begins(i, "wait_group") ? effect(Effect::ProductsWait) : effect(Effect::Plain);
}

InstructionCost bulkCost(const PtxInstruction &i) {
  if (has(i, "commit_group"))
    return effect(Effect::BulkCommit);
  return effect(has(i, "wait_group") ? Effect::BulkWait : Effect::BulkCopy);
}

} // namespace

std::string_view nameOf(Unit unit) {
  constexpr std::string_view kNames[] = {"none", "float", "integer", "double", "special", "load/store", "tensor"};
  return kNames[static_cast<size_t>(unit)];
}

InstructionCost costOf(const PtxInstruction &i) {
  std::string_view root = i.root;
  if (isOneOf(root, {"mov", "cvta", "prefetch"}) || (root == "ld" && begins(i, "param")))
    return none();
  if (isOneOf(root, {"ld", "st", "atom"}))
    return effect(root == "atom" ? Effect::Atomic : Effect::Access, Unit::Memory);
  if (isOneOf(root, {"bra", "brx", "ret", "exit"}))
    return of(Unit::None, 1, 0, 0);
  if (isOneOf(root, {"wgmma", "ldmatrix", "stmatrix"}))
    return matrixCost(root, i);
  if (root == "cp")
    return bulkCost(i);
  if (isOneOf(root, {"bar", "barrier", "mbarrier", "fence", "membar", "setmaxnreg"}))
    return barrierCost(root, i);
  if (isOneOf(root, {"shfl", "redux", "match"}))
    return effect(Effect::Exchange, Unit::Memory, root == "shfl" ? 1 : 2, 24);
  if (isOneOf(root, {"vote", "elect", "activemask"}))
    return of(Unit::Integer, 1, 2, 12);
  if (root == "cvt")
    return conversionCost(i);
  PtxType type = typeOf(i);
  if (isOneOf(root, {"setp", "selp", "slct", "testp"}))
    return type.bits == 64 ? of(type.isFloat() ? Unit::Double : Unit::Integer, 2, 4, 6) : of(Unit::Integer, 1, 2, 4);
  return type.isFloat() ? floatCost(root, type) : integerCost(root, i, type);
}

} // namespace dmxrt::cuda
