//===- Isa.h - the DMX instruction set of the Corsair target ----*- C++ -*-===//
//
// One table of instructions and one of configuration keys drive the encoder,
// the decoder, the printer, the assembler, the verifier and the tables of
// ISA.md. ISA.md has the semantics; this file has the names.
//
// Units: addresses and strides are bytes within one memory, times are clocks of
// the machine, unless a field's text says otherwise.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Numbers.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dmx::corsair {

// --- enumerations that fields hold -------------------------------------------

/// Memories of the machine; the endpoints of moves.
enum class Memory : uint8_t { DDR, GM, ST, OB, WB, IB, DRE, SIMD };
constexpr int kMemories = 8;
std::string_view nameOf(Memory memory); ///< "DDR"

/// What the bytes of a range are. Every written byte of a memory carries one.
enum class ElemKind : uint8_t {
  Raw, ///< in descriptors only: "whatever it is"; the copy keeps the kinds
  Bool,
  I8,
  U8,
  I16,
  I32,
  I64,
  F16,
  F32,
  Bfp32, ///< BFP32_1: f32 with a 22-bit fraction; accumulators and biases
  Bfp16R,
  Bfp16C, ///< BFP16_64: tiles of 64 x 64, 4,160 B
  Bfp12R,
  Bfp12C, ///< BFP12_128: tiles of 128 deep x 64, 4,160 B
  Bfp12x64R,
  Bfp12x64C, ///< BFP12_64: tiles of 64 x 64, 2,112 B; weights of the mixed 8x4 product
  Bfp24R,
  Bfp24C, ///< BFP24_64: tiles of 64 x 64, 8,256 B
};
constexpr int kElemKinds = 18;
std::string_view nameOf(ElemKind kind); ///< "f16", "bfp16r"
std::optional<ElemKind> elemKindFromName(std::string_view name);

/// Bytes of an element; 0 for Raw and for kinds made of tiles.
int elementBytes(ElemKind kind);
/// The tile of a block kind, nothing for the others.
std::optional<TileShape> tileOf(ElemKind kind);
/// Whether two kinds are the same bytes (R and C of one format, or equal).
bool sameBytes(ElemKind a, ElemKind b);
inline bool isTiled(ElemKind kind) { return kind >= ElemKind::Bfp16R; }

/// Functions of EXEC_SIMD; ISA.md has a row for each.
enum class SimdFunction : uint8_t {
  // elementwise: d = f(a, b, c)
  Copy,
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  Pow,
  Fma,
  Mod,
  Neg,
  Abs,
  Sign,
  Floor,
  Ceil,
  Round,
  Relu,
  LeakyRelu,
  Clip,
  Affine,
  Exp,
  Log,
  Tanh,
  Erf,
  Gelu,
  GeluTanh,
  Sigmoid,
  Silu,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Sin,
  Cos,
  HardSigmoid,
  HardSwish,
  Elu,
  Softplus,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Xor,
  Not,
  IsNaN,
  Select, ///< a (bool) ? b : c
  Fill,
  Iota,
  CausalMask,
  // rows: the innermost `inner` dimensions are one row
  Softmax,
  LogSoftmax,
  LayerNorm,
  RmsNorm,
  ReduceSum,
  ReduceMean,
  ReduceMax,
  ReduceMin,
  ReduceProd,
  ReduceSumSquare,
  ArgMax,
  ArgMin,
  CumSum,
  Rope, ///< half-split rotation
  RopeInterleaved,
  // windows over an image
  PoolMax,
  PoolAvg,
  DepthwiseConv,
};
constexpr int kSimdFunctions = static_cast<int>(SimdFunction::DepthwiseConv) + 1;
std::string_view nameOf(SimdFunction function); ///< "add"
std::optional<SimdFunction> simdFunctionFromName(std::string_view name);
/// Source operands the function reads, 0 to 3 (a, b, c).
int operandCount(SimdFunction function);

/// Rules of EXTRACT and INSERT.
enum class Rule : uint8_t { Strided, Gather, Scatter, Window };
/// Who takes part in a BARRIER.
enum class Scope : uint8_t { Queues, Quad, Chiplet, Card };
/// Units that RESET clears: bits of its mask.
enum ResetUnit : uint8_t {
  kResetIB = 1,
  kResetWB = 2,
  kResetOB = 4,
  kResetSIMD = 8,
  kResetDRE = 16,
  kResetGM = 32,
  kResetST = 64,
  kResetConfig = 128
};

// --- instructions ------------------------------------------------------------

enum class Opcode : uint8_t {
  Nop = 0x00,
  Mark,
  Halt,
  Loop,
  EndLoop,
  Signal,
  Wait,
  SignalRemote,
  WaitRemote,
  Barrier,
  Send,
  Recv,
  Reset,
  ConfigAC = 0x10,
  ConfigSIMD,
  ConfigGM,
  ConfigST,
  Move = 0x20,
  Matmul = 0x28,
  Conv,
  ExecSimd = 0x30,
  Transpose = 0x38,
  Extract,
  Insert,
  ExecCpu = 0x40,
  // bytecode of the quad's CPU: only in CPU functions
  CpuLi = 0x60,
  CpuMov,
  CpuAdd,
  CpuAddI,
  CpuSub,
  CpuMul,
  CpuDiv,
  CpuMod,
  CpuMin,
  CpuMax,
  CpuAnd,
  CpuOr,
  CpuXor,
  CpuShl,
  CpuShr,
  CpuSeq,
  CpuSne,
  CpuSlt,
  CpuSle,
  CpuBr,
  CpuBz,
  CpuBnz,
  CpuLd,
  CpuSt,
  CpuQuad,
  CpuRet,
};

enum class Group : uint8_t { Control, Config, Move, Compute, Simd, Reshape, Cpu, CpuCode };
std::string_view nameOf(Group group);

enum class FieldKind : uint8_t {
  Unsigned,
  Signed,
  Address,
  Mask,
  Register,
  Token,
  Memory,
  Function,
  Rule,
  Scope,
  Float,
  CpuFunction,
  Label
};

/// A field of an instruction: `bits` wide in the encoding.
struct FieldInfo {
  const char *name;
  FieldKind kind;
  uint8_t bits;      ///< 8, 16, 32 or 64
  bool affine;       ///< may have terms
  int64_t byDefault; ///< the printer leaves it out when it has this value
  const char *doc;
};

struct InstructionInfo {
  Opcode opcode;
  const char *name; ///< "MATMUL"; of a move the common part, "MOVE"
  Group group;
  std::span<const FieldInfo> fields;
  const char *doc;
  /// Position of a field, or -1.
  int field(std::string_view name) const;
};

std::span<const InstructionInfo> instructions();
/// Null for a byte that is no opcode.
const InstructionInfo *findInstruction(uint8_t opcode);
const InstructionInfo &infoOf(Opcode opcode);

/// What an affine term multiplies.
enum TermSource : uint8_t {
  kTermLoop = 0,      ///< + depth 0..7: counter of an enclosing LOOP, the outermost is 0
  kTermRegister = 16, ///< + 0..15: CPU register of the quad
  kTermQuad = 32,     ///< the quad's number in the card, 0..31
};
constexpr int kMaxLoopDepth = 8, kRegisters = 16, kTokens = 64, kConfigSlots = 16;

/// scale * source, added to a field.
struct Term {
  uint8_t source = 0;
  int64_t scale = 0;
  bool operator==(const Term &) const = default;
};
inline Term loopTerm(int depth, int64_t scale) { return {static_cast<uint8_t>(kTermLoop + depth), scale}; }
inline Term registerTerm(int number, int64_t scale = 1) {
  return {static_cast<uint8_t>(kTermRegister + number), scale};
}
inline Term quadTerm(int64_t scale) { return {kTermQuad, scale}; }

/// A field's value: base + sum of terms.
struct Operand {
  int64_t base = 0;
  std::vector<Term> terms; ///< sources strictly ascending, scales not 0
  bool operator==(const Operand &) const = default;
};

// --- configuration -----------------------------------------------------------

/// Units with configuration slots; the number is that of CONFIG's opcode.
enum class Unit : uint8_t { AC, SIMD, GM, ST };

/// Keys of CONFIG instructions; ISA.md's tables have their meaning.
enum class ConfigKey : uint16_t {
  // moves, EXTRACT, INSERT (units GM and ST)
  Kind,
  To,
  Retype,
  SrcMode,
  DstMode,
  Unit,
  N0,
  N1,
  N2,
  N3,
  S0,
  S1,
  S2,
  S3,
  T0,
  T1,
  T2,
  T3,
  SrcBand,
  DstBand,
  SrcSlice,
  DstSlice,
  SrcCore,
  Tail,
  ElemStride,
  Lo0,
  Lo1,
  Lo2,
  Lo3,
  Hi0,
  Hi1,
  Hi2,
  Hi3,
  IndexKind,
  IndexPitch,
  IndexRange,
  // windows (AC, SIMD, and GM for EXTRACT)
  WinH = 64,
  WinW,
  WinKH,
  WinKW,
  WinSH,
  WinSW,
  WinPH,
  WinPW,
  WinDH,
  WinDW,
  WinOW,
  WinC,
  // array controller
  ActKind = 96,
  WeightKind,
  IbChunk,
  IbStep,
  ObRow,
  ObGroup,
  ObStep,
  StChunk,
  StGroup,
  StStep,
  StepAcc,
  KChunks,
  ImgBand,
  ImgChunk,
  ImgBlocks,
  ImgMem,
  PixSlice,
  Pixels,
  // SIMD
  DKind = 128,
  AKind,
  BKind,
  CKind,
  DMem,
  AMem,
  BMem,
  CMem,
  D0,
  D1,
  D2,
  D3,
  A0,
  A1,
  A2,
  A3,
  B0,
  B1,
  B2,
  B3,
  C0,
  C1,
  C2,
  C3,
  Inner,
  Split,
  Causal,
  CountPad,
};

struct ConfigKeyInfo {
  ConfigKey key;
  const char *name;
  uint8_t units; ///< bit 1 << Unit
  int64_t byDefault, min, max;
  const char *doc;
};
std::span<const ConfigKeyInfo> configKeys();
const ConfigKeyInfo *findConfigKey(ConfigKey key);
const ConfigKeyInfo *findConfigKey(std::string_view name, Unit unit);

/// A key with a value; in an instruction keys ascend strictly.
using ConfigPair = std::pair<ConfigKey, int64_t>;

/// A decoded instruction.
struct Instruction {
  Opcode opcode = Opcode::Nop;
  std::vector<Operand> operands;  ///< one per field of the table
  std::vector<ConfigPair> config; ///< of CONFIG instructions
  bool operator==(const Instruction &) const = default;

  Instruction() : Instruction(Opcode::Nop) {}
  /// All fields at their defaults.
  explicit Instruction(Opcode opcode);
  const InstructionInfo &info() const { return infoOf(opcode); }
  /// Sets a field by name; the name must exist (a programming error otherwise).
  Instruction &set(std::string_view field, int64_t value, std::vector<Term> terms = {});
  Instruction &setFloat(std::string_view field, float value);
  /// Adds or replaces a key of a CONFIG instruction, keeping the order.
  Instruction &key(ConfigKey key, int64_t value);
  /// The base of a field.
  int64_t get(std::string_view field) const;
};

/// The unit of a CONFIG opcode.
std::optional<Unit> configUnit(Opcode opcode);

// --- moves -------------------------------------------------------------------

/// The legal-move matrix (machine document, section 8.1).
bool isLegalMove(Memory source, Memory destination);
/// "GM, ST": where a source may go.
std::string legalDestinations(Memory source);
/// Whether a move between these memories may convert between kinds: ISA.md,
/// "Conversion".
bool mayConvert(Memory source, Memory destination);

// --- encoding ----------------------------------------------------------------

/// Appends the bytes of one instruction; its fields must fit (see verify).
void encode(const Instruction &instruction, std::vector<uint8_t> &out);
/// Decodes the instruction at `offset` and advances it. On failure returns
/// nothing and sets `error`. Accepts exactly what `encode` produces: for every
/// accepted byte string, encoding the result gives the same bytes.
std::optional<Instruction> decode(std::span<const uint8_t> bytes, size_t &offset, std::string &error);

/// The tables of ISA.md in Markdown, from the tables above.
std::string isaTablesMarkdown();

} // namespace dmx::corsair
