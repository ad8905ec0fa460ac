//===- Image.h - the .dmxisa container --------------------------*- C++ -*-===//
//
// A compiled program for a machine: instruction streams, CPU functions and the
// kernels that launch them. `write` gives the bytes of a bundle's entry
// code/corsair/<arch>/kernels.dmxisa; `read` trusts nothing.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Isa.h"
#include "Machine.h"

#include "schemas/Size.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dmx::corsair {

constexpr uint16_t kImageMajor = 1, kImageMinor = 1;
/// `Launch::streams` of a queue that does nothing.
constexpr uint32_t kNoStream = ~0u;
/// Entry of `Kernel::dimRegisters` for a dim that no register gets.
constexpr uint32_t kNoRegister = ~0u;

/// Code of one queue, or of a CPU function. Streams end with HALT, functions
/// with CPU_RET.
struct Code {
  std::string name;
  std::vector<Instruction> instructions;
  bool operator==(const Code &) const = default;
};

/// Element types on the host; the names are those of the bundle's dtypes.
enum class HostType : uint8_t { Bool, I8, U8, I16, I32, I64, F16, BF16, F32, F64 };
constexpr int kHostTypes = 10;
std::string_view nameOf(HostType type);
std::optional<HostType> hostTypeFromName(std::string_view name);
int bytesOf(HostType type);

enum class Role : uint8_t {
  Input,  ///< host -> pieces, at every dispatch
  Output, ///< pieces -> host, at every dispatch
  State,  ///< pieces only; zeros at first and after a reset; the host's buffer stands for it by its address
  Const,  ///< host -> pieces once a session, as bytes: the host's buffer is packed already
  Scalar, ///< one integer of the host -> register `reg` of every launched quad, at every dispatch
};
constexpr int kRoles = 5;
std::string_view nameOf(Role role);
std::optional<Role> roleFromName(std::string_view name);

/// A box of a tensor and where it lies on the device.
struct Piece {
  Memory memory = Memory::DDR; ///< DDR; for State also GM and ST
  uint32_t unit = 0;           ///< DDR: chiplet; GM: quad; ST: quad * slices + slice
  uint64_t address = 0;
  /// Per dimension of the device's order (after `perm`). Const: one dimension, bytes.
  std::vector<int64_t> begin, extent;
  /// Plain forms: bytes per dimension. Block forms: two numbers, the bytes from
  /// one 64-run band of tiles to the next and from one tile to the next along
  /// the blocked dimension. Const: empty.
  std::vector<int64_t> strides;
  bool operator==(const Piece &) const = default;
};

inline constexpr uint32_t kMaxRank = 8; ///< of an argument

/// A buffer of the dispatch, in the order of the task's buffers.
struct Argument {
  std::string name;
  Role role = Role::Input;
  HostType type = HostType::F32;
  std::vector<int64_t> shape; ///< on the host, dense and row-major; Const: {bytes}
  std::vector<uint8_t> perm;  ///< device dimension i is host dimension perm[i]; empty: the same order
  ElemKind form = ElemKind::F32;
  std::vector<Piece> pieces;
  uint32_t reg = 0; ///< Scalar
  bool operator==(const Argument &) const = default;
  /// Bytes of the host's buffer; Size::kTooLarge when they do not fit 63 bits, or would not if no extent were 0.
  uint64_t hostBytes() const;
};

/// Bytes a piece spans from its address on; Size::kTooLarge when they do not fit 63 bits.
uint64_t spanOf(const Argument &argument, const Piece &piece);

/// One quad's part of a program: a stream per queue and the initial registers
/// (base addresses, trip counts: what lets quads share code).
struct Launch {
  uint32_t quad = 0;
  std::array<uint32_t, 4> streams{kNoStream, kNoStream, kNoStream, kNoStream};
  std::array<int64_t, kRegisters> registers{};
  bool operator==(const Launch &) const = default;
};

struct Program {
  std::vector<Launch> launches; ///< quads ascend
  bool operator==(const Program &) const = default;
};

/// Bytes in use, the same for every unit of a memory: static allocation.
struct Footprint {
  std::array<uint64_t, kMemories> bytes{};
  bool operator==(const Footprint &) const = default;
};

struct Kernel {
  std::string name;
  std::vector<Argument> arguments;
  /// Register that gets the value of the task's dims[i].
  std::vector<uint32_t> dimRegisters;
  Program init; ///< once a session, before the first `main`
  Program main; ///< every dispatch
  Footprint footprint;
  /// Multiply-adds of the model that several quads do, each for every quad but the first; for reports.
  uint64_t repeatedMacs = 0;
  bool operator==(const Kernel &) const = default;
};

struct Image {
  Machine machine;
  std::vector<Code> streams, functions;
  std::vector<std::string> marks; ///< texts of MARK
  std::vector<Kernel> kernels;

  uint32_t addStream(Code code);
  uint32_t addFunction(Code code);
  uint32_t addMark(std::string text);
  const Kernel *findKernel(std::string_view name) const;
};

/// Everything that can be known before a run: fields and keys in range, legal
/// moves, nested loops, symbols, pieces within memories. The
/// message names stream, instruction and rule.
MaybeError verify(const Image &image);

/// The container's bytes: deterministic.
std::vector<uint8_t> write(const Image &image);
/// Whether `read` compares checksums; fuzzers look behind them.
enum class Checksums : uint8_t { Check, Ignore };
/// Checks magic, version, bounds and CRCs, decodes and verifies.
std::optional<Image> read(std::span<const uint8_t> bytes, std::string &error, Checksums checksums = Checksums::Check);

} // namespace dmx::corsair
