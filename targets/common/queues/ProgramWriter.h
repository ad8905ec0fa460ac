//===- ProgramWriter.h - building programs of a device's queues -*- C++ -*-===//
//
// What `schedule` of a target writes: DLIR's half that is inside of kernels, op by op, in the order that its verifier
// wants. Which memories, units and engines there are says the target's DeviceModel; here they are names. A machine
// whose copies know more than steps derives from both classes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Dialect/DLIR/Sum.h"

#include "mlir/IR/Builders.h"

namespace dmxc {

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
  TaskWriter &sum(llvm::StringRef name, const Sum &value) { return sum(name, llvm::ArrayRef(value)); }
  TaskWriter &sum(llvm::StringRef name, llvm::ArrayRef<Sum> values) {
    sums.emplace_back(name, values);
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
  llvm::SmallVector<std::pair<llvm::StringRef, llvm::SmallVector<Sum, 1>>> sums;
  mlir::Value config;
};

/// Steps of a descriptor along one dim.
struct DescriptorDim {
  int64_t count, source, target;
};
/// A descriptor to be: how copies, puts and gets walk over items. Dims of one item are left out.
struct DescriptorSpec {
  llvm::StringRef kind = "raw", to; ///< of elements; no second one: they stay what they are
  int64_t unit = 1;                 ///< elements of an item
  llvm::SmallVector<DescriptorDim> dims;
  int64_t sourceUnitStep = 0, targetUnitStep = 0, sourceSubunitStep = 0;
  int64_t valid = 0;      ///< items of the first dim that exist, the others are zeros; 0: all
  bool keepsDims = false; ///< the place of a dim says what it is: those of one item stay
};

/// A queue of a unit, by its engine and its number.
struct QueueName {
  llvm::StringRef engine;
  int64_t number;
};

/// A program under construction.
class ProgramWriter {
public:
  /// Makes `dlir.device_program @name on "device"` at the builder's place and goes into it.
  ProgramWriter(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name, llvm::StringRef device);

  dlir::DeviceProgramOp program() { return made; }
  dlir::ArgumentOp argument(dlir::ArgumentRole role, llvm::StringRef name, mlir::Type tensor, llvm::StringRef form,
                            llvm::ArrayRef<int64_t> perm = {}, mlir::TypedAttr data = {});
  /// A buffer in the memory `kind`.
  dlir::MemoryOp memory(llvm::StringRef kind, llvm::StringRef name, int64_t size, bool permanent = false);
  /// A box of an argument in `unit` of a buffer's memory.
  dlir::PieceOp piece(mlir::Value memory, llvm::StringRef argument, int64_t unit, int64_t offset,
                      llvm::ArrayRef<int64_t> begin, llvm::ArrayRef<int64_t> extent, llvm::ArrayRef<int64_t> strides);
  /// The descriptor, with what a machine has besides; one that is there already is used again.
  mlir::Value descriptor(const DescriptorSpec &spec, const mlir::NamedAttrList &further = {});
  /// A way from puts to gets, of which `depth` puts may be ahead; with extents an array of them.
  void channel(llvm::StringRef name, int64_t depth = 1, llvm::ArrayRef<int64_t> extents = {});

  /// A graph over a grid of units; queues are added to it until the next one.
  dlir::ScheduledGraphOp graph(llvm::StringRef name, llvm::ArrayRef<int64_t> units);
  /// The place in the grid, of the queue or else the graph, of the unit that runs it.
  mlir::Value unit(unsigned dim = 0) {
    return currentQueue && currentQueue.getUnits() ? currentQueue.getBody().getArgument(dim)
                                                   : current.getBody().getArgument(dim);
  }
  /// In the bank of units of a class; without one of the device's first.
  mlir::Value token(int64_t credits = 0, llvm::StringRef home = {});
  /// Slots in the memory `kind` of units of a class, which one queue of these fills and another drains, each so often.
  mlir::Value ring(llvm::StringRef kind, llvm::StringRef name, int64_t slots, int64_t size, llvm::StringRef home,
                   QueueName from, QueueName to, int64_t uses = 1);
  /// The next register; the launch puts these values into it, one a unit or one for all.
  mlir::Value launchRegister(llvm::ArrayRef<int64_t> values);

  /// Queue `number` of an engine, in units of this class; with a grid of its own in these alone.
  void queue(llvm::StringRef unit, llvm::StringRef engine, int64_t number, llvm::function_ref<void()> body,
             llvm::ArrayRef<int64_t> units = {});
  void group(llvm::StringRef name, mlir::ValueRange wait, mlir::ValueRange signal, llvm::function_ref<void()> body);
  /// Waits for slots of rings, does what `body` writes with them, and hands them over.
  void fill(mlir::ValueRange rings, llvm::function_ref<void()> body);
  void drain(mlir::ValueRange rings, llvm::function_ref<void()> body);
  /// A loop, or for one trip its body alone.
  void loop(const Sum &times, llvm::function_ref<void(Sum counter)> body);
  /// The same for a body that alternates between two halves of something: two bodies a trip, and one more where the
  /// count is odd.
  void pairs(int64_t count, llvm::function_ref<void(Sum counter)> body);
  /// A loop at the builder's place with an empty body.
  dlir::LoopOp openLoop(const Sum &times);
  TaskWriter task(llvm::StringRef op) { return {builder, loc, op}; }
  /// Tasks that want buffers and a descriptor; `from` and `to` are memories.
  TaskWriter copy(llvm::StringRef from, llvm::StringRef to);
  TaskWriter put(llvm::StringRef channel, llvm::ArrayRef<Sum> element = {}) {
    return channelEnd(dlir::PutOp::getOperationName(), channel, element);
  }
  TaskWriter get(llvm::StringRef channel, llvm::ArrayRef<Sum> element = {}) {
    return channelEnd(dlir::GetOp::getOperationName(), channel, element);
  }
  /// A barrier that takes so many of each token, or gives them.
  void tokens(mlir::OpBuilder &at, mlir::ValueRange wait, mlir::ValueRange signal, int64_t count = 1);
  /// A barrier at which these queues of all units in the scope meet.
  void barrier(llvm::StringRef scope, int64_t id, llvm::ArrayRef<int64_t> queues);

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  /// Puts the builder before the first graph, or at the end where there is none.
  void toDeclarations();
  TaskWriter channelEnd(llvm::StringRef op, llvm::StringRef channel, llvm::ArrayRef<Sum> element);

  dlir::DeviceProgramOp made;
  dlir::ScheduledGraphOp current;
  dlir::DispatchQueueOp currentQueue;
  mlir::Operation *declarations = nullptr; ///< descriptors go before the first graph
  mlir::Operation *firstQueue = nullptr;   ///< tokens and registers go before it
  int64_t registers = 0;
  llvm::DenseMap<mlir::Attribute, mlir::Value> descriptors;
};

} // namespace dmxc
