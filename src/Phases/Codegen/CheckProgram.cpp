//===- CheckProgram.cpp - programs that codegen cannot take ---------------===//
#include "CheckProgram.h"

#include "dmxc/Bundle/Validate.h"
#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Phases/Decisions.h"
#include "dmxc/Phases/Memory/Layout.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dmxc {

namespace {

/// Bytes of a tensor in the host's memory, or in a target's form; nullopt for open dims and types that the host has
/// none of.
std::optional<int64_t> bytesOnHost(Type type) {
  if (std::optional<int64_t> bytes = dmir::formBytesOf(type))
    return bytes;
  std::optional<dmir::HostForm> form = dmir::blockFpOf(type) ? std::nullopt : dmir::hostFormOf(type);
  return form ? std::optional(static_cast<int64_t>(dtypeBytes(form->dtype, elementCount(form->shape)))) : std::nullopt;
}

SmallVector<dlir::BufferOp> buffersOf(ValueRange values) {
  return llvm::map_to_vector(values, [](Value value) { return value.getDefiningOp<dlir::BufferOp>(); });
}

/// The buffer of a dispatch that has other bytes than the argument of a device's program; a clause.
std::optional<std::string> otherBytes(dlir::DispatchOp dispatch, ArrayRef<dlir::DeviceArgument> arguments) {
  SmallVector<dlir::BufferOp> buffers = buffersOf(dispatch.getInputs());
  llvm::append_range(buffers, buffersOf(dispatch.getOutputs()));
  for (auto [buffer, argument] : llvm::zip_equal(buffers, arguments)) {
    if (buffer.getForm() && argument.tensor == buffer.getTensor()) // the target packs it into its own form of that
      continue;
    std::optional<int64_t> has = buffer.getSizeDim().known(), takes = bytesOnHost(argument.tensor);
    if (has && takes && *has != *takes)
      return ("whose argument '" + argument.name + "' takes " + llvm::Twine(*takes) + " bytes, and the buffer '" +
              buffer.getName() + "' has " + llvm::Twine(*has))
          .str();
  }
  return std::nullopt;
}

/// Whether a buffer holds a tensor as a kernel takes it: one that is written through a view has the view's type.
bool holds(dlir::BufferOp buffer, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type), has = cast<RankedTensorType>(buffer.getTensor());
  if (!tensor || tensor.getElementType() != has.getElementType())
    return false;
  // Of open dims constraints decide, which a run checks.
  return dmir::blockFpOf(type) || !tensor.hasStaticShape() || !has.hasStaticShape() ||
         storageSize(type) == storageSize(has);
}

/// The operand or result of a kernel of the processor that a dispatch brings something else for; a clause.
std::optional<std::string> otherTensor(dlir::DispatchOp dispatch, dlir::KernelOp kernel) {
  auto wrong = [](StringRef what, size_t i, Type type, dlir::BufferOp buffer) {
    std::string text;
    llvm::raw_string_ostream(text) << "whose " << what << " " << i << " is " << type << ", and the buffer '"
                                   << buffer.getName() << "' " << buffer.getTensor();
    return text;
  };
  auto packed = kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked);
  for (auto [i, buffer] : llvm::enumerate(buffersOf(dispatch.getInputs()))) {
    Type type = kernel.getBlock()->getArgument(i).getType();
    if (Attribute form = packed ? packed.get(std::to_string(i)) : Attribute(); form != buffer.getFormAttr())
      return ("whose strategy has operand " + llvm::Twine(i) + " in another form than the buffer '" + buffer.getName() +
              "'")
          .str();
    if (buffer.getForm() ? buffer.getTensor() != type : !holds(buffer, type))
      return wrong("operand", i, type, buffer);
  }
  Operation *yield = kernel.getBlock()->getTerminator();
  if (yield->getNumOperands() != dispatch.getOutputs().size())
    return ("which gives " + llvm::Twine(yield->getNumOperands()) + " results, not " +
            llvm::Twine(dispatch.getOutputs().size()))
        .str();
  for (auto [i, buffer] : llvm::enumerate(buffersOf(dispatch.getOutputs())))
    if (Type type = yield->getOperand(i).getType(); !holds(buffer, type))
      return wrong("result", i, type, buffer);
  return std::nullopt;
}

/// What a dispatch says of its task besides buffers, and the kernel's strategy otherwise; a clause.
std::optional<std::string> otherNumbers(dlir::DispatchOp dispatch, dlir::KernelOp kernel) {
  auto dims = cast_or_null<dmir::DimsAttr>(dispatch.getDimsAttr());
  const std::tuple<StringRef, uint64_t, int64_t> numbers[] = {{strategy::kWork, dispatch.getWork(), 1},
                                                              {strategy::kGrain, dispatch.getGrain(), 1},
                                                              {strategy::kScratch, dispatch.getScratch(), 0}};
  for (auto [i, row] : llvm::enumerate(numbers)) {
    auto [key, number, otherwise] = row;
    Dim says = dims ? dims.getDims()[i] : Dim(static_cast<int64_t>(number)),
        needed = dmir::dimOfAttr(kernel.getStrategy().get(key), otherwise);
    if (!(says == needed))
      return ("whose strategy has '" + key + "' = " + needed.str() + ", not the task's " + says.str()).str();
  }
  return std::nullopt;
}

/// An op of a kernel that computes nothing for it: no phase leaves one, and a root that is none has no loops; a clause.
std::optional<std::string> unusedOp(dlir::KernelOp kernel) {
  for (Operation &op : kernel.getBlock()->without_terminator())
    if (op.use_empty() && isMemoryEffectFree(&op))
      return ("in which nothing uses '" + op.getName().getStringRef() + "' (" + dmir::nodeName(&op) + ")").str();
  return std::nullopt;
}

/// Buffers by their names, where a rule has numbers.
std::string withNames(const std::string &text, ArrayRef<dlir::BufferOp> buffers) {
  std::string out;
  constexpr StringLiteral word = "buffer ";
  for (StringRef rest = text; !rest.empty();) {
    auto [before, behind] = rest.split(word);
    out += before;
    if (before.size() == rest.size())
      break;
    StringRef digits = behind.take_while(llvm::isDigit);
    size_t number;
    bool isNamed = !digits.getAsInteger(10, number) && number < buffers.size();
    dlir::BufferOp buffer = isNamed ? buffers[number] : dlir::BufferOp();
    out += word.str() + (isNamed ? "'" + buffer.getName().str() + "'" : digits.str());
    rest = behind.drop_front(digits.size());
  }
  return out;
}

} // namespace

Status checkKernels(dlir::ProgramOp program, const PhaseContext &context) {
  for (auto dispatch : program.getBody().getOps<dlir::DispatchOp>()) {
    auto wrong = [&](const llvm::Twine &why) {
      return modelError(
          ("task '" + dmir::nodeName(dispatch) + "' needs the kernel '" + dispatch.getKernel() + "', " + why).str());
    };
    Operation *kernel = SymbolTable::lookupNearestSymbolFrom(program, dispatch.getKernelAttr());
    auto code = dyn_cast_or_null<dlir::KernelOp>(kernel);
    auto device = dyn_cast_or_null<dlir::DeviceProgramOpInterface>(kernel);
    if (!code && !device)
      return wrong("which is not in the text");
    StringRef runsOn = code ? code.getDevice() : device.getDevice();
    if (runsOn != dispatch.getQueue())
      return wrong("which is for the device '" + runsOn + "', not for its queue '" + dispatch.getQueue() + "'");
    if (!context.target(runsOn))
      return wrong("which is for the device '" + runsOn + "', no target of this compile");
    size_t brought = dispatch.getInputs().size() + (device ? dispatch.getOutputs().size() : 0);
    SmallVector<dlir::DeviceArgument> arguments;
    if (device)
      llvm::append_range(arguments, device.deviceArguments());
    size_t needed = code ? code.getBlock()->getNumArguments() : arguments.size();
    if (brought != needed)
      return wrong("which takes " + llvm::Twine(needed) + " buffers, not " + llvm::Twine(brought));
    if (std::optional<std::string> why = device ? otherBytes(dispatch, arguments) : std::nullopt)
      return wrong(*why);
    if (!code || !context.checkStrategies) // else it is as it was made
      continue;
    if (std::optional<std::string> why = otherTensor(dispatch, code))
      return wrong(*why);
    if (std::optional<std::string> why = otherNumbers(dispatch, code))
      return wrong(*why);
    if (std::optional<std::string> why = unusedOp(code))
      return wrong(*why);
  }
  return Status::ok();
}

Status checkGraphs(ModuleOp module, const CompiledModel &model) {
  auto sizeOf = [](const std::string &entry) -> std::optional<uint64_t> { // of weights that are not laid out yet
    return entry == kWeightsEntry ? std::optional<uint64_t>(INT64_MAX) : std::nullopt;
  };
  auto check = [&](const bundle::GraphDesc &graph) {
    auto entry = llvm::find_if(model.entryPoints, [&](const bundle::EntryPoint &e) { return e.name == graph.name; });
    const bundle::EntryPoint *point = entry == model.entryPoints.end() ? nullptr : &*entry;
    std::vector<bundle::Problem> problems = bundle::validateGraph(graph, point, sizeOf, /*limit=*/1);
    if (problems.empty())
      return Status::ok();
    auto program = module.lookupSymbol<dlir::ProgramOp>(graph.name);
    SmallVector<dlir::BufferOp> buffers(program.getBody().getOps<dlir::BufferOp>());
    return Status(modelError(withNames(problems[0].where + ": " + problems[0].message, buffers)));
  };
  if (model.entryPoints.empty())
    return modelError("the text has no entry point: each dlir.program is 'owned' by the task of another one");
  llvm::StringSet<> names;
  for (const ConstantPayload &constant : model.constants)
    if (!names.insert(constant.name).second)
      return modelError("two constants are called '" + constant.name + "', by their programs and their own names");
  for (const bundle::GraphDesc &graph : model.graph.graphs)
    if (Status checked = check(graph); !checked)
      return checked;
  if (std::vector<bundle::Problem> problems = bundle::validateOwnership(model.graph, model.entryPoints, /*limit=*/1);
      !problems.empty())
    return modelError(problems[0].where + ": " + problems[0].message);
  return Status::ok();
}

} // namespace dmxc
