//===- DlirWriter.h - building ops of a device's program --------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/Corsair/Corsair.h"

#include "dmxc/Dialect/DLIR/Sum.h"

#include "mlir/IR/Builders.h"

namespace dmxc {

namespace hw = dmx::corsair;

using dlir::Sum;

/// One task, clause by clause; `create` puts it at the builder's place.
class TaskWriter {
public:
  TaskWriter(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef op) : builder(builder), state(loc, op) {}

  TaskWriter &buffer(mlir::Value memory, const Sum &place) {
    buffers.push_back(memory);
    places.push_back(place);
    return *this;
  }
  TaskWriter &with(mlir::Value descriptor) {
    config = descriptor;
    return *this;
  }
  TaskWriter &integer(llvm::StringRef name, int64_t value) { return set(name, builder.getI64IntegerAttr(value)); }
  TaskWriter &text(llvm::StringRef name, llvm::StringRef value) { return set(name, builder.getStringAttr(value)); }
  TaskWriter &array(llvm::StringRef name, llvm::ArrayRef<int64_t> values) {
    return set(name, builder.getDenseI64ArrayAttr(values));
  }
  TaskWriter &sum(llvm::StringRef name, const Sum &value) {
    sums.push_back({name, value});
    return *this;
  }
  TaskWriter &set(llvm::StringRef name, mlir::Attribute value) {
    state.addAttribute(name, value);
    return *this;
  }
  void create();

private:
  mlir::OpBuilder &builder;
  mlir::OperationState state;
  llvm::SmallVector<mlir::Value> buffers;
  llvm::SmallVector<Sum> places;
  llvm::SmallVector<std::pair<llvm::StringRef, Sum>> sums;
  mlir::Value config;
};

/// Steps of a descriptor along one dim.
struct DmaDim {
  int64_t count, source, target;
};
/// A descriptor to be; dims of one item are left out.
struct DmaSpec {
  llvm::StringRef kind = "raw", to;
  int64_t unit = 1;
  llvm::SmallVector<DmaDim> dims;
  int64_t sourceUnitStep = 0, targetUnitStep = 0, sourceSubunitStep = 0;

  /// The target is rows of tiles: four dims, the last along K, all of them kept.
  bool toRows = false;
  int64_t tail = 0;          ///< elements of the last block along K that exist; 0: all
  int64_t targetBand = 0;    ///< bytes from 64 rows of tiles to the next
  int64_t elementStride = 0; ///< bytes from element to element of the source; 0: contiguous
  int64_t valid = 0;         ///< items of the first dim that exist, the others are zeros; 0: all

  /// Of gather and scatter.
  llvm::StringRef indexKind;
  int64_t indexPitch = 0, indexRange = 0; ///< along the first dim

  /// Whether the place of a dim says what it is.
  bool keepsDims() const { return toRows || !indexKind.empty(); }
};

/// A program under construction.
class DlirWriter {
public:
  /// Makes `dlir.device_program @name` at the builder's place and goes into it.
  DlirWriter(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name);

  dlir::DeviceProgramOp program() { return made; }
  void argument(dlir::ArgumentRole role, llvm::StringRef name, mlir::Type tensor, llvm::StringRef form,
                llvm::ArrayRef<int64_t> perm = {}, mlir::TypedAttr data = {});
  dlir::MemoryOp memory(hw::Memory kind, llvm::StringRef name, int64_t size, bool permanent = false);
  /// A box of an argument in `unit` of a buffer's memory.
  void piece(mlir::Value memory, llvm::StringRef argument, int64_t unit, int64_t offset, llvm::ArrayRef<int64_t> begin,
             llvm::ArrayRef<int64_t> extent, llvm::ArrayRef<int64_t> strides);
  /// The descriptor; one that is there already is used again.
  mlir::Value descriptor(const DmaSpec &spec);

  /// A graph with this many quads; queues are added to it until the next one.
  dlir::ScheduledGraphOp graph(llvm::StringRef name, int64_t quads);
  mlir::Value quad() { return current.getBody().getArgument(0); }
  mlir::Value token(int64_t credits = 0);
  mlir::Value quadRegister(llvm::ArrayRef<int64_t> values);

  void queue(int64_t number, llvm::function_ref<void()> body);
  void group(llvm::StringRef name, mlir::ValueRange wait, mlir::ValueRange signal, llvm::function_ref<void()> body);
  /// A loop, or for one trip its body alone.
  void loop(const Sum &times, llvm::function_ref<void(Sum counter)> body);
  /// The same for a body that alternates between two halves of something: two bodies a trip, and one more where the
  /// count is odd.
  void pairs(int64_t count, llvm::function_ref<void(Sum counter)> body);
  /// A loop at the builder's place with an empty body.
  dlir::LoopOp openLoop(const Sum &times);
  TaskWriter task(llvm::StringRef op) { return {builder, loc, op}; }
  TaskWriter copy(hw::Memory from, hw::Memory to);
  /// A barrier that takes one of each token, or gives them.
  void tokens(mlir::OpBuilder &at, mlir::ValueRange wait, mlir::ValueRange signal);
  void barrier(llvm::StringRef scope, int64_t id, llvm::ArrayRef<int64_t> queues);

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  /// Puts the builder before the first graph, or at the end where there is none.
  void toDeclarations();

  dlir::DeviceProgramOp made;
  dlir::ScheduledGraphOp current;
  mlir::Operation *declarations = nullptr; ///< descriptors go before the first graph
  mlir::Operation *firstQueue = nullptr;   ///< tokens and registers go before it
  int64_t registers = 0;
  llvm::DenseMap<mlir::Attribute, mlir::Value> descriptors;
};

} // namespace dmxc
