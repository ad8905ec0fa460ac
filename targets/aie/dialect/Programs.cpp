//===- Programs.cpp - what DLIR's programs of the array may say -----------===//
#include "targets/aie/dialect/Aie.h"

#include "dmxc/Dialect/DLIR/TaskSyntax.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static dlir::UnitModel unitsOf(const hw::Machine &machine, hw::TileKind kind) {
  const hw::TileInfo &info = machine.tile(kind);
  dlir::UnitModel row;
  row.name = hw::nameOf(kind);
  for (hw::Direction direction : {hw::Direction::S2MM, hw::Direction::MM2S})
    row.engines.push_back({std::string(hw::nameOf(direction)), info.channels});
  if (kind == hw::TileKind::Core)
    row.engines.push_back({kComputeEngine.str(), 1});
  row.tokens = kind == hw::TileKind::Shim ? 0 : info.locks; // shims' tasks are ordered by the controller
  return row;
}

/// A memory that DMAs of tiles of this kind walk over.
static dlir::MemoryModel memoryOf(const hw::Machine &machine, hw::TileKind kind, StringRef name, int64_t size,
                                  int64_t units) {
  const hw::TileInfo &info = machine.tile(kind);
  dlir::MemoryModel row;
  row.name = name;
  row.size = size;
  row.units = units;
  row.alignment = machine.accessBytes;
  row.element = 4;
  row.descriptorDims = static_cast<unsigned>(kind == hw::TileKind::Shim ? info.dims : info.dims - 1); // and the unit
  row.largestStep = 4 * info.largestStep;
  row.padding = false;
  return row;
}

void aie::registerDevice(DialectRegistry &registry, const hw::Machine &machine) {
  int64_t columns = machine.columns;
  dlir::DeviceModel model;
  model.name = kDevice.str();
  model.memories = {
      memoryOf(machine, hw::TileKind::Shim, "DDR", int64_t(1) << 36, 1),
      memoryOf(machine, hw::TileKind::Memory, "L2", machine.tile(hw::TileKind::Memory).dataBytes, columns),
      memoryOf(machine, hw::TileKind::Core, "L1", machine.tile(hw::TileKind::Core).dataBytes,
               columns * machine.coreRows())};
  model.memories[0].moves = {{"L2"}, {"L1"}};
  model.memories[1].moves = {{"DDR"}, {"L2"}, {"L1"}};
  model.memories[2].moves = {{"DDR"}, {"L2"}, {"L1"}};
  model.units = {unitsOf(machine, hw::TileKind::Core), unitsOf(machine, hw::TileKind::Memory),
                 unitsOf(machine, hw::TileKind::Shim)};
  for (const dlir::MemoryModel &memory : model.memories)
    model.descriptorDims = std::max(model.descriptorDims, memory.descriptorDims);
  model.channels = model.arrays = model.fixedSlots = true;
  dlir::registerDevice<AIEDialect>(registry, std::move(model));
}

//===--- calls ------------------------------------------------------------------------===//

static constexpr StringLiteral kPlaces[] = {"", "?and", "?and", "?and", "?and", "?and"};
static constexpr dlir::Clause kClauses[] = {{"part", dlir::Clause::Array}};
static constexpr dlir::TaskSyntax kSyntax{dlir::TaskSyntax::Text, "kernel", kPlaces, kClauses};
namespace dmxc::aie {
DMXC_TASK_SYNTAX(CallOp, kSyntax)
} // namespace dmxc::aie

DictionaryAttr aie::attrOf(const CoreFunction &function, MLIRContext *context) {
  Builder b(context);
  NamedAttrList entry;
  for (auto [key, text] :
       {std::pair("kernel", &function.kernel), {"symbol", &function.symbol}, {"library", &function.library}})
    entry.set(key, b.getStringAttr(*text));
  entry.set("cycles", b.getI64IntegerAttr(function.cycles));
  entry.set("dims", b.getDenseI64ArrayAttr(function.dims));
  SmallVector<StringRef> names(function.buffers.begin(), function.buffers.end());
  entry.set("buffers", b.getStrArrayAttr(names));
  entry.set("results", b.getI64IntegerAttr(static_cast<int64_t>(function.results)));
  return entry.getDictionary(context);
}

std::optional<CoreFunction> aie::functionOf(Operation *op) {
  auto entry = op ? op->getAttrOfType<DictionaryAttr>(kFunction) : DictionaryAttr();
  if (!entry)
    return std::nullopt;
  CoreFunction function;
  for (auto [key, text] :
       {std::pair("kernel", &function.kernel), {"symbol", &function.symbol}, {"library", &function.library}}) {
    auto value = entry.getAs<StringAttr>(key);
    if (!value)
      return std::nullopt;
    *text = value.str();
  }
  auto cycles = entry.getAs<IntegerAttr>("cycles"), results = entry.getAs<IntegerAttr>("results");
  auto dims = entry.getAs<DenseI64ArrayAttr>("dims");
  auto names = entry.getAs<ArrayAttr>("buffers");
  auto isText = [](Attribute name) { return isa<StringAttr>(name); };
  if (!cycles || !results || !dims || !names || !llvm::all_of(names, isText))
    return std::nullopt;
  function.cycles = cycles.getInt();
  llvm::append_range(function.dims, dims.asArrayRef());
  for (auto name : names.getAsRange<StringAttr>())
    function.buffers.push_back(name.str());
  function.results = static_cast<size_t>(results.getInt());
  bool good = function.cycles >= 0 && function.cycles <= INT32_MAX && function.dims.size() + 2 <= hw::kScalars &&
              results.getInt() > 0 && function.buffers.size() <= hw::kAddresses &&
              function.results < function.buffers.size() &&
              llvm::all_of(function.dims, [](int64_t dim) { return dim >= 0 && dim <= INT32_MAX; });
  return good ? std::optional(function) : std::nullopt;
}

std::optional<CoreFunction> aie::functionOf(CallOp call) {
  std::optional<CoreFunction> function = functionOf(call->getParentOfType<dlir::DeviceProgramOp>());
  return function && function->symbol == call.getKernel() ? function : std::nullopt;
}

std::optional<hw::KernelId> aie::libraryKernelOf(CallOp call) {
  return functionOf(call) ? std::nullopt : hw::kernelNamed(call.getKernel().str());
}

SmallVector<Value> aie::CallOp::memoriesWritten() {
  std::optional<CoreFunction> user = functionOf(*this);
  return llvm::to_vector(getBuffers().take_back(user ? std::min(user->results, getBuffers().size()) : 1));
}

/// Of a call of a user's function.
static LogicalResult verifyUser(CallOp call, const CoreFunction &user) {
  if (user.buffers.size() != call.getBuffers().size())
    return call.emitOpError("C1: ") << call.getKernel() << " takes " << user.buffers.size() << " matrices, not "
                                    << call.getBuffers().size();
  std::optional<ArrayRef<int64_t>> part = call.getPart();
  bool good = part && part->size() == 2 && (*part)[0] >= 0 && (*part)[0] <= (*part)[1] && (*part)[1] <= INT32_MAX;
  return good ? success() : call.emitOpError("C3: a user's function computes a `part [begin, end]`");
}

LogicalResult aie::CallOp::verify() {
  if (failed(dlir::verifyTask(dlir::partsOf(*this))))
    return failure();
  std::optional<hw::KernelId> kernel = libraryKernelOf(*this);
  std::optional<CoreFunction> user = functionOf(*this);
  if (!kernel && !user)
    return emitOpError("C1: the cores' library has no '") << getKernel() << "'";
  if (user && failed(verifyUser(*this, *user)))
    return failure();
  if (!user && getPart())
    return emitOpError("C3: has a part, and the library's kernels have none");
  if (size_t takes = user ? 0 : hw::infoOf(*kernel).addresses.size() - hw::takesParameters(*kernel);
      !user && takes != getBuffers().size())
    return emitOpError("C1: ") << getKernel() << " takes " << takes << " matrices, not " << getBuffers().size();
  auto begins = [](Attribute place) {
    AffineMap map = cast<AffineMapAttr>(place).getValue();
    return map.isSingleConstant() && map.getSingleConstantResult() == 0;
  };
  if (getDescriptor() || !llvm::all_of(getPlaces(), begins) ||
      llvm::any_of(getBuffers(), [](Value buffer) { return dlir::memoryOf(buffer) != "L1"; }))
    return emitOpError("C2: takes whole buffers of L1");
  return success();
}
