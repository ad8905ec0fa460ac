//===- Aie.h - mlir-aie's ops, as far as the target uses them ---*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Dialect/DMIR/Forms.h"
#include "schemas/aie/Image.h"

#include "targets/aie/dialect/AieEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "targets/aie/dialect/AieAttrs.h.inc"

#include "targets/aie/dialect/AieDialect.h.inc"
#include "targets/aie/dialect/AiexDialect.h.inc"

#define GET_OP_CLASSES
#include "targets/aie/dialect/AieOps.h.inc"

#define GET_OP_CLASSES
#include "targets/aie/dialect/AiexOps.h.inc"

namespace dmxc::aie {

namespace hw = dmx::aie;

using dlir::kForever;

// What programs of the array are called by in DLIR's texts: classes of units and engines as hw::nameOf has tiles and
// directions, and
inline constexpr llvm::StringLiteral kDevice = "aie", kComputeEngine = "compute"; ///< of cores
inline constexpr llvm::StringLiteral kMachineKey = "aie.machine"; ///< of a program: which machine it is for
inline constexpr llvm::StringLiteral kFunction = "aie.function";  ///< of a program or device: a CoreFunction
/// A user's function that cores call beside those of the library.
struct CoreFunction {
  std::string kernel, symbol, library; ///< "acme.argmax"; what is called; what cores of a real array are linked with
  int64_t cycles = 0;                  ///< of a call
  llvm::SmallVector<int64_t> dims;     ///< that it is told, before the begin and the end of what it computes
  std::vector<std::string> buffers;    ///< names of what it reads, then of what it writes
  size_t results = 0;
};
mlir::DictionaryAttr attrOf(const CoreFunction &function, mlir::MLIRContext *context);
/// That of a program or device; nullopt where it has none, or what is there is none.
std::optional<CoreFunction> functionOf(mlir::Operation *op);
/// That which a call in a program is of.
std::optional<CoreFunction> functionOf(CallOp call);
/// The library's kernel that it is of; nullopt of others.
std::optional<hw::KernelId> libraryKernelOf(CallOp call);
/// Registers the table that programs of the array are checked by.
void registerDevice(mlir::DialectRegistry &registry, const hw::Machine &machine);

/// What a value of a verified device stands for.
hw::Tile tileOf(mlir::Value tile);
BufferOp bufferOf(mlir::Value buffer);
LockOp lockOf(mlir::Value lock);

inline hw::Direction directionOf(DMAChannelDir dir) {
  return dir == DMAChannelDir::S2MM ? hw::Direction::S2MM : hw::Direction::MM2S;
}
/// The same port in the registers' names, and back.
inline hw::Port portOf(WireBundle bundle, int32_t index) {
  return {static_cast<hw::Bundle>(bundle), static_cast<uint32_t>(index)};
}
inline WireBundle bundleOf(hw::Bundle bundle) { return static_cast<WireBundle>(bundle); }

/// A walk in words, of sizes and strides in elements of so many bytes, the outermost first; an error where a run does
/// not fill whole words, or the BD of such a tile does not hold it. Fills length, steps and wraps.
bool setWalk(hw::Bd &bd, const hw::Machine &machine, hw::TileKind kind, llvm::ArrayRef<int64_t> sizes,
             llvm::ArrayRef<int64_t> strides, int64_t elementBytes, std::string &error);
/// What a task that runs several times adds to its BD's address each time; an error where the BD does not hold it.
bool setIteration(hw::Bd &bd, const hw::Machine &machine, int64_t times, int64_t bytes, std::string &error);
/// The dims of a BD, the outermost first; one of all elements where it has none.
void walkOf(DMABDOp bd, llvm::SmallVector<int64_t> &sizes, llvm::SmallVector<int64_t> &strides);
/// Bytes of a memref's element; 0 where it is none that the array moves.
int64_t elementBytes(mlir::Type memref);

/// Whether the machine has all that a device takes: tiles, locks, bytes, channels, BDs; counts and limits are named.
mlir::LogicalResult checkLimits(DeviceOp device);

/// A core's number for a lock of its own or a neighbour's, and its address of a byte of such a tile's memory; nullopt
/// where it does not reach that tile.
std::optional<uint32_t> lockNumber(const hw::Machine &machine, hw::Tile core, hw::Tile tile, uint32_t lock);
std::optional<uint32_t> addressFrom(const hw::Machine &machine, hw::Tile core, hw::Tile tile, int64_t address);

// How a tensor lies in its form where rows are not simply a pitch apart: a dictionary of an operand of the runtime
// sequence, and of a dlir.piece, with one number a dim in elements, as hw::Axis has them.
/// The form in which a product leaves its result in DDR for the next product, whose first operand it is: an encoding of
/// the tensor's type, {bytes, element, pitch, rows}, which takes no less than the tensor would. All of its columns are
/// numbers; rows beyond the tensor's are any.
struct Kept {
  llvm::StringRef element;
  int64_t rows, pitch;
};
std::optional<Kept> keptOf(mlir::Type tensor);
mlir::Attribute keptForm(mlir::MLIRContext *context, const Kept &kept, int64_t bytes);

inline constexpr llvm::StringLiteral kBorder = "border", kPieceBorder = "aie.border";
inline constexpr llvm::StringLiteral kStrides = "strides", kFirst = "first", kSplit = "split", kPhase = "phase",
                                     kPitch = "pitch"; ///< strides of an operand, the pitch in bytes of a piece alone
/// Where dims of the tensor are one, or a run brings some: the most that they are; and what they are (`#dmir.dims`).
inline constexpr llvm::StringLiteral kExtents = "extents", kSizes = "sizes";
/// Of a device with sizes that a dispatch brings (dlir::kTaskDims): the most of each.
inline constexpr llvm::StringLiteral kMost = "aie.most";
/// Those; none where they are not as many as the sizes, or no numbers of 32 bits.
llvm::ArrayRef<int64_t> mostOf(DeviceOp device);

/// The name of an element as hw::Element has it, "" of what the border does not take.
llvm::StringRef elementName(mlir::Type type);
/// An argument of the kernel, as the runtime sequence has it; nullopt where no border makes such a form.
std::optional<hw::Argument> argumentOf(RuntimeSequenceOp sequence, unsigned number);

} // namespace dmxc::aie
