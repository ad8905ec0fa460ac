//===- LLDMIRDialect.cpp - syntax and rules of the ops on tiles -----------===//
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

//===--- syntax: one type for all tiles of an operand group ----------------------===//

using Operands = ArrayRef<OpAsmParser::UnresolvedOperand>;

static ParseResult parseOneType(OpAsmParser &parser, Operands operands, SmallVectorImpl<Type> &types) {
  Type type;
  if (parser.parseType(type))
    return failure();
  types.assign(operands.size(), type);
  return success();
}
static void printOneType(OpAsmPrinter &printer, Operation *, OperandRange, TypeRange types) {
  if (!types.empty())
    printer << types.front();
}

static ParseResult parseResultType(OpAsmParser &parser, const std::optional<OpAsmParser::UnresolvedOperand> &init,
                                   Type &initType, Type &resultType) {
  if (parser.parseType(resultType))
    return failure();
  if (init)
    initType = resultType;
  return success();
}
static void printResultType(OpAsmPrinter &printer, Operation *, Value, Type, Type resultType) { printer << resultType; }

#include "targets/corsair/dialect/LLDMIR/LLDMIRDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIRAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/LLDMIR/LLDMIROps.cpp.inc"

using namespace dmxc::lldmir;

void LLDMIRDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "targets/corsair/dialect/LLDMIR/LLDMIRAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "targets/corsair/dialect/LLDMIR/LLDMIROps.cpp.inc"
      >();
}

//===--- the machine ----------------------------------------------------------------===//

const dmx::corsair::Machine &LLDMIRDialect::getMachine() const {
  return machine ? *machine : dmx::corsair::builtinMachine();
}

void LLDMIRDialect::setMachine(dmx::corsair::Machine given) {
  machine = std::make_shared<const dmx::corsair::Machine>(std::move(given));
}

const dmx::corsair::Machine &dmxc::lldmir::machineOf(MLIRContext *context) {
  return context->getOrLoadDialect<LLDMIRDialect>()->getMachine();
}

namespace dmxc::lldmir {
/// Brings the machine to the dialect.
struct MachineExtension : DialectExtension<MachineExtension, LLDMIRDialect> {
  explicit MachineExtension(const dmx::corsair::Machine &machine) : machine(machine) {}
  void apply(MLIRContext *, LLDMIRDialect *dialect) const override { dialect->setMachine(machine); }

  dmx::corsair::Machine machine;
};
} // namespace dmxc::lldmir

void dmxc::lldmir::registerMachine(DialectRegistry &registry, const dmx::corsair::Machine &machine) {
  registry.addExtension(TypeID::get<MachineExtension>(), std::make_unique<MachineExtension>(machine));
}

//===--- attributes of other dialects' ops -----------------------------------------------===//

static bool isNumber(Attribute attr, int64_t from, int64_t to = INT64_MAX) {
  auto number = dyn_cast<IntegerAttr>(attr);
  return number && number.getType().isSignlessInteger(64) && number.getInt() >= from && number.getInt() <= to;
}

/// What an attribute of the dialect must be of an op, an argument or a result; "" where it is.
static std::string expectedOf(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto unless = [](bool fits, const std::string &expected) { return fits ? std::string() : expected; };
  if (name == kDealAttr)
    return unless(isa<DealAttr>(value), "a #lldmir.deal");
  if (name == kPlanAttr)
    return unless(isa<PlanAttr>(value), "a #lldmir.plan");
  if (name == kKeptAttr) {
    auto lists = dyn_cast<ArrayAttr>(value);
    return unless(lists && llvm::all_of(lists, llvm::IsaPred<DenseI64ArrayAttr>), "an array of arrays of i64");
  }
  if (name == kGatherAttr || name == kBlocksAttr)
    return unless(isa<DenseI64ArrayAttr>(value), "an array of i64");
  if (name == kQuadsAttr && isa<FunctionOpInterface>(op)) {
    const int64_t most = machineOf(op->getContext()).quadCount();
    return unless(isNumber(value, 1, most), "an i64 from 1 to " + std::to_string(most));
  }
  if (name == kQuadsAttr || name == kBatchAttr || name == kTableAttr || name == kBiasAttr || name == kBandsAttr)
    return unless(isa<UnitAttr>(value), "unit");
  if (name == kTilesAttr)
    return unless(isNumber(value, 1), "an i64 of at least 1");
  if (name == kStateAttr)
    return unless(isNumber(value, 0), "an i64 of at least 0");
  if (name == kOrderAttr)
    return unless(isa<DenseI64ArrayAttr>(value), "an array of i64");
  if (name == kFormAttr)
    return unless(isa<DictionaryAttr>(value), "a dictionary");
  auto type = dyn_cast<TypeAttr>(value);
  auto tensor = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
  return unless(name != kTypeAttr || (tensor && tensor.hasStaticShape()), "the type of a tensor of a static shape");
}

static LogicalResult check(Operation *op, NamedAttribute attribute, const Twine &whose = "") {
  std::string expected = expectedOf(op, attribute);
  return expected.empty() ? success()
                          : op->emitError() << whose << "has '" << attribute.getName().getValue()
                                            << "' = " << attribute.getValue() << "; it must be " << expected;
}

LogicalResult LLDMIRDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return check(op, attribute);
}
LogicalResult LLDMIRDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                      NamedAttribute attribute) {
  return check(op, attribute, "argument " + Twine(argument) + " ");
}
LogicalResult LLDMIRDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result,
                                                         NamedAttribute attribute) {
  return check(op, attribute, "result " + Twine(result) + " ");
}

//===--- what is decided ------------------------------------------------------------===//

Attribute DealAttr::parse(AsmParser &parser, Type) {
  const SMLoc where = parser.getCurrentLocation();
  int64_t dim = 0, quads = 0;
  if (parser.parseLess())
    return {};
  if (succeeded(parser.parseOptionalKeyword("whole")))
    dim = kWhole;
  else if (succeeded(parser.parseOptionalKeyword("sums")))
    dim = kSums;
  else if (parser.parseKeyword("dim") || parser.parseInteger(dim))
    return {};
  else if (dim < 0)
    return parser.emitError(where, "a deal is of a dim from 0 on"), Attribute();
  if (parser.parseComma() || parser.parseKeyword("quads") || parser.parseInteger(quads))
    return {};
  const bool folded = succeeded(parser.parseOptionalComma());
  if ((folded && parser.parseKeyword("folded")) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(where); }, parser.getContext(), dim, quads, folded);
}

void DealAttr::print(AsmPrinter &printer) const {
  printer << (isWhole() ? "<whole" : isSums() ? "<sums" : "<dim ");
  if (getDim() >= 0)
    printer << getDim();
  printer << ", quads " << getQuads() << (getFolded() ? ", folded>" : ">");
}

LogicalResult DealAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t dim, int64_t quads, bool folded) {
  if (folded && dim < 0)
    return emitError() << "parts of a dim are folded";
  if (quads < 1 || dim < kSums)
    return emitError() << "a deal is to one quad or more";
  return success();
}

static ParseResult parseNumber(AsmParser &parser, StringRef name, int64_t &value) {
  return failure(parser.parseKeyword(name) || parser.parseInteger(value));
}

/// What stands in a spread, which in a plan is behind its own numbers.
static SpreadAttr parseSpread(AsmParser &parser) {
  const SMLoc where = parser.getCurrentLocation();
  int64_t groups = 0, slices = 0, segment = 0;
  StringRef share;
  if (parseNumber(parser, "groups", groups) || parser.parseComma() || parseNumber(parser, "slices", slices) ||
      parser.parseComma() || parser.parseKeyword("share") || parser.parseKeyword(&share) || parser.parseComma() ||
      parseNumber(parser, "segment", segment))
    return {};
  return SpreadAttr::getChecked([&] { return parser.emitError(where); }, parser.getContext(), groups, slices, share,
                                segment);
}

static void printSpread(AsmPrinter &printer, SpreadAttr spread) {
  printer << "groups " << spread.getGroups() << ", slices " << spread.getSlices() << ", share " << spread.getShare()
          << ", segment " << spread.getSegment();
}

Attribute SpreadAttr::parse(AsmParser &parser, Type) {
  SpreadAttr spread = parser.parseLess() ? SpreadAttr() : parseSpread(parser);
  return spread && succeeded(parser.parseGreater()) ? spread : SpreadAttr();
}

void SpreadAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printSpread(printer, *this);
  printer << ">";
}

LogicalResult SpreadAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t groups, int64_t slices,
                                 StringRef share, int64_t segment) {
  if (groups < 1 || slices < 1 || segment < 1)
    return emitError() << "the numbers of a plan are positive";
  if (!llvm::is_contained({"columns", "rows", "batch"}, share))
    return emitError() << "slices share columns, rows or batch, not '" << share << "'";
  return success();
}

Attribute PlanAttr::parse(AsmParser &parser, Type) {
  const SMLoc where = parser.getCurrentLocation();
  int64_t imc = 0, ppr = 0;
  if (parser.parseLess() || parseNumber(parser, "num_imc", imc) || parser.parseComma() ||
      parseNumber(parser, "ppr_mode", ppr) || parser.parseComma())
    return {};
  SpreadAttr spread = parseSpread(parser);
  const bool windows = spread && succeeded(parser.parseOptionalComma());
  if (!spread || (windows && parser.parseKeyword("windows")) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(where); }, parser.getContext(), imc, ppr, spread, windows);
}

void PlanAttr::print(AsmPrinter &printer) const {
  printer << "<num_imc " << getNumImc() << ", ppr_mode " << getPprMode() << ", ";
  printSpread(printer, getSpread());
  printer << (getWindows() ? ", windows>" : ">");
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t imc, int64_t ppr, SpreadAttr,
                               bool) {
  return imc < 1 || ppr < 0 ? LogicalResult(emitError() << "the numbers of a plan are positive") : success();
}

//===--- matmul ---------------------------------------------------------------------===//

/// The block_fp of a group of equal tiles of two dimensions, or null.
static dmir::BlockFpType blocksOf(ValueRange tiles, bool columns) {
  if (!llvm::all_equal(tiles.getTypes()))
    return {};
  auto tile = cast<VecExtType>(tiles.front().getType());
  auto block = dyn_cast<dmir::BlockFpType>(tile.getElementType());
  return block && tile.getRank() == 2 && block.hasBlocks() && block.getColumns() == columns ? block
                                                                                            : dmir::BlockFpType();
}

std::optional<std::string> dmxc::lldmir::unfit(const dmx::corsair::Machine &machine, int64_t numImc, int64_t pprMode,
                                               SpreadAttr spread) {
  auto text = [](int64_t number) { return std::to_string(number); };
  const int64_t cores = machine.cores;
  if (pprMode < 0 || pprMode > machine.maxPprMode || numImc > int64_t(1) << pprMode || int64_t(1) << pprMode > cores)
    return "num_imc " + text(numImc) + " <= 2^ppr_mode " + text(pprMode) + " <= " + text(cores) +
           " cores of a slice does not hold";
  if (spread && (spread.getGroups() > 4 || spread.getGroups() * numImc > cores))
    return "groups is " + text(spread.getGroups()) + ": OB has room for four, and a slice has " + text(cores) +
           " cores";
  if (spread && spread.getSlices() > machine.slices)
    return "slices is " + text(spread.getSlices()) + ", a quad has " + text(machine.slices);
  return std::nullopt;
}

LogicalResult MatMulOp::verify() {
  const auto count = static_cast<int64_t>(getNumImc()), mode = static_cast<int64_t>(getPprMode());
  if (count < 1 || static_cast<int64_t>(getActivations().size()) != count ||
      static_cast<int64_t>(getWeights().size()) != count)
    return emitOpError("C1: num_imc ") << count << " needs as many activation and weight tiles, got "
                                       << getActivations().size() << " and " << getWeights().size();
  if (std::optional<std::string> why = unfit(machineOf(getContext()), count, mode, getSpreadAttr()))
    return emitOpError("C2: ") << *why;
  dmir::BlockFpType a = blocksOf(getActivations(), false), w = blocksOf(getWeights(), true);
  auto left = cast<VecExtType>(getActivations().front().getType()),
       right = cast<VecExtType>(getWeights().front().getType());
  if (!a || !w || a.getBlock() != w.getBlock() || a.getFormat().precision != w.getFormat().precision ||
      left.getShape()[1] != right.getShape()[0])
    return emitOpError("C3: needs equal tiles of block_fp R and of C, of equal p, block and depth, got ")
           << left << " and " << right;
  VecExtType result = getType();
  if (!dmir::isBfp32(result.getElementType()) || result.getRank() != 2 || result.getShape()[0] != left.getShape()[0] ||
      result.getShape()[1] != right.getShape()[1] || (getInit() && getInit().getType() != result))
    return emitOpError("C4: the result is a tile of BFP32_1, ") << left.getShape()[0] << " x " << right.getShape()[1];
  if (getRows() && (static_cast<int64_t>(*getRows()) < 1 || static_cast<int64_t>(*getRows()) > left.getShape()[0]))
    return emitOpError("C5: rows is 1 to ") << left.getShape()[0] << ", not " << static_cast<int64_t>(*getRows());
  return success();
}

//===--- simd, reshape ----------------------------------------------------------------===//

template <typename OpTy> static LogicalResult verifyUnit(OpTy op) {
  bool tiles = op.getOuts().empty();
  for (Value input : op.getInputs())
    if (tiles && !isa<VecExtType>(input.getType()))
      return op.emitOpError("C1: a memref is computed into another one, given by outs");
  if (tiles == op.getResults().empty())
    return op.emitOpError("C1: needs either results, from tiles, or outs");
  if (op.getFunction().empty())
    return op.emitOpError("C2: needs the name of a function");
  return success();
}

template <typename OpTy>
static void unitEffects(OpTy op, SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &input : op.getInputsMutable())
    if (isa<MemRefType>(input.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &input, SideEffects::DefaultResource::get());
  for (OpOperand &out : op.getOutsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &out, SideEffects::DefaultResource::get());
}

LogicalResult GatherOp::verify() {
  bool fits = getDeals().size() == getParts().size() && !getParts().empty();
  for (auto [part, deal] : llvm::zip(getParts(), getDeals())) {
    auto attribute = dyn_cast<DealAttr>(deal);
    fits &= attribute && attribute.getDim() >= 0 && attribute.getDim() < cast<ShapedType>(part.getType()).getRank();
  }
  if (!fits)
    return emitOpError("C1: needs a deal by one of its dims for each value");
  const bool buffers = isa<MemRefType>(getParts().front().getType());
  if (buffers ? !getWholes().empty() || getOuts().size() != getParts().size()
              : !getOuts().empty() || getWholes().getTypes() != getParts().getTypes())
    return emitOpError("C2: gives the whole of each tensor, or fills a whole for each buffer");
  for (auto [part, whole, deal] : llvm::zip(getParts(), getOuts(), getDeals())) {
    auto attribute = cast<DealAttr>(deal);
    SmallVector<int64_t> shape(cast<MemRefType>(part.getType()).getShape());
    shape[attribute.getDim()] *= attribute.getQuads();
    if (auto type = cast<MemRefType>(whole.getType()); type.getShape() != ArrayRef(shape))
      return emitOpError("C3: fills ") << type << " from shares that are " << part.getType() << " on "
                                       << attribute.getQuads() << " quads: rows are left to nobody, or overlap";
  }
  return success();
}

LogicalResult ConvOp::verify() {
  if (static_cast<bool>(getResult()) == static_cast<bool>(getOut()))
    return emitOpError("C1: has either a result, of tensors, or a buffer that it fills");
  auto image = cast<ShapedType>(getImage().getType());
  auto result = cast<ShapedType>(getOut() ? Type(getOut().getType()) : Type(getResult().getType()));
  const auto axes = static_cast<size_t>(image.getRank()) - 2;
  const bool ranked = image.getRank() == result.getRank() && (image.getRank() == 3 || image.getRank() == 4);
  auto positive = [](ArrayRef<int64_t> numbers) { return llvm::all_of(numbers, [](int64_t n) { return n > 0; }); };
  if (!ranked || getKernel().size() != axes || getStrides().size() != axes || getDilations().size() != axes ||
      getLow().size() != axes || !positive(getKernel()) || !positive(getStrides()) || !positive(getDilations()) ||
      static_cast<int64_t>(getGroups()) < 1)
    return emitOpError("C2: needs an image and a result of one rank, 3 or 4, and positive numbers a spatial axis");
  if (!getEpilogue() && getBeside().empty())
    return success();
  const auto beside = static_cast<int64_t>(getBeside().size());
  for (auto [number, unit] : llvm::enumerate(getEpilogue() ? getEpilogue()->getValue() : ArrayRef<Attribute>())) {
    auto all = dyn_cast<DictionaryAttr>(unit);
    auto inputs = all ? all.getAs<DenseI64ArrayAttr>("inputs") : DenseI64ArrayAttr();
    if (!inputs || inputs.empty() || !all.getAs<StringAttr>("function") || !all.getAs<DictionaryAttr>("parameters") ||
        llvm::any_of(inputs.asArrayRef(), [&, last = static_cast<int64_t>(number)](int64_t input) {
          return input >= last || input < -1 - beside;
        }))
      return emitOpError("C3: function ")
             << number << " of its epilogue is none of the sums, of functions before it and of what "
             << "lies beside: " << unit;
  }
  return getOut() && getEpilogue() && !getEpilogue()->empty()
             ? success()
             : LogicalResult(emitOpError("C3: has an epilogue of no buffer, or none for what lies beside"));
}

/// Of an op on buffers that fills `out` and reads its other operands; none on tensors.
static void fillEffects(Operation *op, Value out,
                        SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (!out)
    return;
  for (OpOperand &operand : op->getOpOperands())
    if (operand.get() == out)
      effects.emplace_back(MemoryEffects::Write::get(), &operand, SideEffects::DefaultResource::get());
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
}

void ConvOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  fillEffects(getOperation(), getOut(), effects);
}

LogicalResult SumOp::verify() {
  auto parts = cast<ShapedType>(getParts().getType());
  if (static_cast<bool>(getResult()) == static_cast<bool>(getOut()) || parts.getRank() < 1 || parts.getDimSize(0) < 2)
    return emitOpError("C1: has one result or fills one buffer, from two parts or more");
  auto sum = cast<ShapedType>(getOut() ? Type(getOut().getType()) : Type(getResult().getType()));
  if (sum.getShape() != parts.getShape().drop_front())
    return emitOpError("C1: makes ") << sum << " of parts that are " << parts;
  return success();
}

void SumOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  fillEffects(getOperation(), getOut(), effects);
}

void GatherOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &part : getPartsMutable())
    if (isa<MemRefType>(part.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &part, SideEffects::DefaultResource::get());
  for (OpOperand &whole : getOutsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &whole, SideEffects::DefaultResource::get());
}

LogicalResult SimdOp::verify() {
  if (getBound(kUpper) && getBound(kLower))
    return emitOpError("C3: has two bounds, and keeps one");
  if ((getRow() || getBound(kFolded)) && !masks())
    return emitOpError("C3: has a row, but keeps no diagonals");
  return verifyUnit(*this);
}
LogicalResult ReshapeOp::verify() { return verifyUnit(*this); }
LogicalResult ExternOp::verify() { return verifyUnit(*this); }
void SimdOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  unitEffects(*this, effects);
}
void ExternOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  unitEffects(*this, effects);
}
void ReshapeOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  unitEffects(*this, effects);
}
