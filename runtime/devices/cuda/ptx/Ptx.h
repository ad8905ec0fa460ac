//===- Ptx.h - a PTX text as it stands --------------------------*- C++ -*-===//
//
// The grammar of the part of PTX that kernels here are made of: directives, nested scopes of registers, guards,
// instructions with modifiers, vectors and addresses. What an instruction does is sim/Decoder's business.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dmxrt::cuda {

/// .u32, .f16, .pred: a letter (b, u, s, f; p for predicates, h for bf16) and bits.
struct PtxType {
  char kind = 0;
  uint8_t bits = 0;

  bool operator==(const PtxType &) const = default;
  bool isFloat() const { return kind == 'f' || kind == 'h'; }
  bool isPredicate() const { return kind == 'p'; }
  bool isSigned() const { return kind == 's'; }
  uint32_t bytes() const { return bits / 8u; }
};
/// The type of a name without its point; kind 0 where it is none.
PtxType typeOfName(std::string_view name);

struct PtxOperand {
  enum Kind : uint8_t {
    Register, ///< number
    Special,  ///< name: "tid.x"
    Integer,  ///< bits
    Float32,  ///< bits, 0f3f800000
    Float64,  ///< bits, 0d...
    Symbol,   ///< name: a label or a variable
    Address,  ///< base in parts[0], a Register or a Symbol, and bits: an offset; a Vector of coordinates in parts[1]
    Vector,   ///< parts
    Nothing,  ///< _
  };
  Kind kind = Nothing;
  uint32_t number = 0;
  uint64_t bits = 0;
  std::string_view name;
  std::vector<PtxOperand> parts;
};

struct PtxInstruction {
  uint32_t line = 0;
  int32_t guard = -1; ///< register; -1: none
  bool guardNot = false;
  std::string_view root;                   ///< "ld"
  std::vector<std::string_view> modifiers; ///< "global", "v4", "b32"
  std::vector<PtxOperand> operands;
  std::vector<uint32_t> targets; ///< of a branch: indices of instructions; of brx.idx, of its list
  std::string name() const;      ///< "ld.global.v4.b32"
};

/// A variable in .global, .const, .shared or .local memory.
struct PtxVariable {
  std::string_view name;
  uint32_t align = 1;
  uint64_t bytes = 0;
  std::vector<std::byte> values; ///< those given; zeros follow
  bool isExtern = false;         ///< the launch says how many bytes it has
};

/// Bytes of `type`: one of it, or an array.
struct PtxParameter {
  std::string_view name;
  PtxType type;
  uint32_t align = 1, bytes = 0;
  bool isArray = false;
};

/// From here on the text was made from a line of a file (.loc, .file).
struct PtxPlace {
  uint32_t line = 0; ///< of the text
  uint32_t file = 0, ownLine = 0;
};

struct PtxKernel {
  std::string_view name;
  uint32_t line = 0;
  std::vector<PtxParameter> parameters;
  uint32_t blockThreads = 0;      ///< .reqntid; 0: not said
  uint32_t mostThreads = 0;       ///< .maxntid; 0: not said
  uint32_t mostRegisters = 0;     ///< .maxnreg, of a thread; 0: not said
  uint32_t leastBlocks = 0;       ///< .minnctapersm, on a multiprocessor; 0: not said
  uint32_t cluster = 1;           ///< .reqnctapercluster: blocks of one
  std::vector<PtxType> registers; ///< by number
  std::vector<PtxVariable> locals, shared;
  std::vector<PtxInstruction> code;
  std::vector<PtxPlace> places; ///< ascending
};

/// Views point into the text.
struct PtxModule {
  uint32_t version = 0; ///< 80: PTX 8.0
  std::string_view target;
  std::vector<PtxVariable> globals, shared;
  std::vector<PtxKernel> kernels;
  std::map<uint32_t, std::string_view> files; ///< by number
};

/// Parses a text that outlives the module. Errors name the line and, inside of one, the kernel. `bodies`: what stands
/// between the brackets of kernels as well.
Result<PtxModule> parsePtx(std::string_view text, bool bodies = true);

} // namespace dmxrt::cuda
