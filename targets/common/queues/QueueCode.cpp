//===- QueueCode.cpp - DLIR's programs as programs of queues --------------===//
#include "QueueCode.h"

#include "dmxc/Dialect/DLIR/Sum.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;
using dmx::queues::Line;
using dmx::queues::Place;
using dmx::queues::Walk;
using dmx::queues::Word;

dlir::DeviceModel dmxc::queueModel(const dmx::queues::Machine &machine) {
  dlir::DeviceModel model;
  model.name = machine.name;
  for (const dmx::queues::Memory &memory : machine.memories) {
    dlir::MemoryModel &row = model.memories.emplace_back();
    row.name = memory.name;
    row.size = memory.size;
  }
  model.descriptorDims = dmx::queues::kDims;
  model.largestCount = model.largestStep = int64_t(1) << 30;
  model.channels = true;
  return model;
}

namespace {

/// Refuses what an op says beyond the attributes that are encoded.
LogicalResult hasOnly(Operation *op, std::initializer_list<StringRef> known) {
  for (NamedAttribute attribute : op->getAttrs())
    if (StringRef name = attribute.getName(); !llvm::is_contained(known, name) && name != "operandSegmentSizes")
      return op->emitOpError("has '") << name << "', which programs of queues do not have";
  return success();
}

/// Bytes of an element: "f32" has four; 0 for kinds that are no whole bytes.
int64_t bytesOf(StringRef kind) {
  int64_t bits = 0;
  return kind.ltrim("bfuirw").getAsInteger(10, bits) || bits < 8 || bits % 8 ? 0 : bits / 8;
}

class KernelEncoder {
public:
  KernelEncoder(dlir::DeviceProgramOp program, const dmx::queues::Machine &machine, std::vector<Line> &lines)
      : program(program), machine(machine), lines(lines) {}

  LogicalResult run() {
    if (failed(hasOnly(program, {"sym_name", "device"})) || failed(begin(Word::Kernel, program, program.getSymName())))
      return failure();
    for (auto memory : program.getBody().getOps<dlir::MemoryOp>())
      if (failed(addBuffer(memory)))
        return failure();
    for (auto argument : program.getBody().getOps<dlir::ArgumentOp>())
      if (failed(addArgument(argument)))
        return failure();
    for (auto channel : program.getBody().getOps<dlir::ChannelOp>()) {
      channels[channel.getSymName()] = static_cast<int64_t>(channels.size());
      add(Word::Channel, {static_cast<int64_t>(channel.getDepth())});
    }
    for (auto graph : program.getBody().getOps<dlir::ScheduledGraphOp>())
      if (failed(addGraph(graph)))
        return failure();
    return success();
  }

private:
  Line &add(Word word, std::initializer_list<int64_t> numbers = {}) {
    Line &line = lines.emplace_back(Line{word});
    llvm::copy(numbers, line.n);
    return line;
  }

  /// A line with a name.
  LogicalResult begin(Word word, Operation *of, StringRef name) {
    Line &line = add(word);
    if (name.size() >= sizeof line.name)
      return of->emitOpError("has a name of more than ") << sizeof line.name - 1 << " bytes";
    llvm::copy(name, line.name);
    return success();
  }

  int64_t numberOf(Value buffer) const {
    StringRef name = dlir::memoryOf(buffer);
    return llvm::find_if(machine.memories, [&](auto &memory) { return name == StringRef(memory.name); }) -
           machine.memories.begin();
  }

  /// Buffers without an address lie behind those before them.
  LogicalResult addBuffer(dlir::MemoryOp memory) {
    if (failed(hasOnly(memory, {"kind", "name", "size", "address"})) ||
        failed(begin(Word::Buffer, memory, memory.getName())))
      return failure();
    int64_t number = numberOf(memory), size = memory.getSize(), &end = ends[number];
    int64_t address = memory.getAddress().value_or(llvm::alignTo(end, 64));
    if (size > machine.memories[number].size || address > machine.memories[number].size - size)
      return memory.emitOpError("over capacity: '")
             << memory.getName() << "' is " << size << " bytes at " << address << ", " << memory.getKind() << " holds "
             << machine.memories[number].size;
    end = std::max(end, address + size);
    buffers[memory] = {static_cast<int64_t>(buffers.size()), address};
    lines.back().n[0] = number;
    lines.back().n[1] = size;
    lines.back().place[0].base = address;
    return success();
  }

  /// All of an argument lies in one piece, row-major in the host's memory.
  LogicalResult addArgument(dlir::ArgumentOp argument) {
    if (failed(hasOnly(argument, {"role", "name", "tensor", "form"})) ||
        failed(begin(Word::Argument, argument, argument.getName())))
      return failure();
    SmallVector<dlir::PieceOp> pieces;
    for (auto piece : program.getBody().getOps<dlir::PieceOp>())
      if (piece.getArgument() == argument.getName())
        pieces.push_back(piece);
    auto type = dyn_cast<RankedTensorType>(argument.getTensor());
    bool output = argument.getRole() == dlir::ArgumentRole::output;
    int64_t element = bytesOf(argument.getForm());
    if ((!output && argument.getRole() != dlir::ArgumentRole::input) || !type || !type.hasStaticShape() ||
        pieces.size() != 1 || type.getElementTypeBitWidth() != element * 8 ||
        pieces[0].getExtent() != type.getShape() ||
        llvm::any_of(pieces[0].getBegin(), [](int64_t at) { return at != 0; }) ||
        pieces[0].getStrides().size() != static_cast<size_t>(type.getRank()))
      return argument.emitOpError("is no input or output whose elements lie in one piece as the host has them");
    Line &line = lines.back();
    auto [buffer, address] = buffers.lookup(pieces[0].getMemory());
    line.n[0] = output;
    line.n[1] = buffer;
    line.place[0].base = pieces[0].getOffset();
    line.walk.bytes = element;
    size_t dim = dmx::queues::kDims;
    int64_t dense = element;
    for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
      int64_t extent = type.getDimSize(axis), stride = pieces[0].getStrides()[axis];
      if (dense == line.walk.bytes && stride == line.walk.bytes) {
        line.walk.bytes *= extent; // items that lie side by side are one
      } else if (dim-- > 0) {
        line.walk.counts[dim] = extent;
        line.walk.source[dim] = dense;
        line.walk.target[dim] = stride;
      } else {
        return argument.emitOpError("has more than ") << dmx::queues::kDims << " dims that are apart";
      }
      dense *= extent;
    }
    return success();
  }

  LogicalResult addGraph(dlir::ScheduledGraphOp graph) {
    if (graph.getName() != "main" || graph.unitCount() != 1)
      return graph.emitOpError("is not \"main\" on one unit, which is all that programs of queues have");
    for (Operation &op : graph.getBody().front()) {
      if (auto token = dyn_cast<dlir::TokenOp>(op)) {
        tokens[token] = static_cast<int64_t>(tokens.size());
        add(Word::Token, {static_cast<int64_t>(token.getCredits())});
      } else if (!isa<dlir::DispatchQueueOp>(op)) {
        return op.emitOpError("is nothing that programs of queues have");
      }
    }
    for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>()) {
      add(Word::Queue);
      if (failed(addBlock(queue.getBody().front())))
        return failure();
    }
    return success();
  }

  LogicalResult addBlock(Block &block) {
    for (Operation &op : block)
      if (failed(addOp(&op)))
        return failure();
    return success();
  }

  LogicalResult addOp(Operation *op) {
    if (auto loop = dyn_cast<dlir::LoopOp>(op)) {
      if (!loop.getTimes().isSingleConstant() || loop.getTimes().getSingleConstantResult() < 1)
        return loop.emitOpError("has no fixed number of trips");
      add(Word::Loop, {loop.getTimes().getSingleConstantResult()});
      LogicalResult body = addBlock(loop.getBody().front());
      add(Word::End);
      return body;
    }
    if (auto group = dyn_cast<dlir::TaskGroupOp>(op)) {
      if (failed(begin(Word::Group, group, group.getName())))
        return failure();
      addTokens(Word::Wait, group.waits());
      LogicalResult body = addBlock(group.getBody().front());
      addTokens(Word::Signal, group.signals());
      return body;
    }
    if (auto barrier = dyn_cast<dlir::TaskBarrierOp>(op)) {
      addTokens(Word::Wait, barrier.waits());
      addTokens(Word::Signal, barrier.signals());
      return hasOnly(barrier, {"wait_counts", "signal_counts"});
    }
    return addTask(op);
  }

  void addTokens(Word word, ArrayRef<dlir::TokenCount> counts) {
    for (const dlir::TokenCount &count : counts)
      add(word, {tokens.lookup(count.token), count.count});
  }

  LogicalResult addTask(Operation *op) {
    SmallVector<Value> memories;
    dlir::DescriptorOp descriptor;
    for (Value operand : op->getOperands()) {
      if (isa<dlir::MemoryType>(operand.getType()))
        memories.push_back(operand);
      if (auto made = operand.getDefiningOp<dlir::DescriptorOp>())
        descriptor = made;
    }
    if (auto copy = dyn_cast<dlir::DmaCopyOp>(op)) {
      add(Word::Copy, {numberOf(memories[0]), numberOf(memories[1])});
      if (failed(hasOnly(op, {"from", "to", "places"})) || failed(addWalk(descriptor)))
        return failure();
    } else if (isa<dlir::PutOp, dlir::GetOp>(op)) {
      auto channel = op->getAttrOfType<FlatSymbolRefAttr>("channel");
      add(isa<dlir::PutOp>(op) ? Word::Put : Word::Get, {channels.lookup(channel.getValue()), numberOf(memories[0])});
      if (failed(hasOnly(op, {"channel", "places"})) || failed(addWalk(descriptor)))
        return failure();
    } else {
      auto known = llvm::find(machine.engineTasks, op->getName().getStringRef().str());
      if (known == machine.engineTasks.end() || memories.size() > 3 || descriptor)
        return op->emitOpError("is no task of the machine '") << machine.name << "'";
      Line &line = add(Word::Engine, {known - machine.engineTasks.begin()});
      for (auto [i, memory] : llvm::enumerate(memories))
        line.n[1 + i] = numberOf(memory);
    }
    return addPlaces(op, memories);
  }

  /// Places of the buffers, and the one number that an engine's task may have besides.
  LogicalResult addPlaces(Operation *op, ArrayRef<Value> memories) {
    auto places = op->getAttrOfType<ArrayAttr>("places").getAsRange<AffineMapAttr>();
    for (auto [i, map] : llvm::enumerate(places)) {
      FailureOr<Place> place = placeOf(op, map.getValue());
      if (failed(place))
        return failure();
      place->base += buffers.lookup(memories[i]).second;
      lines.back().place[i] = *place;
    }
    for (NamedAttribute attribute : op->getAttrs())
      if (auto map = dyn_cast<AffineMapAttr>(attribute.getValue())) {
        FailureOr<Place> number = placeOf(op, map.getValue());
        if (failed(number))
          return failure();
        lines.back().place[3] = *number;
      }
    return success();
  }

  FailureOr<Place> placeOf(Operation *op, AffineMap map) {
    SmallVector<Value> indices;
    for (Value operand : op->getOperands())
      if (operand.getType().isIndex())
        indices.push_back(operand);
    std::optional<dlir::Sum> sum = dlir::sumOf(map, indices);
    Place place;
    place.base = sum ? sum->base : 0;
    for (auto [index, scale] : sum ? sum->terms : SmallVector<std::pair<Value, int64_t>, 2>()) {
      std::optional<unsigned> depth = dlir::loopDepth(index);
      if (depth && *depth >= dmx::queues::kLoops)
        return op->emitOpError("stands in more than ") << dmx::queues::kLoops << " loops";
      if (depth) // what is no loop's counter is the place of the only unit, 0
        place.steps[*depth] += scale;
    }
    if (!sum)
      return op->emitOpError("has a place that is no sum of multiples");
    return place;
  }

  LogicalResult addWalk(dlir::DescriptorOp op) {
    if (failed(hasOnly(op, {"kind", "unit", "dims", "source", "target"})))
      return failure();
    Walk &walk = lines.back().walk;
    walk.bytes = static_cast<int64_t>(op.getUnit()) * bytesOf(op.getKind());
    if (!walk.bytes)
      return op.emitOpError("walks over '") << op.getKind() << "', which are no whole bytes";
    size_t first = dmx::queues::kDims - op.getDims().size();
    llvm::copy(op.getDims(), walk.counts + first);
    llvm::copy(op.getSource(), walk.source + first);
    llvm::copy(op.getTarget(), walk.target + first);
    return success();
  }

  dlir::DeviceProgramOp program;
  const dmx::queues::Machine &machine;
  std::vector<Line> &lines;
  llvm::DenseMap<int64_t, int64_t> ends;                      ///< of what is used of a memory
  llvm::DenseMap<Value, std::pair<int64_t, int64_t>> buffers; ///< number and address
  llvm::DenseMap<Value, int64_t> tokens;
  llvm::DenseMap<StringRef, int64_t> channels;
};

} // namespace

Result<std::vector<char>> dmxc::encodeQueues(ArrayRef<Operation *> kernels, const dmx::queues::Machine &machine) {
  std::string why; // the first error, which names the op
  ScopedDiagnosticHandler handler(kernels.front()->getContext(), [&](Diagnostic &diagnostic) {
    why = why.empty() ? diagnostic.str() : why;
    return success();
  });
  std::vector<Line> lines;
  for (Operation *kernel : kernels) {
    auto program = dyn_cast<dlir::DeviceProgramOp>(kernel);
    if (!program)
      return Error{ErrorKind::Model, "kernel '" + SymbolTable::getSymbolName(kernel).str() +
                                         "' has no program for the device's queues (dlir.device_program)"};
    if (failed(KernelEncoder(program, machine, lines).run()))
      return Error{ErrorKind::Model, "kernel '" + program.getSymName().str() + "' has no code: " + why};
  }
  auto *bytes = reinterpret_cast<const char *>(lines.data());
  std::vector<char> code(bytes, bytes + lines.size() * sizeof(Line));
  if (read({reinterpret_cast<const std::byte *>(code.data()), code.size()}, machine, why).empty())
    return Error{ErrorKind::Model, "the device refuses the program: " + why};
  return code;
}
