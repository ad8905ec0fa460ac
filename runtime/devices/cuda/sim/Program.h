//===- Program.h - a kernel that can be executed ----------------*- C++ -*-===//
#pragma once

#include "Warp.h"
#include "runtime/devices/cuda/ptx/Ptx.h"

#include <memory>

namespace dmxrt::cuda {

/// A kernel's ops. Slots: registers, then constants and what a launch gives.
/// A wgmma.mma_async: D (64 x columns, f32) = A * B + D.
struct ProductForm {
  enum Type : uint8_t { Bf16, F16, Tf32 } type = Bf16;
  uint32_t columns = 0;
  bool aInRegisters = false, aIsMnMajor = false, bIsMnMajor = false, negatesA = false, negatesB = false;
  std::vector<uint32_t> d, a; ///< registers
  /// Elements along k.
  uint32_t depth() const { return type == Tf32 ? 8 : 16; }
};

struct Program {
  std::string name;
  uint32_t line = 0, blockThreads = 0;
  uint32_t cluster = 1; ///< blocks that may reach into each other's shared memory
  std::vector<uint8_t> parameterBytes;
  std::vector<Op> ops;
  uint32_t registers = 0, predicates = 0;
  /// Behind the registers: numbers; then parameters; then specials; then addresses of tables and of a lane's variables.
  std::vector<uint64_t> constants;
  uint32_t parameterSlot(uint32_t i) const { return registers + static_cast<uint32_t>(constants.size()) + i; }
  enum Special : uint32_t { Tid, Ntid, Ctaid, Nctaid, Lane, ClusterRank, ClusterBlocks, ClusterId, Clusters, Specials };
  uint32_t specialSlot(uint32_t which) const {
    return parameterSlot(static_cast<uint32_t>(parameterBytes.size())) + which;
  }
  uint32_t tableSlot(uint32_t i) const { return specialSlot(Specials) + i; }
  uint32_t localSlot(uint32_t i) const { return tableSlot(tables) + i; }
  uint32_t tables = 0;                ///< of the module
  std::vector<uint64_t> localOffsets; ///< in a lane's memory
  uint64_t localBytes = 0;            ///< of a lane
  uint64_t sharedBegin = 0;           ///< of what the launch gives; variables with sizes lie before it
  bool talks = false;                 ///< whether the threads of a block may wait for each other
  uint32_t liveRegisters = 0;         ///< of a thread, as clock/Occupancy counts them
  bool movesRegisters = false;        ///< between warps: it has setmaxnreg
  uint32_t firstRegisters = 0;        ///< that the launch gives a thread, for setmaxnreg; 0: the text does not say
  std::vector<ProductForm> products;
  std::vector<std::vector<uint32_t>> branchLists; ///< numbers of ops, of each op that chooses one: Op::immediate
  uint32_t slots() const { return localSlot(static_cast<uint32_t>(localOffsets.size())); }
};

/// The tables of a module: bytes that its kernels read, at addresses that stay.
struct Table {
  std::unique_ptr<std::byte[]> room;
  std::byte *begin = nullptr; ///< aligned
  uint64_t bytes = 0;
};

struct ProgramModule {
  std::vector<Program> kernels;
  std::vector<Table> tables;
  std::vector<PtxPlace> places; ///< of all kernels, ascending
  std::map<uint32_t, std::string> files;

  /// "mine.py:30", of what a line of the text was made from; "" where the text does not say it.
  std::string placeOf(uint32_t line) const;
  /// What is said of lines of the text, with that behind each "line N".
  std::string withPlaces(std::string_view said) const;
};

/// Reads a PTX text. An instruction, a modifier or an operand that is not known here is an error with kernel and line.
Result<std::shared_ptr<const ProgramModule>> loadPtx(std::string_view text);

} // namespace dmxrt::cuda
