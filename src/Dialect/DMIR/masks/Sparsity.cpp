//===- Sparsity.cpp - what is known of tensors, and demanded --------------===//
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/masks/Columns.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static LogicalResult verifySets(llvm::function_ref<InFlightDiagnostic()> error, ArrayAttr keep, Attribute dims) {
  constexpr size_t most = 16;
  if (dims && !isa<DimsAttr>(dims))
    return error() << "C1: dims are #dmir.dims<...>, not " << dims;
  size_t symbols = dims ? cast<DimsAttr>(dims).getDims().size() : 0;
  if (keep.size() > most)
    return error() << "C1: at most 16 sets, not " << keep.size();
  for (Attribute attr : keep) {
    auto set = dyn_cast<IntegerSetAttr>(attr);
    if (!set)
      return error() << "C1: what is kept are integer sets, not " << attr;
    IntegerSet one = set.getValue(), first = cast<IntegerSetAttr>(keep[0]).getValue();
    if (one.getNumDims() != first.getNumDims() || one.getNumSymbols() != symbols || one.getNumConstraints() > most)
      return error() << "C1: a set has " << one.getNumDims() << " dims, " << one.getNumSymbols() << " symbols and "
                     << one.getNumConstraints() << " conditions; the first has " << first.getNumDims()
                     << " dims, there are " << symbols << " dims, and 16 conditions are the most";
    for (AffineExpr expr : one.getConstraints())
      if (std::string fault = faultOf(expr); !fault.empty())
        return error() << fault;
  }
  return success();
}

LogicalResult KnownAttr::verify(llvm::function_ref<InFlightDiagnostic()> error, ArrayAttr keep, Attribute value,
                                Attribute dims) {
  if (!isa<FloatAttr, IntegerAttr>(value))
    return error() << "C4: a value is a number, not " << value;
  return verifySets(error, keep, dims);
}

LogicalResult DemandedAttr::verify(llvm::function_ref<InFlightDiagnostic()> error, ArrayAttr keep, Attribute dims) {
  return verifySets(error, keep, dims);
}

static ArrayAttr setsOf(const Rule &rule, MLIRContext *context) {
  SmallVector<Attribute> sets;
  for (IntegerSet set : rule.cases)
    sets.push_back(IntegerSetAttr::get(set));
  return ArrayAttr::get(context, sets);
}

static Rule setsAsRule(ArrayAttr keep, Attribute dims) {
  Rule rule;
  if (auto own = dyn_cast_or_null<DimsAttr>(dims))
    rule.dims.assign(own.getDims().begin(), own.getDims().end());
  llvm::append_range(rule.cases, keep.getAsValueRange<IntegerSetAttr>());
  rule.rank = rule.cases.empty() ? 0 : rule.cases[0].getNumDims();
  return rule;
}

KnownAttr dmir::attrOf(const Known &known, Type element, MLIRContext *context) {
  Attribute value = isa<FloatType>(element) ? Attribute(FloatAttr::get(element, known.value))
                                            : Attribute(IntegerAttr::get(element, static_cast<int64_t>(known.value)));
  return KnownAttr::get(context, setsOf(known.keep, context), value, dimsAttr(context, known.keep.dims));
}

DemandedAttr dmir::attrOf(const Demand &demand, MLIRContext *context) {
  return DemandedAttr::get(context, setsOf(demand.keep, context), dimsAttr(context, demand.keep.dims));
}

Known dmir::fromAttr(KnownAttr attr) {
  auto real = dyn_cast<FloatAttr>(attr.getValue());
  auto integer = dyn_cast<IntegerAttr>(attr.getValue());
  double value = real                                    ? real.getValueAsDouble()
                 : integer.getType().isInteger(1)        ? static_cast<double>(!integer.getValue().isZero())
                 : integer.getType().isUnsignedInteger() ? static_cast<double>(integer.getValue().getZExtValue())
                                                         : static_cast<double>(integer.getValue().getSExtValue());
  return {setsAsRule(attr.getKeep(), attr.getDims()), value};
}

Demand dmir::fromAttr(DemandedAttr attr) { return {setsAsRule(attr.getKeep(), attr.getDims())}; }

/// What keeps a fact from being one about a tensor of this type; "" where it may be one.
static std::string faultOfFact(Attribute fact, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto known = dyn_cast<KnownAttr>(fact);
  ArrayAttr keep = known ? known.getKeep() : cast<DemandedAttr>(fact).getKeep();
  if (!tensor)
    return "is about no tensor";
  if (!keep.empty())
    if (unsigned rank = cast<IntegerSetAttr>(keep[0]).getValue().getNumDims(); rank != tensor.getRank())
      return "has sets over " + std::to_string(rank) + " dims, of a tensor of rank " + std::to_string(tensor.getRank());
  Type own = known ? cast<TypedAttr>(known.getValue()).getType() : tensor.getElementType();
  return own == tensor.getElementType() ? "" : "has a value of another type than the tensor's elements";
}

LogicalResult dmir::checkSparsity(Operation *op) {
  auto facts = op->getAttrOfType<DictionaryAttr>(kSparsityAttr);
  if (!facts)
    return isa<ModuleOp>(op) ? success() : op->emitError("has a 'dmir.sparsity' that is a text, as modules have it");
  auto operands = facts.getAs<ArrayAttr>(kOperandsKey);
  auto types = [&]() -> SmallVector<Type> {
    if (isa<RegionOp>(op))
      return SmallVector<Type>(op->getOperandTypes());
    bool isBody = op->getNumOperands() == 0 && op->getNumRegions() == 1 && !op->getRegion(0).empty();
    return isBody ? SmallVector<Type>(op->getRegion(0).getArgumentTypes()) : SmallVector<Type>();
  }();
  if (operands && operands.size() != types.size())
    return op->emitError("has facts of ") << operands.size() << " operands in 'dmir.sparsity'; it has " << types.size();
  for (size_t i = 0; operands && i < operands.size(); ++i)
    if (std::string fault = isa<KnownAttr>(operands[i]) ? faultOfFact(operands[i], types[i]) : ""; !fault.empty())
      return op->emitError("the fact of operand ") << i << " in 'dmir.sparsity' " << fault;
  for (StringRef key : {kKnownKey, kDemandedKey})
    if (Attribute fact = facts.get(key)) {
      if (op->getNumResults() != 1 || isa<RegionOp>(op))
        return op->emitError("has a fact of a result in 'dmir.sparsity', and is no op with one result");
      if (std::string fault = faultOfFact(fact, op->getResult(0).getType()); !fault.empty())
        return op->emitError("the fact '") << key << "' in 'dmir.sparsity' " << fault;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The fact under a key; for an operand of a kernel, which stands alone, what the kernel says of it.
static Attribute factOf(Value value, StringRef key) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (auto region = dyn_cast<RegionOp>(owner))
      return factOf(region->getOperand(argument.getArgNumber()), key);
    auto facts = owner->getAttrOfType<DictionaryAttr>(kSparsityAttr);
    auto operands = facts ? facts.getAs<ArrayAttr>(kOperandsKey) : ArrayAttr();
    bool has = key == kKnownKey && operands && argument.getArgNumber() < operands.size();
    return has ? operands[argument.getArgNumber()] : Attribute();
  }
  Operation *op = value.getDefiningOp();
  if (auto region = dyn_cast<RegionOp>(op))
    return factOf(region.getYield()->getOperand(cast<OpResult>(value).getResultNumber()), key);
  auto facts = op->getNumResults() == 1 ? op->getAttrOfType<DictionaryAttr>(kSparsityAttr) : DictionaryAttr();
  return facts ? facts.get(key) : Attribute();
}

template <typename Attr> static auto readFact(Value value, StringRef key) {
  auto attr = dyn_cast_or_null<Attr>(factOf(value, key));
  using Fact = decltype(fromAttr(attr));
  if (!attr)
    return std::optional<Fact>();
  Fact fact = fromAttr(attr);
  fact.keep.rank = typeOf(value).getRank();
  return std::optional<Fact>(fact);
}

std::optional<Known> dmir::knownOf(Value value) { return readFact<KnownAttr>(value, kKnownKey); }
std::optional<Demand> dmir::demandOf(Value value) { return readFact<DemandedAttr>(value, kDemandedKey); }

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> dmir::symbolsOf(const Rule &rule) {
  SmallVector<int64_t> numbers;
  for (Dim dim : rule.dims) {
    if (!dim.known())
      return std::nullopt;
    numbers.push_back(*dim.known());
  }
  return rule.values.empty() ? std::optional(numbers) : std::nullopt;
}

bool dmir::keepsNothing(const Rule &rule, ArrayRef<Interval> box, ArrayRef<int64_t> symbols) {
  return classify(rule, box, symbols) == TileKind::Empty;
}

Run dmir::keptColumns(const Rule &rule, ArrayRef<Interval> rows, int64_t columns, ArrayRef<int64_t> symbols) {
  if (rule.cases.empty())
    return {0, 0};
  SmallVector<std::pair<int64_t, int64_t>> bounds;
  for (Interval row : rows)
    bounds.emplace_back(row.min, row.max);
  auto range = Columns<int64_t>(plainIntegers(), bounds, symbols, columns).of(rule);
  int64_t first = std::clamp<int64_t>(range.first, 0, columns), last = std::clamp<int64_t>(range.last, 0, columns);
  return first < last ? Run{first, last} : Run{0, 0};
}

Rule dmir::transposed(const Rule &rule) {
  Rule result = rule;
  result.cases.clear();
  for (IntegerSet set : rule.cases) {
    SmallVector<AffineExpr> dims;
    for (unsigned axis = 0; axis < rule.rank; ++axis)
      dims.push_back(getAffineDimExpr(axis, set.getContext()));
    std::swap(dims[rule.rank - 1], dims[rule.rank - 2]);
    Conditions conditions;
    for (const Condition &condition : conditionsOf(set))
      conditions.push_back({condition.expr.replaceDims(dims), condition.isEq});
    result.cases.push_back(caseOf(rule.rank, set.getNumSymbols(), conditions));
  }
  return result;
}

Run dmir::keptRows(const Rule &rule, ArrayRef<Interval> outer, Interval columns, int64_t rows,
                   ArrayRef<int64_t> symbols) {
  SmallVector<Interval> bounds(outer);
  bounds.push_back(columns);
  return keptColumns(transposed(rule), bounds, rows, symbols);
}

SmallVector<Run> dmir::keptColumnRuns(const Rule &rule, ArrayRef<Interval> rows, int64_t columns, int64_t granule,
                                      ArrayRef<int64_t> symbols) {
  auto [first, last] = keptColumns(rule, rows, columns, symbols);
  SmallVector<Interval> box(rows);
  box.push_back({0, 0});
  SmallVector<Run> runs;
  for (int64_t at = first / granule * granule; at < last; at += granule) {
    box.back() = {at, std::min(at + granule, columns) - 1};
    if (keepsNothing(rule, box, symbols))
      continue;
    if (!runs.empty() && runs.back().second == at)
      runs.back().second = box.back().max + 1;
    else
      runs.emplace_back(at, box.back().max + 1);
  }
  return runs;
}

SmallVector<Run> dmir::keptRowRuns(const Rule &rule, ArrayRef<Interval> outer, Interval columns, int64_t rows,
                                   int64_t granule, ArrayRef<int64_t> symbols) {
  SmallVector<Interval> bounds(outer);
  bounds.push_back(columns);
  return keptColumnRuns(transposed(rule), bounds, rows, granule, symbols);
}
