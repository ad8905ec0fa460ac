//===- Decoder.h - from an instruction to what it does ----------*- C++ -*-===//
#pragma once

#include "Program.h"

#include <algorithm>

namespace dmxrt::cuda {

/// One instruction on its way to an Op. The functions that decode families of instructions take modifiers from the
/// front and operands by number; what they leave is an error.
class Decoder {
public:
  Decoder(const PtxModule &module, const PtxKernel &kernel, Program &program)
      : module(module), kernel(kernel), program(program) {
    layShared();
  }

  /// False: `problem` says why.
  bool decode(const PtxInstruction &instruction, Op &op);
  std::string problem;
  /// Constants by value, while slots behind them are not known.
  void placeSlots();

  // --- for the families ---------------------------------------------------------------
  bool take(std::string_view modifier) {
    bool found = next < instruction->modifiers.size() && instruction->modifiers[next] == modifier;
    next += found;
    return found;
  }
  bool takeAny(std::initializer_list<std::string_view> all) {
    for (std::string_view each : all)
      if (take(each))
        return true;
    return false;
  }
  /// Whether a modifier stands anywhere.
  bool has(std::string_view modifier) const {
    const auto &all = instruction->modifiers;
    return std::find(all.begin(), all.end(), modifier) != all.end();
  }
  /// A type, or one of kind 0.
  PtxType takeType() {
    PtxType type = next < instruction->modifiers.size() ? typeOfName(instruction->modifiers[next]) : PtxType();
    next += type.kind != 0;
    return type;
  }
  std::string_view takeWord() {
    return next < instruction->modifiers.size() ? instruction->modifiers[next++] : std::string_view();
  }
  const PtxOperand &operand(size_t i) const { return instruction->operands[i]; }
  size_t operands() const { return instruction->operands.size(); }
  /// Whether there are so many; else an error.
  bool hasOperands(size_t count);
  /// Adds operand i as a source or as the result: a register of `bits`, or with `wider` of more; a source may be a
  /// number of type `type` too.
  bool source(Op &op, size_t i, PtxType type, bool wider = false) { return source(op, operand(i), type, wider); }
  bool source(Op &op, const PtxOperand &from, PtxType type, bool wider = false);
  bool result(Op &op, size_t i, PtxType type, bool wider = false) { return result(op, operand(i), type, wider); }
  bool result(Op &op, const PtxOperand &to, PtxType type, bool wider = false);
  bool predicate(const PtxOperand &from, int32_t &out);
  bool address(Op &op, const PtxOperand &from, bool isParameter);
  /// An address of shared memory: of 32 or 64 bits.
  bool sharedAddress(Op &op, const PtxOperand &from, int64_t &offset);
  /// A number that stands in the text.
  bool number(size_t i, uint64_t most, uint64_t &out);
  /// .shared, .shared::cta or .shared::cluster, where a cluster is one block.
  bool takeShared() { return takeAny({"shared", "shared::cta", "shared::cluster"}); }
  /// The kernel's threads may wait for each other.
  void talk() { program.talks = true; }
  Program &made() { return program; }
  /// Bits of a register that a result goes to.
  uint32_t registerBits(const PtxOperand &operand) const;
  /// Bits of the parameter that an op reads.
  uint32_t parameterBits(const Op &op) const { return kernel.parameters[op.source[0] & (Constants - 1)].type.bits; }
  template <typename... Parts> bool refuse(const Parts &...parts) {
    if (problem.empty())
      problem = cat(parts...);
    return false;
  }
  bool refuseForm() { return refuse("'", instruction->name(), "' is no instruction that is known here"); }

  enum Place : uint32_t {
    Constants = 1u << 28,
    Parameters = 2u << 28,
    SpecialPlace = 3u << 28,
    Tables = 4u << 28,
    Locals = 5u << 28
  };

private:
  void layShared();
  uint32_t constantSlot(uint64_t bits);
  bool symbol(std::string_view name, PtxType type, uint32_t &slot);

  const PtxModule &module;
  const PtxKernel &kernel;
  Program &program;
  const PtxInstruction *instruction = nullptr;
  size_t next = 0; ///< modifier
  std::map<uint64_t, uint32_t> constants;
  std::map<std::string_view, uint64_t> shared; ///< addresses of variables
};

// The families, by files. False: the instruction is none of theirs, or the decoder has a problem.
bool decodeInteger(Decoder &d, std::string_view root, Op &op);
bool decodeFloat(Decoder &d, std::string_view root, Op &op);
bool decodeConversion(Decoder &d, std::string_view root, Op &op);
bool decodeComparison(Decoder &d, std::string_view root, Op &op);
bool decodeMove(Decoder &d, std::string_view root, Op &op);
bool decodeMemory(Decoder &d, std::string_view root, Op &op);
bool decodeCluster(Decoder &d, std::string_view root, Op &op);
bool decodeBarrier(Decoder &d, std::string_view root, Op &op);
bool decodeWarp(Decoder &d, std::string_view root, Op &op);
bool decodeBulk(Decoder &d, std::string_view root, Op &op);
bool decodeMatrix(Decoder &d, std::string_view root, Op &op);

} // namespace dmxrt::cuda
