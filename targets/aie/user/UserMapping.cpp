//===- UserMapping.cpp - kernels of users on an array of cores ------------===//
#include "UserMapping.h"

#include "targets/aie/Tilings.h"
#include "targets/common/user/UserKernels.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/TargetBackend.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kMostBlocks = 1024, kMostSteps = 64, kSlots = 2;
static constexpr int64_t kTaskWords = 30; ///< of the control stream, about: a BD, its address, its start, its wait

int64_t UserTensor::run() const {
  constexpr int64_t most = 512 * 4; // bytes of a dim's wraps
  for (int64_t parts = 1; parts <= stretch; ++parts)
    if (stretch % parts == 0 && stretch / parts * bytes <= most)
      return stretch / parts * bytes % 4 ? 0 : stretch / parts;
  return 0;
}

SmallVector<size_t> UserMapping::of(bool isShared) const {
  SmallVector<size_t> list;
  for (size_t i = 0; i + results < tensors.size(); ++i)
    if (tensors[i].isShared == isShared)
      list.push_back(i);
  return list;
}

SmallVector<size_t> UserMapping::ofResults() const {
  SmallVector<size_t> list;
  for (size_t i = tensors.size() - results; i < tensors.size(); ++i)
    list.push_back(i);
  return list;
}

int64_t UserMapping::clocks(const hw::Machine &machine) const {
  int64_t in = 0, out = 0, core = steps * (cycles + machine.callClocks);
  for (const UserTensor &tensor : tensors)
    (tensor.isResult ? out : in) +=
        (tensor.isShared ? 1 : herdRows) * tensor.partBytes() / 4 * (tensor.isStepped ? steps : 1);
  int64_t tasks = herdColumns * static_cast<int64_t>(tensors.size());
  int64_t slowest = std::max({core, in, out, tasks * kTaskWords * machine.controlClocks});
  return in + core + out + (blocks() - 1) * slowest;
}

std::string UserMapping::text(const hw::Machine &machine) const {
  std::string text = "user-" + kernel;
  if (allRows > 1)
    text += ", " + std::to_string(rows) + " of " + std::to_string(allRows) + " rows a core";
  if (steps > 1)
    text += ", " + std::to_string(steps) + " steps of " + std::to_string(step);
  return text + ", " + std::to_string(herdRows * herdColumns) + " cores, ~" + std::to_string(clocks(machine)) +
         " clocks";
}

DictionaryAttr aie::userBody(const hw::Machine &machine, dmir::ExternOp op) {
  for (DictionaryAttr body : op.bodiesFor(kDevice))
    if (llvm::all_of(body.getAs<ArrayAttr>("features").getAsRange<StringAttr>(),
                     [&](StringAttr feature) { return feature.getValue() == StringRef(machine.name); }))
      return body;
  return {};
}

namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// Makes a mapping; what the array does not hold is thrown as a clause, and stays in this file.
class Mapper {
public:
  Mapper(const hw::Machine &machine, const Herd &most, dmir::ExternOp op) : machine(machine), most(most), op(op) {}

  UserMapping run() {
    readBody();
    for (size_t i = 0; i < p.tensors.size(); ++i)
      place(i);
    checkChannels();
    checkSameTensors();
    chooseHerd();
    checkCore();
    checkMoves();
    return p;
  }

private:
  static int64_t sizeOf(Dim dim, const std::string &what) {
    if (!dim.isStatic())
      throw what + " are " + dim.str() + ", which a run brings; the array has kernels of users of fixed sizes";
    return dim.valueOr(0);
  }

  void readBody() {
    p.body = userBody(machine, op);
    std::string kernel = op.getKernel().str();
    if (!p.body)
      throw "no body of the kernel '" + kernel + "' is for " + std::string(machine.name);
    auto attr = p.body.getAs<DictionaryAttr>("core");
    if (!attr)
      throw "the body for aie of the kernel '" + kernel + R"(' has no cycles; give it some, as "cycles": "n + 40")";
    if (p.body.getAs<StringAttr>("abi").getValue() != "plain")
      throw R"(cores call functions of the interface "plain")" + std::string(", not of another");
    if (!op.getCounts().getDims()[2].is(0))
      throw std::string("it wants scratch, and cores give their functions none");
    core = dmir::coreOf(attr);
    p.kernel = kernel;
    p.symbol = p.body.getAs<StringAttr>("symbol").str();
    p.library = core.library;
    p.results = op->getNumResults();
    for (Value value : llvm::concat<Value>(SmallVector<Value>(op.getInputs()), SmallVector<Value>(op.getResults())))
      addTensor(value);
    p.cycles = sizeOf(core.cycles, "its cycles");
    p.items = sizeOf(core.items, "its work items");
    for (Dim scalar : core.scalars)
      p.dims.push_back(sizeOf(scalar, "its scalars"));
    if (p.cycles < 0 || p.cycles > INT32_MAX)
      throw "its cycles are " + number(p.cycles);
    if (p.dims.size() + 2 > hw::kScalars || p.tensors.size() > hw::kAddresses)
      throw "it has " + number(static_cast<int64_t>(p.tensors.size())) + " operands and results and " +
          number(static_cast<int64_t>(p.dims.size())) + " scalars; a core's call takes " + number(hw::kAddresses) +
          " and " + number(hw::kScalars - 2);
  }

  void addTensor(Value value) {
    values.push_back(value);
    UserTensor &tensor = p.tensors.emplace_back();
    tensor.name = core.names[p.tensors.size() - 1];
    tensor.isResult = value.getDefiningOp() == op.getOperation();
    auto argument = dyn_cast<BlockArgument>(value);
    tensor.argument = tensor.isResult ? cast<OpResult>(value).getResultNumber()
                      : argument      ? argument.getArgNumber()
                                      : 0;
    tensor.tensor = cast<RankedTensorType>(value.getType());
    Type element = tensor.tensor.getElementType();
    tensor.kind = elementName(element);
    std::optional<hw::Element> known = hw::elementOf(std::string_view(tensor.kind), std::string_view(tensor.kind));
    std::string its = "'" + tensor.name + "' ";
    if (!known)
      throw its + "has elements that the array's border does not move: it moves f32, f16, bf16, i64, i32, i8 and u8";
    tensor.bytes = hw::bytesOf(*known);
    if (!tensor.tensor.hasStaticShape())
      throw its + "has sizes that a run brings; the array has kernels of users of fixed sizes";
    if (tensor.tensor.getRank() == 0 || tensor.tensor.getRank() > int64_t(hw::kMostAxes) ||
        tensor.tensor.getNumElements() == 0)
      throw its + "has no elements, or none or more than " + number(hw::kMostAxes) + " axes";
  }

  int64_t axisOf(const std::optional<dmir::KernelCut> &cut, size_t tensor) const {
    return cut ? cut->axes[tensor] : -1;
  }

  /// How a tensor lies in DDR, and what of it is a part.
  void place(size_t i) {
    UserTensor &t = p.tensors[i];
    ArrayRef<int64_t> shape = t.tensor.getShape();
    int64_t rows = axisOf(core.rows, i), steps = axisOf(core.steps, i);
    t.isStepped = steps >= 0 && count(core.steps, shape[static_cast<size_t>(steps)], p.step, p.allStep) > 1;
    bool hasRows = rows >= 0 && count(core.rows, shape[static_cast<size_t>(rows)], p.rows, p.allRows) > 0;
    int64_t inner = 1; // elements of a row behind what is cut
    for (int64_t axis = t.tensor.getRank(); axis-- > 0;) {
      bool isCut = (t.isStepped && axis == steps) || (hasRows && axis == rows);
      bool isBefore = (hasRows && axis < rows) || (t.isStepped && axis < steps && !(hasRows && axis == rows));
      if (isBefore && shape[static_cast<size_t>(axis)] != 1)
        throw "'" + t.name + "' is cut along axis " + number(t.isStepped ? steps : rows) + " and has " +
            number(shape[static_cast<size_t>(axis)]) + " along axis " + number(axis) +
            "; what is cut are the first axes, rows before steps";
      if (!isCut && !isBefore)
        inner *= shape[static_cast<size_t>(axis)];
    }
    t.stretch = inner * (t.isStepped ? p.step : 1);
    p.steps = t.isStepped ? (p.allStep + p.step - 1) / p.step : p.steps;
    t.pitch = t.isStepped ? p.steps * t.stretch : t.stretch;
    t.rows = hasRows ? p.rows : 1;
    t.allRows = hasRows ? p.allRows : 1;
    t.isShared = !t.isResult && core.rows && !hasRows;
    t.strides.assign(shape.size(), 1);
    int64_t apart = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      bool isRow = hasRows && static_cast<int64_t>(axis) == rows;
      t.strides[axis] = isRow ? t.pitch : apart;
      apart = isRow ? apart : apart * shape[axis];
    }
    if (p.steps > kMostSteps)
      throw "it would take " + number(p.steps) + " steps, a BD counts to " + number(kMostSteps) +
          "; let a core have more at once (l1)";
  }

  /// How many parts there are of an extent, which is kept.
  static int64_t count(const std::optional<dmir::KernelCut> &cut, int64_t extent, int64_t &part, int64_t &all) {
    part = std::min(extent, sizeOf(cut->extent, "parts of 'l1'"));
    all = extent;
    if (part < 1)
      throw "'l1' asks for parts of " + number(part);
    return (extent + part - 1) / part;
  }

  /// All that one channel brings goes in steps, or none of it does.
  void checkChannels() {
    auto isStepped = [&](size_t i) { return p.tensors[i].isStepped; };
    if (!core.rows && llvm::any_of(p.of(false), isStepped)) // what stays comes by the other channel
      for (UserTensor &tensor : p.tensors)
        tensor.isShared = !tensor.isResult && !tensor.isStepped;
    for (bool isShared : {false, true}) {
      SmallVector<size_t> list = p.of(isShared);
      auto stepped = llvm::count_if(list, isStepped);
      if (stepped && list.size() > 1)
        throw "'" + p.tensors[list[0]].name + "' and '" + p.tensors[list[1]].name +
            "' come by one DMA channel, which brings one operand where some go in steps";
      if (static_cast<int64_t>(list.size()) > machine.queueDepth)
        throw number(static_cast<int64_t>(list.size())) + " operands come by one DMA channel, whose queue has " +
            number(machine.queueDepth);
    }
    if (p.of(false).empty())
      for (UserTensor &tensor : p.tensors) // some channel of rows is what starts a block
        tensor.isShared = false;
    if (static_cast<int64_t>(p.results) > machine.queueDepth)
      throw "it has " + number(static_cast<int64_t>(p.results)) + " results, a DMA channel's queue has " +
          number(machine.queueDepth);
  }

  /// One tensor that is two operands lies in one form.
  void checkSameTensors() {
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        UserTensor same = p.tensors[j];
        same.name = p.tensors[i].name;
        if (values[i] == values[j] && same != p.tensors[i])
          throw "'" + p.tensors[j].name + "' and '" + p.tensors[i].name + "' are one tensor, and are cut differently";
      }
  }

  /// As many cores as there are rows for, and as memory tiles have BDs for.
  void chooseHerd() {
    int64_t parts = (p.allRows + p.rows - 1) / p.rows;
    p.herdColumns = std::min(most.columns, parts);
    p.herdRows = std::min(most.rows, (parts + p.herdColumns - 1) / p.herdColumns);
    while (p.herdRows > 1 && !hasBds())
      --p.herdRows;
    if (!hasBds())
      throw std::string("it has more operands and results than memory tiles have BDs for");
    if (p.blocks() > kMostBlocks)
      throw "it has " + number(p.blocks()) + " blocks of rows, the array's control stream holds " +
          number(kMostBlocks) + "; let a core have more rows at once (l1)";
  }

  /// Of rings of two slots that so many walks fill or drain in turn.
  static int64_t bdsOf(size_t walks) { return static_cast<int64_t>(walks % kSlots ? kSlots * walks : walks); }

  bool hasBds() const {
    int64_t in = bdsOf(p.of(false).size()), out = bdsOf(p.results), shared = bdsOf(p.of(true).size());
    int64_t bds[2] = {p.herdRows * in, shared}; // of even channels and of odd ones
    for (int64_t row = 0; row < p.herdRows; ++row)
      bds[row % 2] += in + out;
    bds[p.herdRows % 2] += shared;
    bds[(p.herdRows + 1) % 2] += p.herdRows * out;
    return std::max(bds[0], bds[1]) <= machine.tile(hw::TileKind::Memory).bds / 2;
  }

  void checkCore() {
    const hw::TileInfo &tile = machine.tile(hw::TileKind::Core);
    auto aligned = [&](int64_t bytes) { return static_cast<int64_t>(llvm::alignTo(bytes, machine.accessBytes)); };
    int64_t bytes = machine.accessBytes, inside = 0, largest[3] = {}; // with the parameters
    std::string list;
    for (const UserTensor &t : p.tensors) {
      bytes += kSlots * aligned(t.partBytes());
      list += (list.empty() ? "" : ", ") + number(kSlots) + " x " + number(t.partBytes()) + " of '" + t.name + "'";
      int64_t &most = largest[t.isResult ? 2 : t.isShared];
      most = std::max(most, aligned(t.partBytes()));
    }
    if (bytes > tile.dataBytes)
      throw "its operands and results take " + number(bytes) + " bytes of a core's memory (" + list + "), which has " +
          number(tile.dataBytes) + "; let a core have less of them at once (l1)";
    inside = kSlots * (p.herdRows * (largest[0] + largest[2]) + largest[1]);
    if (int64_t has = machine.tile(hw::TileKind::Memory).dataBytes; inside > has)
      throw "its operands and results take " + number(inside) + " bytes of a memory tile, which has " + number(has);
    auto rings = static_cast<int64_t>(p.tensors.size());
    if (kSlots * rings > tile.bds || kSlots * rings + 1 > tile.locks)
      throw "its " + number(rings) + " operands and results take more locks or BDs than a core has";
    int64_t words = rings * 5 + static_cast<int64_t>(p.dims.size()) + 3; // instructions of a call, with its locks
    int64_t program = hw::kUserProgramBytes + machine.instructionBytes * (2 + kSlots * p.steps * words);
    if (program > tile.programBytes)
      throw "its " + number(p.steps) + " steps take " + number(program) + " bytes of program memory, a core has " +
          number(tile.programBytes) + "; let a core have more at once (l1)";
  }

  void checkMoves() {
    const hw::TileInfo &shim = machine.tile(hw::TileKind::Shim);
    for (const UserTensor &t : p.tensors) {
      std::string its = "'" + t.name + "' ";
      if (t.partBytes() % 4 || (t.rows > 1 && t.isStepped && t.stretch * t.bytes % 4) || t.pitch * t.rows * t.bytes % 4)
        throw its + "has parts of " + number(t.partBytes()) +
            " bytes; the array moves whole words of 4 (let a core have other parts of it: l1)";
      bool hasGaps = t.isStepped && p.steps > 1;
      if (hasGaps && p.ofColumn() > 1 && !t.isShared && t.pitch * t.bytes / 4 > shim.largestStep)
        throw its + "has rows of " + number(t.pitch * t.bytes / 4) + " words, a shim's BD steps over " +
            number(shim.largestStep);
      if (hasGaps && p.ofColumn() > 1 && !t.isShared && t.run() == 0)
        throw its + "has stretches of " + number(t.stretch * t.bytes) + " bytes, which are no runs of up to 2048";
      if (p.formRows(t) * t.pitch > hw::kMostPadding * (t.tensor.getNumElements() + hw::kSpareElements))
        throw its + "would take " + number(p.formRows(t) * t.pitch) + " elements of the array's DDR";
    }
  }

  const hw::Machine &machine;
  const Herd &most;
  dmir::ExternOp op;
  dmir::KernelCore core;
  SmallVector<Value> values; ///< by tensor
  UserMapping p;
};

} // namespace

Result<UserMapping> aie::userMappingOf(const hw::Machine &machine, const Herd &most, dmir::ExternOp op) {
  try {
    return Mapper(machine, most, op).run();
  } catch (const std::string &clause) {
    return modelError(clause);
  }
}

Result<DictionaryAttr> aie::userStrategy(const hw::Machine &machine, const Herd &most, dmir::RegionOp region) {
  Block *block = region.getBlock();
  auto op = *block->getOps<dmir::ExternOp>().begin();
  kernels::RegionBody body{block, op, llvm::to_vector(block->getTerminator()->getOperands())};
  if (Result<kernels::KernelPlan> plan = kernels::planUserKernel(body); !plan)
    return plan.takeError();
  Result<UserMapping> mapping = userMappingOf(machine, most, op);
  if (!mapping)
    return mapping.takeError();
  int64_t bytes = 0;
  for (const UserTensor &tensor : mapping->tensors)
    bytes += tensor.tensor.getNumElements() * tensor.bytes;
  Builder b(region.getContext());
  NamedAttrList list;
  list.set(strategy::kAlgorithm, b.getStringAttr(mapping->text(machine)));
  addFigures(list, region.getContext(), 0, bytes);
  return list.getDictionary(region.getContext());
}
