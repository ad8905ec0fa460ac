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

static ArrayAttr setsOf(const Rule &rule, MLIRContext *context) {
  SmallVector<Attribute> sets;
  for (IntegerSet set : rule.cases)
    sets.push_back(IntegerSetAttr::get(set));
  return ArrayAttr::get(context, sets);
}

static DictionaryAttr factAttr(const Rule &rule, Attribute value, MLIRContext *context) {
  NamedAttrList entries;
  entries.set("keep", setsOf(rule, context));
  if (value)
    entries.set("value", value);
  if (DimsAttr dims = dimsAttr(context, rule.dims))
    entries.set("dims", dims);
  return entries.getDictionary(context);
}

DictionaryAttr dmir::attrOf(const Known &known, Type element) {
  Attribute value = isa<FloatType>(element) ? Attribute(FloatAttr::get(element, known.value))
                                            : Attribute(IntegerAttr::get(element, static_cast<int64_t>(known.value)));
  return factAttr(known.keep, value, element.getContext());
}

DictionaryAttr dmir::attrOf(const Demand &demand, MLIRContext *context) { return factAttr(demand.keep, {}, context); }

static double numberOf(Attribute value) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return real.getValueAsDouble();
  auto integer = cast<IntegerAttr>(value);
  return integer.getType().isInteger(1) ? static_cast<double>(!integer.getValue().isZero())
                                        : static_cast<double>(integer.getValue().getSExtValue());
}

/// The constraint that the sets of a fact break; "" for good ones.
static std::string faultOfSets(ArrayAttr keep, size_t dims, size_t rank) {
  constexpr size_t most = 16;
  if (keep.size() > most)
    return "C1: has " + std::to_string(keep.size()) + " sets; 16 are the most";
  for (Attribute attr : keep) {
    auto set = dyn_cast<IntegerSetAttr>(attr);
    if (!set)
      return "C1: keeps something else than integer sets";
    IntegerSet one = set.getValue();
    if (one.getNumDims() != rank || one.getNumSymbols() != dims || one.getNumConstraints() > most)
      return "C1: has a set over " + std::to_string(one.getNumDims()) + " dims and " +
             std::to_string(one.getNumSymbols()) + " symbols with " + std::to_string(one.getNumConstraints()) +
             " conditions, of a tensor of rank " + std::to_string(rank) + " with " + std::to_string(dims) +
             " 'dims'; 16 conditions are the most";
    for (AffineExpr expr : one.getConstraints())
      if (std::string fault = faultOf(expr); !fault.empty())
        return fault;
  }
  return "";
}

/// What keeps an entry from being a fact about a tensor of this type; "" where it is one.
static std::string faultOfFact(StringRef key, Attribute fact, Type type) {
  auto entries = dyn_cast<DictionaryAttr>(fact);
  auto keep = entries ? entries.getAs<ArrayAttr>("keep") : ArrayAttr();
  bool isKnown = key == kKnownKey;
  Attribute dims = entries ? entries.get("dims") : Attribute();
  auto value = entries ? entries.getAs<TypedAttr>("value") : TypedAttr();
  if (!keep || (dims && !isa<DimsAttr>(dims)) || static_cast<bool>(entries.get("value")) != isKnown ||
      entries.size() != 1u + isKnown + static_cast<bool>(dims))
    return std::string("C1: is none: it must be {keep = [affine_set<...>, ...]") + (isKnown ? ", value = NUMBER" : "") +
           "}, with dims = #dmir.dims<...> where sets have symbols";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "is about no tensor";
  if (isKnown && (!isa<FloatAttr, IntegerAttr>(value) || value.getType() != tensor.getElementType()))
    return "C4: has a value that is no number of the tensor's elements' type";
  return faultOfSets(keep, dims ? cast<DimsAttr>(dims).getDims().size() : 0, tensor.getRank());
}

/// Those of a region, or of a kernel, whose body has them as arguments.
static LogicalResult checkOperands(Operation *op, Attribute attr) {
  bool isBody = op->getNumOperands() == 0 && op->getNumRegions() == 1 && !op->getRegion(0).empty();
  SmallVector<Type> types = isa<RegionOp>(op) ? SmallVector<Type>(op->getOperandTypes())
                            : isBody          ? SmallVector<Type>(op->getRegion(0).getArgumentTypes())
                                              : SmallVector<Type>();
  auto operands = dyn_cast<ArrayAttr>(attr);
  if (!operands || operands.size() != types.size())
    return op->emitError("has no fact or 'unit' for each of ") << types.size() << " operands in 'dmir.sparsity'";
  for (auto [i, operand] : llvm::enumerate(operands))
    if (std::string fault = isa<UnitAttr>(operand) ? "" : faultOfFact(kKnownKey, operand, types[i]); !fault.empty())
      return op->emitError("the fact of operand ") << i << " in 'dmir.sparsity' " << fault;
  return success();
}

LogicalResult dmir::checkSparsity(Operation *op) {
  auto facts = op->getAttrOfType<DictionaryAttr>(kSparsityAttr);
  if (!facts)
    return isa<ModuleOp>(op) ? success() : op->emitError("has a 'dmir.sparsity' that is a text, as modules have it");
  bool hasOne = op->getNumResults() == 1 && !isa<RegionOp>(op);
  for (NamedAttribute entry : facts) {
    if (entry.getName() == kOperandsKey) {
      if (failed(checkOperands(op, entry.getValue())))
        return failure();
      continue;
    }
    if (entry.getName() != kKnownKey && entry.getName() != kDemandedKey)
      return op->emitError("has '") << entry.getName().getValue()
                                    << "' in 'dmir.sparsity'; known, demanded and operands are what is there";
    if (!hasOne)
      return op->emitError("has a fact of a result in 'dmir.sparsity', and is no op with one result");
    if (std::string fault = faultOfFact(entry.getName(), entry.getValue(), op->getResult(0).getType()); !fault.empty())
      return op->emitError("the fact '") << entry.getName().getValue() << "' in 'dmir.sparsity' " << fault;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value dmir::acrossRegions(Value value) {
  for (;;) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto outer = argument ? dyn_cast<RegionOp>(argument.getOwner()->getParentOp()) : RegionOp();
    auto inner = argument ? RegionOp() : value.getDefiningOp<RegionOp>();
    if (!outer && !inner)
      return value;
    value = outer ? outer->getOperand(argument.getArgNumber())
                  : inner.getYield()->getOperand(cast<OpResult>(value).getResultNumber());
  }
}

/// The fact under a key; of an operand of a kernel, which stands alone, what the kernel says of it.
static Attribute factOf(Value value, StringRef key) {
  value = acrossRegions(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto facts = argument.getOwner()->getParentOp()->getAttrOfType<DictionaryAttr>(kSparsityAttr);
    auto operands = facts ? facts.getAs<ArrayAttr>(kOperandsKey) : ArrayAttr();
    bool has = key == kKnownKey && operands && argument.getArgNumber() < operands.size();
    return has ? operands[argument.getArgNumber()] : Attribute();
  }
  Operation *op = value.getDefiningOp();
  auto facts = op->getNumResults() == 1 ? op->getAttrOfType<DictionaryAttr>(kSparsityAttr) : DictionaryAttr();
  return facts ? facts.get(key) : Attribute();
}

static Rule ruleOfFact(DictionaryAttr fact, Value value) {
  Rule rule;
  if (auto dims = fact.getAs<DimsAttr>("dims"))
    rule.dims.assign(dims.getDims().begin(), dims.getDims().end());
  llvm::append_range(rule.cases, fact.getAs<ArrayAttr>("keep").getAsValueRange<IntegerSetAttr>());
  rule.rank = typeOf(value).getRank();
  return rule;
}

std::optional<Known> dmir::knownOf(Value value) {
  auto fact = dyn_cast_or_null<DictionaryAttr>(factOf(value, kKnownKey));
  return fact ? std::optional(Known{ruleOfFact(fact, value), numberOf(fact.get("value"))}) : std::nullopt;
}

std::optional<Demand> dmir::demandOf(Value value) {
  auto fact = dyn_cast_or_null<DictionaryAttr>(factOf(value, kDemandedKey));
  return fact ? std::optional(Demand{ruleOfFact(fact, value)}) : std::nullopt;
}

void dmir::keepFactsOfOperands(RegionOp region, Operation *kernel) {
  Builder b(region.getContext());
  SmallVector<Attribute> facts;
  for (Value operand : region.getInputs()) {
    Attribute fact = factOf(operand, kKnownKey);
    facts.push_back(fact ? fact : Attribute(b.getUnitAttr()));
  }
  if (llvm::all_of(facts, [](Attribute fact) { return isa<UnitAttr>(fact); }))
    return;
  NamedAttrList all(b.getNamedAttr(kOperandsKey, b.getArrayAttr(facts)));
  kernel->setAttr(kSparsityAttr, all.getDictionary(region.getContext()));
}

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
  auto range = Columns<int64_t>(plainIntegers(), bounds, pointsOf(symbols), columns).of(rule);
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
