//===- AieDialect.cpp - mlir-aie's ops, as far as the target uses them ----===//
#include "targets/aie/dialect/Aie.h"

#include "dmxc/Dialect/DLIR/TaskDims.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

#include "targets/aie/dialect/AieDialect.cpp.inc"
#include "targets/aie/dialect/AieEnums.cpp.inc"
#include "targets/aie/dialect/AiexDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "targets/aie/dialect/AieAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "targets/aie/dialect/AieOps.cpp.inc"
#define GET_OP_CLASSES
#include "targets/aie/dialect/AiexOps.cpp.inc"

void AIEDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "targets/aie/dialect/AieAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "targets/aie/dialect/AieOps.cpp.inc"
      >();
}

void aiex::AIEXDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "targets/aie/dialect/AiexOps.cpp.inc"
      >();
}

//===--- what values stand for -----------------------------------------------------===//

hw::Tile aie::tileOf(Value tile) { return tile.getDefiningOp<TileOp>().tile(); }
BufferOp aie::bufferOf(Value buffer) { return buffer.getDefiningOp<BufferOp>(); }
LockOp aie::lockOf(Value lock) { return lock.getDefiningOp<LockOp>(); }

void TileOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "tile_" + std::to_string(getCol()) + "_" + std::to_string(getRow()));
}
void BufferOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getBuffer(), getSymName()); }
void LockOp::getAsmResultNames(OpAsmSetValueNameFn setName) { setName(getResult(), getSymName()); }

int64_t aie::elementBytes(Type memref) {
  Type element = cast<MemRefType>(memref).getElementType();
  return element.isInteger(8)                       ? 1
         : element.isBF16() || element.isF16()      ? 2
         : element.isF32() || element.isInteger(32) ? 4
         : element.isInteger(64)                    ? 8
                                                    : 0;
}
int64_t BufferOp::bytes() {
  return cast<MemRefType>(getBuffer().getType()).getNumElements() * elementBytes(getBuffer().getType());
}

hw::Machine DeviceOp::table() {
  return *hw::machineOf(getMachine() == AIEDevice::npu2 ? "npu4" : stringifyAIEDevice(getMachine()).str());
}
RuntimeSequenceOp DeviceOp::sequence() {
  auto all = getBody().getOps<RuntimeSequenceOp>();
  return all.empty() ? RuntimeSequenceOp() : *all.begin();
}

/// The side of a core at which a tile is that it reaches.
static std::optional<uint32_t> sideOf(const hw::Machine &machine, hw::Tile core, hw::Tile tile) {
  for (uint32_t side = 0; side < 4 && machine.kindOf(tile.row) == hw::TileKind::Core; ++side)
    if (hw::neighbour(core, static_cast<hw::Neighbour>(side)) == tile)
      return side;
  return std::nullopt;
}

std::optional<uint32_t> aie::addressFrom(const hw::Machine &machine, hw::Tile core, hw::Tile tile, int64_t address) {
  std::optional<uint32_t> side = sideOf(machine, core, tile);
  return side ? std::optional(hw::kCoreWindow[*side] + static_cast<uint32_t>(address)) : std::nullopt;
}
std::optional<uint32_t> aie::lockNumber(const hw::Machine &machine, hw::Tile core, hw::Tile tile, uint32_t lock) {
  std::optional<uint32_t> side = sideOf(machine, core, tile);
  return side ? std::optional(hw::kCoreLocks * *side + lock) : std::nullopt;
}

void aie::walkOf(DMABDOp bd, SmallVector<int64_t> &sizes, SmallVector<int64_t> &strides) {
  if (std::optional<ArrayRef<BDDimLayoutAttr>> dims = bd.getDimensions())
    for (BDDimLayoutAttr dim : *dims) {
      sizes.push_back(dim.getSize());
      strides.push_back(dim.getStride());
    }
  if (sizes.empty()) {
    sizes.push_back(bd.getLen());
    strides.push_back(1);
  }
}

//===--- walks ---------------------------------------------------------------------===//

namespace {

struct WalkDim {
  int64_t wrap, step;
};

/// Dims in words, the innermost first, without those of one trip; an error where a run does not fill whole words.
SmallVector<WalkDim> wordsOf(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t bytes, std::string &error) {
  SmallVector<WalkDim> dims;
  for (size_t i = sizes.size(); i-- > 0;) {
    bool inner = i + 1 == sizes.size();
    if (inner && strides[i] == 1) {
      if (sizes[i] * bytes % 4)
        error = "a run of " + std::to_string(sizes[i] * bytes) + " bytes does not fill whole words";
      dims.push_back({std::max<int64_t>(sizes[i] * bytes / 4, 1), 1});
      continue;
    }
    if (sizes[i] == 1)
      continue;
    if (strides[i] * bytes % 4 || (inner && bytes < 4))
      error = "a stride of " + std::to_string(strides[i] * bytes) + " bytes is not one of whole words";
    dims.push_back({sizes[i], strides[i] * bytes / 4});
  }
  if (dims.empty())
    dims.push_back({1, 1});
  return dims;
}

/// Dims of which one begins where the one inside ends are one, where a BD holds that.
void merge(SmallVector<WalkDim> &dims, int64_t largestWrap) {
  for (size_t i = 0; i + 1 < dims.size();) {
    bool adjoins = dims[i + 1].step == dims[i].step * dims[i].wrap;
    int64_t wrap = dims[i].wrap * dims[i + 1].wrap;
    bool holds = wrap <= largestWrap || i + 2 == dims.size(); // the last one ends with the length
    if (!adjoins || !holds) {
      ++i;
      continue;
    }
    dims[i].wrap = wrap;
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(i) + 1);
  }
}

} // namespace

bool aie::setWalk(hw::Bd &bd, const hw::Machine &machine, hw::TileKind kind, ArrayRef<int64_t> sizes,
                  ArrayRef<int64_t> strides, int64_t bytes, std::string &error) {
  using F = hw::BdField;
  const hw::TileInfo &info = machine.tile(kind);
  SmallVector<WalkDim> dims = wordsOf(sizes, strides, bytes, error);
  merge(dims, info.largestWrap);
  if (error.empty() && static_cast<int64_t>(dims.size()) > info.dims)
    error = "its walk has " + std::to_string(dims.size()) + " dims, a BD of a " + std::string(hw::nameOf(kind)) +
            " tile has " + std::to_string(info.dims);
  int64_t length = 1;
  for (size_t i = 0; i < dims.size() && error.empty(); ++i) {
    auto [wrap, step] = dims[i];
    length *= wrap;
    bool last = i + 1 == dims.size();
    if (step < 1 || step > info.largestStep)
      error = "it steps over " + std::to_string(step) + " words, a BD of a " + std::string(hw::nameOf(kind)) +
              " tile over 1 to " + std::to_string(info.largestStep);
    else if (wrap > info.largestWrap && !last)
      error = "a dim has " + std::to_string(wrap) + " steps, one of a BD of a " + std::string(hw::nameOf(kind)) +
              " tile has " + std::to_string(info.largestWrap);
    else if (length > info.largestLength)
      error = "it moves " + std::to_string(length) + " words or more, a BD of a " + std::string(hw::nameOf(kind)) +
              " tile moves " + std::to_string(info.largestLength);
    if (!error.empty() || (dims.size() == 1 && step == 1))
      continue;
    bd[static_cast<F>(static_cast<size_t>(F::Step0) + i)] = step;
    auto wrapField = static_cast<F>(static_cast<size_t>(F::Wrap0) + i);
    if (i < 3 && hw::rangeOf(kind, wrapField) && wrap <= info.largestWrap)
      bd[wrapField] = wrap;
  }
  bd[F::Length] = length;
  bd[F::Valid] = 1;
  return error.empty();
}

bool aie::setIteration(hw::Bd &bd, const hw::Machine &machine, int64_t times, int64_t bytes, std::string &error) {
  if (bytes == 0)
    return true;
  int64_t most = machine.tile(hw::TileKind::Shim).largestStep;
  if (bytes % 4 || bytes / 4 > most)
    error = "each time that it runs it steps over " + std::to_string(bytes) +
            " bytes; a BD of a shim tile goes on by 1 to " + std::to_string(most) + " words";
  else if (times > machine.largestIteration)
    error = "it runs " + std::to_string(times) + " times from other places, a BD counts to " +
            std::to_string(machine.largestIteration);
  bd[hw::BdField::IterationStep] = bytes / 4;
  bd[hw::BdField::IterationWrap] = times;
  return error.empty();
}

LogicalResult aiex::NpuDmaMemcpyNdOp::verify() {
  if (getStaticOffsets().size() != 4 || getStaticSizes().size() != 4 || getStaticStrides().size() != 4)
    return emitOpError("has four offsets, sizes and strides");
  for (int64_t size : getStaticSizes())
    if (size < 1)
      return emitOpError("has a size of ") << size;
  for (int64_t offset : getStaticOffsets())
    if (offset < 0)
      return emitOpError("has an offset of ") << offset;
  if (getStaticStrides()[0] < 0)
    return emitOpError("goes back by ") << getStaticStrides()[0] << " each time that it runs";
  return success();
}

//===--- the runtime sequence ------------------------------------------------------===//

ParseResult RuntimeSequenceOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  ArrayAttr operands;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true) ||
      parser.parseKeyword("operands") || parser.parseAttribute(operands, "operands", result.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  Region *body = result.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void RuntimeSequenceOp::print(OpAsmPrinter &p) {
  p << "(";
  llvm::interleaveComma(getBody().getArguments(), p, [&](BlockArgument argument) { p.printRegionArgument(argument); });
  p << ") operands " << getOperandsAttr();
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"operands"});
  p << " ";
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ArrayRef<int64_t> aie::mostOf(DeviceOp device) {
  auto most = device->getAttrOfType<DenseI64ArrayAttr>(kMost);
  bool good = most && static_cast<size_t>(most.size()) == dlir::taskDims(device).size() &&
              llvm::all_of(most.asArrayRef(), [](int64_t each) { return each >= 0 && each <= UINT32_MAX; });
  return good ? most.asArrayRef() : ArrayRef<int64_t>();
}

LogicalResult aiex::WhenOp::verify() {
  size_t count = mostOf((*this)->getParentOfType<DeviceOp>()).size();
  if (getDims().size() != getAbove().size() || getDims().empty())
    return emitOpError("C1: has ") << getDims().size() << " sizes and " << getAbove().size() << " numbers";
  for (auto [dim, above] : llvm::zip(getDims(), getAbove()))
    if (dim < 0 || static_cast<size_t>(dim) >= count || above < 0 || above > UINT32_MAX)
      return emitOpError("C2: asks whether size ") << dim << " is above " << above << ", a dispatch brings " << count;
  return success();
}

/// Extents of a tensor's dims, or of several that are one, and what a dispatch says of them; false where they are not
/// those of the tensor.
static bool setExtents(std::vector<hw::Axis> &axes, DictionaryAttr border, RankedTensorType tensor, DeviceOp device) {
  auto given = border ? border.getAs<DenseI64ArrayAttr>(kExtents) : DenseI64ArrayAttr();
  auto sizes = border ? border.getAs<dmir::DimsAttr>(kSizes) : dmir::DimsAttr();
  ArrayRef<int64_t> extents = given ? given.asArrayRef() : tensor.getShape();
  if (extents.size() > hw::kMostAxes || (sizes && sizes.getDims().size() != extents.size()) ||
      llvm::any_of(extents, [](int64_t dim) { return dim < 1 || dim > INT32_MAX; }))
    return false;
  ArrayRef<int64_t> most = mostOf(device);
  ArrayRef<Dim> dims = dlir::taskDims(device);
  Dim all = 1;
  for (auto [i, extent] : llvm::enumerate(extents)) {
    Dim size = sizes ? sizes.getDims()[i] : Dim(extent);
    all *= size;
    hw::Axis &axis = axes.emplace_back();
    axis.extent = static_cast<uint32_t>(extent);
    if (size.is(extent))
      continue;
    auto found = static_cast<size_t>(llvm::find(dims, size) - dims.begin());
    if (found >= most.size() || most[found] != extent)
      return false;
    axis.dim = static_cast<uint32_t>(found + 1);
  }
  return all == dmir::elementsOf(tensor);
}

/// The axes of a tensor in a form; nullopt where they are not said soundly.
std::optional<Kept> aie::keptOf(Type tensor) {
  auto form = dyn_cast_or_null<DictionaryAttr>(cast<RankedTensorType>(tensor).getEncoding());
  auto number = [&](StringRef key) {
    auto value = form ? form.getAs<IntegerAttr>(key) : IntegerAttr();
    return value && value.getInt() > 0 && value.getInt() <= UINT32_MAX ? value.getInt() : 0;
  };
  auto element = form ? form.getAs<StringAttr>("element") : StringAttr();
  int64_t bytes = !element ? 0 : element == "bf16" ? 2 : element == "i8" ? 1 : 0;
  Kept kept{element ? element.getValue() : "", number("rows"), number("pitch")};
  std::optional<int64_t> all = dmir::formBytesOf(tensor);
  bool good = all && bytes && kept.rows && kept.pitch && *all / bytes / kept.rows >= kept.pitch;
  return good ? std::optional(kept) : std::nullopt;
}

Attribute aie::keptForm(MLIRContext *context, const Kept &kept, int64_t bytes) {
  Builder b(context);
  return b.getDictionaryAttr({b.getNamedAttr(dmir::kFormBytes, b.getI64IntegerAttr(bytes)),
                              b.getNamedAttr("element", b.getStringAttr(kept.element)),
                              b.getNamedAttr("pitch", b.getI64IntegerAttr(kept.pitch)),
                              b.getNamedAttr("rows", b.getI64IntegerAttr(kept.rows))});
}

static std::optional<std::vector<hw::Axis>> axesOf(DictionaryAttr operand, RankedTensorType tensor, MemRefType form,
                                                   bool packed, DeviceOp device) {
  auto border = operand.getAs<DictionaryAttr>(kBorder);
  std::vector<hw::Axis> axes;
  if (!setExtents(axes, border, tensor, device))
    return std::nullopt;
  if (packed)
    return border ? std::nullopt : std::optional(axes);
  if (!border) {
    int64_t columns = tensor.getShape().back(), rows = tensor.getNumElements() / columns;
    if (rows > form.getDimSize(0) || columns > form.getDimSize(1))
      return std::nullopt;
    return hw::rowsOf(static_cast<uint32_t>(rows), static_cast<uint32_t>(columns),
                      static_cast<uint32_t>(form.getDimSize(1)));
  }
  for (auto [key, field] : {std::pair(kStrides, &hw::Axis::stride),
                            {kFirst, &hw::Axis::first},
                            {kSplit, &hw::Axis::split},
                            {kPhase, &hw::Axis::phase}}) {
    auto values = border.getAs<DenseI64ArrayAttr>(key);
    if (!values || values.size() != static_cast<int64_t>(axes.size()))
      return std::nullopt;
    for (auto [axis, value] : llvm::zip(axes, values.asArrayRef())) {
      if (value < 0 || value > UINT32_MAX)
        return std::nullopt;
      axis.*field = static_cast<uint32_t>(value);
    }
  }
  return axes;
}

StringRef aie::elementName(Type type) {
  if (type.isF32())
    return "f32";
  if (type.isBF16())
    return "bf16";
  if (type.isF16())
    return "f16";
  if (type.isInteger(8))
    return "i8";
  if (type.isInteger(64) && !type.isUnsignedInteger())
    return "i64";
  return type.isInteger(32) && !type.isUnsignedInteger() ? "i32" : "";
}

std::optional<hw::Argument> aie::argumentOf(RuntimeSequenceOp sequence, unsigned number) {
  auto what = dyn_cast<DictionaryAttr>(sequence.getOperandsAttr()[number]);
  auto form = dyn_cast<MemRefType>(sequence.getBody().getArgument(number).getType());
  if (!what || !form || !form.hasStaticShape() || form.getRank() != 2)
    return std::nullopt;
  auto name = what.getAs<StringAttr>("name"), role = what.getAs<StringAttr>("role");
  auto type = what.getAs<TypeAttr>("tensor");
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  if (!name || !role || !tensor || tensor.getRank() == 0 || form.getNumElements() == 0 ||
      !llvm::is_contained({"input", "output", "constant"}, role.getValue()))
    return std::nullopt;
  Type stored = form.getElementType(), host = tensor.getElementType();
  std::optional<Kept> kept = keptOf(tensor);
  if (isa_and_nonnull<DictionaryAttr>(tensor.getEncoding()) &&
      (!kept || kept->rows != form.getDimSize(0) || kept->pitch != form.getDimSize(1) ||
       (kept->element == "bf16") != stored.isBF16() || role.getValue() == "constant"))
    return std::nullopt;
  std::optional<hw::Element> element = hw::elementOf(elementName(host), elementName(stored));
  bool rounds = element == hw::Element::Bf16 && role.getValue() == "output" && !kept; // the border widens nothing
  if (!element || rounds || form.getDimSize(0) > UINT32_MAX || form.getDimSize(1) > UINT32_MAX)
    return std::nullopt;
  std::optional<std::vector<hw::Axis>> axes =
      axesOf(what, tensor, form, role.getValue() == "constant", sequence->getParentOfType<DeviceOp>());
  if (!axes)
    return std::nullopt;
  hw::Argument out;
  out.name = name.str();
  out.output = role.getValue() == "output";
  out.packed = role.getValue() == "constant" || kept;
  out.element = *element;
  out.axes = std::move(*axes);
  out.rows = static_cast<uint32_t>(form.getDimSize(0));
  out.pitch = static_cast<uint32_t>(form.getDimSize(1));
  return hw::checkForm(out).empty() ? std::optional(out) : std::nullopt;
}

LogicalResult RuntimeSequenceOp::verify() {
  if (getOperandsAttr().size() != getBody().getNumArguments())
    return emitOpError("says of ") << getOperandsAttr().size() << " operands what the host has, it has "
                                   << getBody().getNumArguments();
  for (unsigned i = 0; i < getBody().getNumArguments(); ++i)
    if (!argumentOf(*this, i))
      return emitOpError("has an operand ") << i << " that is no matrix which the border makes of a tensor";
  return success();
}

std::vector<dlir::DeviceArgument> DeviceOp::deviceArguments() {
  std::vector<dlir::DeviceArgument> out;
  RuntimeSequenceOp of = sequence();
  for (Attribute each : of ? of.getOperandsAttr() : ArrayAttr()) {
    auto what = cast<DictionaryAttr>(each);
    std::optional<dlir::ArgumentRole> role = dlir::symbolizeArgumentRole(what.getAs<StringAttr>("role").getValue());
    out.push_back({what.getAs<StringAttr>("name").getValue(), *role, what.getAs<TypeAttr>("tensor").getValue(), ""});
  }
  return out;
}
