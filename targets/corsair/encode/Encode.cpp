//===- Encode.cpp - programs in DLIR to kernels of an image ---------------===//

#include "Encode.h"
#include "StreamEncoder.h"
#include "TaskBytes.h"

#include "schemas/corsair/text/Assembler.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

/// Encodes one program.
class KernelEncoder {
public:
  KernelEncoder(dlir::DeviceProgramOp program, hw::Image &image, Addresses &addresses, const EncodeOptions &options)
      : program(program), image(image), addresses(addresses), options(options) {}

  LogicalResult run(const MemoryUse &permanent) {
    FailureOr<MemoryUse> used = placeTemporaries(program, image.machine, permanent, addresses);
    if (failed(used))
      return failure();
    kernel.name = program.getSymName().str();
    if (auto macs = program->getAttrOfType<IntegerAttr>(kRepeatedMacs))
      kernel.repeatedMacs = static_cast<uint64_t>(macs.getInt());
    std::copy(used->begin(), used->end(), kernel.footprint.bytes.begin());
    for (int64_t reg : program.getDimRegisters().value_or(ArrayRef<int64_t>()))
      kernel.dimRegisters.push_back(reg < 0 ? hw::kNoRegister : static_cast<uint32_t>(reg));
    if (failed(addFunctions()) || failed(addArguments()) || failed(addPieces()))
      return failure();
    for (auto graph : program.getBody().getOps<dlir::ScheduledGraphOp>())
      if (failed(addGraph(graph)))
        return failure();
    if (TaskBytes bytes(program, image.machine, addresses); options.verifyOrder && failed(verifyOrder(program, bytes)))
      return failure();
    image.kernels.push_back(std::move(kernel));
    return success();
  }

private:
  LogicalResult addFunctions();
  LogicalResult addArguments();
  LogicalResult addPieces();
  LogicalResult addGraph(dlir::ScheduledGraphOp graph);

  dlir::DeviceProgramOp program;
  hw::Image &image;
  Addresses &addresses;
  const EncodeOptions &options;
  hw::Kernel kernel;
};

LogicalResult KernelEncoder::addFunctions() {
  for (auto function : program.getBody().getOps<engine::CpuFunctionOp>()) {
    hw::Code code{kernel.name + "." + function.getSymName().str(), {}};
    for (auto line : function.getCode().getAsRange<StringAttr>()) {
      std::string error;
      std::optional<hw::Instruction> in = hw::parseInstruction(line.getValue().str(), error);
      if (!in)
        return function.emitOpError("line '") << line.getValue() << "': " << error;
      code.instructions.push_back(std::move(*in));
    }
    image.addFunction(std::move(code));
  }
  return success();
}

/// The host's element type: what a tensor's type says.
std::optional<hw::HostType> hostType(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element)) {
    if (integer.getWidth() == 1)
      return hw::HostType::Bool;
    std::string name = (integer.isUnsigned() ? "u" : "i") + std::to_string(integer.getWidth());
    return hw::hostTypeFromName(name);
  }
  return element.isF16()    ? std::optional(hw::HostType::F16)
         : element.isBF16() ? std::optional(hw::HostType::BF16)
         : element.isF32()  ? std::optional(hw::HostType::F32)
         : element.isF64()  ? std::optional(hw::HostType::F64)
                            : std::nullopt;
}

LogicalResult KernelEncoder::addArguments() {
  static constexpr hw::Role kRoles[] = {hw::Role::Input, hw::Role::Output, hw::Role::State, hw::Role::Const,
                                        hw::Role::Scalar};
  for (auto op : program.getBody().getOps<dlir::ArgumentOp>()) {
    hw::Argument argument;
    argument.name = op.getName().str();
    argument.role = kRoles[static_cast<int>(op.getRole())];
    auto tensor = dyn_cast<RankedTensorType>(op.getTensor());
    std::optional<hw::HostType> type = tensor ? hostType(tensor.getElementType()) : std::nullopt;
    std::optional<hw::ElemKind> form = hw::elemKindFromName(op.getForm().str());
    if (!type || !tensor.hasStaticShape() || !form)
      return op.emitOpError("the host has no ") << op.getTensor() << ", or the device no '" << op.getForm() << "'";
    if (argument.role == hw::Role::Const && (*type != hw::HostType::U8 || tensor.getRank() != 1))
      return op.emitOpError("a constant is a tensor of its bytes, ui8");
    argument.type = *type;
    argument.form = *form;
    argument.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
    for (int64_t dim : op.getPerm().value_or(ArrayRef<int64_t>()))
      argument.perm.push_back(static_cast<uint8_t>(dim));
    argument.reg = static_cast<uint32_t>(op.getToRegister().value_or(0));
    kernel.arguments.push_back(std::move(argument));
  }
  return success();
}

LogicalResult KernelEncoder::addPieces() {
  for (auto op : program.getBody().getOps<dlir::PieceOp>()) {
    hw::Argument &argument =
        *llvm::find_if(kernel.arguments, [&](const hw::Argument &a) { return a.name == op.getArgument().str(); });
    auto memory = op.getMemory().getDefiningOp<dlir::MemoryOp>();
    if ((argument.role == hw::Role::Const || argument.role == hw::Role::State) && !memory.getPermanent())
      return op.emitOpError("of a constant or state lies in '") << memory.getName() << "', which is not permanent";
    hw::Piece piece;
    piece.memory = memoryOf(memory);
    piece.unit = static_cast<uint32_t>(op.getUnit());
    piece.address = static_cast<uint64_t>(addresses.lookup(op.getMemory())) + op.getOffset();
    piece.begin = op.getBegin().vec();
    piece.extent = op.getExtent().vec();
    piece.strides = op.getStrides().vec();
    argument.pieces.push_back(std::move(piece));
  }
  return success();
}

LogicalResult KernelEncoder::addGraph(dlir::ScheduledGraphOp graph) {
  const hw::Machine &machine = image.machine;
  const int64_t quads = graph.unitCount();
  if (graph.getUnits().size() != 1)
    return graph.emitOpError("has units in ") << graph.getUnits().size() << " dims, quads are in one";
  if (quads > machine.quadCount())
    return graph.emitOpError("runs on ") << quads << " quads, the machine has " << machine.quadCount();
  llvm::DenseMap<Value, int> tokens;
  for (auto token : graph.getBody().getOps<dlir::TokenOp>())
    tokens.insert({token, static_cast<int>(tokens.size())});
  hw::Launch launch;
  GraphContext context{addresses, tokens, options};
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>()) {
    std::string name = kernel.name + "_" + graph.getName().str() + "_q" + std::to_string(queue.getIndex());
    FailureOr<hw::Code> code = StreamEncoder(image, context).run(queue, std::move(name));
    if (failed(code))
      return failure();
    launch.streams[queue.getIndex()] = image.addStream(std::move(*code));
  }
  hw::Program &target = graph.getName() == "init" ? kernel.init : kernel.main;
  for (uint32_t quad = 0; quad < quads; ++quad) {
    launch.quad = quad;
    for (auto reg : graph.getBody().getOps<dlir::RegisterOp>()) {
      if (reg.getNumber() >= hw::kRegisters)
        return reg.emitOpError("a quad has ") << int(hw::kRegisters) << " registers";
      ArrayRef<int64_t> values = reg.getValues();
      launch.registers[reg.getNumber()] = values.size() == 1 ? values.front() : values[quad];
    }
    target.launches.push_back(launch);
  }
  return success();
}

} // namespace

FailureOr<hw::Image> corsair::encode(ArrayRef<dlir::DeviceProgramOp> programs, const hw::Machine &machine,
                                     const EncodeOptions &options) {
  hw::Image image;
  image.machine = machine;
  Addresses addresses;
  MemoryUse permanent{};
  if (failed(placePermanent(programs, machine, addresses, permanent)))
    return failure();
  for (dlir::DeviceProgramOp program : programs)
    if (failed(KernelEncoder(program, image, addresses, options).run(permanent)))
      return failure();
  if (hw::MaybeError wrong = hw::verify(image)) {
    if (!programs.empty())
      emitError(programs.front()->getLoc()) << "the device refuses the program: " << *wrong;
    return failure();
  }
  return image;
}
