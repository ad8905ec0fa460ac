//===- Device.h - programs for the queues of devices ------------*- C++ -*-===//
//
// The half of DLIR that is inside of kernels (DeviceOps.td), and what a target tells it of its machine.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/DLIR.h"

#include "dmxc/Dialect/DLIR/DLIRDeviceEnums.h.inc"

namespace dmxc::dlir {

/// A token and how many of it.
struct TokenCount {
  mlir::Value token;
  int64_t count = 1;
};

/// What a dispatch brings: as dlir.argument says.
struct DeviceArgument {
  llvm::StringRef name;
  ArgumentRole role;
  mlir::Type tensor;
  llvm::StringRef form;
};

/// A loop of so many trips is one without an end.
inline constexpr int64_t kForever = 0xffffffff;

/// Those of a list with these numbers, as far as there are so many.
llvm::SmallVector<mlir::Value> buffersAt(mlir::ValueRange buffers, std::initializer_list<unsigned> numbers);

} // namespace dmxc::dlir

#include "dmxc/Dialect/DLIR/DLIRDeviceInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/DLIR/DLIRDeviceOps.h.inc"

namespace dmxc::dlir {

/// A memory of a device, by the name that programs use.
struct MemoryModel {
  struct Move {
    std::string to;
    bool toPeers = false; ///< also into that memory of other units of the graph
  };
  std::string name;
  int64_t size = 0;       ///< bytes of one of its units
  int64_t units = 1;      ///< on the whole device
  int64_t alignment = 64; ///< of addresses that a program fixes
  bool subunits = false;  ///< copies into it say which parts of its unit they reach
  int64_t element = 1;    ///< bytes that copies cannot divide: steps of their descriptors and places are multiples
  std::vector<Move> moves;
  // What copies at this end of theirs walk; 0: as the device's descriptors.
  unsigned descriptorDims = 0;
  int64_t largestCount = 0, largestStep = 0;
  bool padding = true; ///< descriptors may have items that do not exist

  const Move *moveTo(llvm::StringRef memory) const;
};

/// A class of units that work off queues.
struct UnitModel {
  struct Engine {
    std::string name;
    int64_t queues = 1; ///< of one unit
  };
  std::string name;
  std::vector<Engine> engines; ///< those that have queues
  int64_t tokens = 0;          ///< that one unit holds

  const Engine *engine(llvm::StringRef engine) const;
  /// "A, B, C"
  std::string engineNames() const;
};

/// What programs of a device may name, and the limits that its texts are checked by.
struct DeviceModel {
  std::string name; ///< the target's
  std::vector<MemoryModel> memories;
  std::vector<UnitModel> units;    ///< the first one holds tokens of which no text says where they are
  std::vector<std::string> scopes; ///< in which queues can meet, the narrowest first
  unsigned descriptorDims = 0;
  int64_t largestCount = INT64_MAX; ///< of a descriptor's dim
  int64_t largestStep = INT64_MAX;  ///< of a descriptor's dim, either way
  bool channels = false;            ///< copies may have their ends in different queues
  bool arrays = false;              ///< of channels; and queues may have grids of units of their own
  bool fixedSlots = false; ///< code names slots of rings by their addresses, so that it must know whose turn it is

  const MemoryModel *memory(llvm::StringRef memory) const;
  const UnitModel *unit(llvm::StringRef unit) const;
  /// "A, B, C"
  std::string memoryNames() const;
  std::string unitNames() const;
};

/// The model that an op of a device's program is checked by; null if none of that name was registered.
const DeviceModel *modelOf(mlir::Operation *op);
/// The memory that a buffer of a program, or a slot, lies in.
llvm::StringRef memoryOf(mlir::Value buffer);

/// How often a ring's turn goes on in each trip of a body, or of an op in it: by what its fills or drains in there do.
/// nullopt where that is not known: a loop whose trips registers say, and which does not go round the whole ring.
std::optional<int64_t> turnsOf(mlir::Operation *op, RingOp ring);
std::optional<int64_t> turnsOf(mlir::Block &body, RingOp ring);
/// After so many trips of a loop it is the same slot's turn of each ring in it. 1 where that is not known.
int64_t tripsAround(LoopOp loop);
/// What a map's results are in the unit at a place of its queue's grid, and in these trips of the loops around the op,
/// the outermost first; nullopt where one depends on something else.
std::optional<llvm::SmallVector<int64_t>> valuesAt(mlir::AffineMap map, mlir::ValueRange indices,
                                                   llvm::ArrayRef<int64_t> place, llvm::ArrayRef<int64_t> trips = {});
/// The places of a grid in order, the last index first.
llvm::SmallVector<llvm::SmallVector<int64_t>> placesOf(llvm::ArrayRef<int64_t> grid);

/// Tells DLIR of a target's device wherever it is loaded. `Target` is any type of the target's own.
template <typename Target> void registerDevice(mlir::DialectRegistry &registry, DeviceModel model) {
  struct Extension : mlir::DialectExtension<Extension, DLIRDialect> {
    explicit Extension(DeviceModel model) : model(std::move(model)) {}
    void apply(mlir::MLIRContext *, DLIRDialect *dialect) const override { dialect->addDevice(model); }
    DeviceModel model;
  };
  registry.addExtension(mlir::TypeID::get<Target>(), std::make_unique<Extension>(std::move(model)));
}

} // namespace dmxc::dlir
