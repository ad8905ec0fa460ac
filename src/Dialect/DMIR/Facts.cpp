//===- Facts.cpp - what the dialect keeps on ops of others ----------------===//
//
// Facts of the whole model, of functions and of tensors are attributes of modules, functions and their arguments. Who
// reads one takes it for what its writer made; a text may hold anything, and this is where that is found out.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/Forms.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/Text.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace dmxc::dmir {

namespace {

using Fits = bool (*)(Attribute);

bool isText(Attribute attr) { return isa_and_nonnull<StringAttr>(attr); }
bool isDictionary(Attribute attr) { return isa_and_nonnull<DictionaryAttr>(attr); }
bool isUnit(Attribute attr) { return isa_and_nonnull<UnitAttr>(attr); }
bool isNumber(Attribute attr) {
  auto number = dyn_cast_or_null<IntegerAttr>(attr);
  return number && number.getType().isSignlessInteger(64);
}
bool isCount(Attribute attr) { return isNumber(attr) && cast<IntegerAttr>(attr).getInt() >= 0; }
bool isDim(Attribute attr) {
  auto dims = dyn_cast_or_null<DimsAttr>(attr);
  return isNumber(attr) || (dims && dims.getDims().size() == 1);
}
bool isReal(Attribute attr) {
  auto number = dyn_cast_or_null<FloatAttr>(attr);
  return number && number.getType().isF64();
}

template <Fits fits> bool isListOf(Attribute attr) {
  auto list = dyn_cast_or_null<ArrayAttr>(attr);
  return list && llvm::all_of(list, fits);
}
template <Fits fits> bool isTableOf(Attribute attr) {
  auto table = dyn_cast_or_null<DictionaryAttr>(attr);
  return table && llvm::all_of(table, [](NamedAttribute entry) { return fits(entry.getValue()); });
}

bool isTreeTiles(Attribute attr) {
  return isCount(attr) && cast<IntegerAttr>(attr).getInt() >= 1 && cast<IntegerAttr>(attr).getInt() <= 64;
}

bool isRange(Attribute attr) {
  auto range = dyn_cast_or_null<DenseI64ArrayAttr>(attr);
  return range && range.size() == 2 && range[0] >= 0 && range[0] <= range[1];
}
bool isValue(Attribute attr) { return isText(attr) || isNumber(attr) || isReal(attr); }
bool isShare(Attribute attr) {
  auto share = dyn_cast<DictionaryAttr>(attr);
  return share && isText(share.get("target")) && isText(share.get("reason")) && isCount(share.get("nodes"));
}
bool isMasks(Attribute attr) {
  auto masks = dyn_cast<DictionaryAttr>(attr);
  return masks && isListOf<isTableOf<isValue>>(masks.get("attentions")) && isText(masks.get("summary"));
}
bool isRounded(Attribute attr) {
  auto rounded = dyn_cast<DictionaryAttr>(attr);
  return rounded && isCount(rounded.get("bytes")) && isCount(rounded.get("kept")) &&
         isa_and_nonnull<FloatAttr>(rounded.get("error"));
}
/// Of modules and of ops: checkSparsity says what is wrong with the latter.
bool isSparsity(Attribute attr) { return isText(attr) || isa<DictionaryAttr>(attr); }
bool isConstraint(Attribute attr) {
  auto entry = dyn_cast<DictionaryAttr>(attr);
  return entry && constraintOf(attr) && isDim(entry.get("lhs")) && isDim(entry.get("rhs"));
}
/// Each made of those before it and of symbols that are none of them, or reading one would not end.
bool areComputedDims(Attribute attr) {
  llvm::StringSet<> names, read;
  for (Attribute row : isa<ArrayAttr>(attr) ? cast<ArrayAttr>(attr).getValue() : ArrayRef<Attribute>()) {
    auto pair = dyn_cast<ArrayAttr>(row);
    if (!pair || pair.size() != 2 || !isText(pair[0]) || !isDim(pair[1]))
      return false;
    dimOfAttr(pair[1]).forEachSymbol([&](std::string_view symbol) { read.insert(symbol); });
    StringRef name = cast<StringAttr>(pair[0]).getValue();
    if (read.contains(name) || !names.insert(name).second)
      return false;
  }
  return isa<ArrayAttr>(attr);
}

struct Fact {
  StringRef name;
  Fits fits;
  const char *is;
};

constexpr char
    kText[] = "a text",
    kUnit[] = "unit", kCount[] = "an i64 of at least 0",
    kConstraints[] =
        "an array of {rel, lhs, rhs, text}: two dims and the relation eq, le, broadcast or broadcast_to between them";

const Fact facts[] = {
    {kModelNameAttr, isText, kText},
    {kMetadataAttr, isTableOf<isText>, "a dictionary of texts"},
    {kDimsAttr, isTableOf<isRange>, "a dictionary of array<i64: MIN, MAX> with 0 <= MIN <= MAX"},
    {kNodesAttr, isCount, kCount},
    {kPlacementAttr, isListOf<isShare>, "an array of {target = TEXT, nodes = COUNT, reason = TEXT}"},
    {kFormatsAttr, isListOf<isTableOf<isText>>, "an array of dictionaries of texts"},
    {kMasksAttr, isMasks, "{attentions = ARRAY OF DICTIONARIES, summary = TEXT}"},
    {kSparsityAttr, isSparsity, "a text on modules, and a dictionary of facts on ops"},
    {kProductAttr, isDictionary, "a dictionary of what a strategy says of a product"},
    {kComputedDimsAttr, areComputedDims, "an array of [NAME, #dmir.dims<EXPRESSION>], each of names before it"},
    {kConstraintsAttr, isListOf<isConstraint>, kConstraints},
    {kAssumedAttr, isListOf<isConstraint>, kConstraints},
    {kArenasAttr, isListOf<isArena>,
     "an array of {size = COUNT, lower_bound = COUNT}, with unit = #dmir.dims<EXPRESSION> where they are multiples of "
     "that"},
    {kNameAttr, isText, kText},
    {kDescriptionAttr, isText, kText},
    {kStateAttr, isText, kText},
    {kMaskFromAttr, isText, kText},
    {kMaskUnknownAttr, isText, kText},
    {kRoundedAttr, isRounded, "{bytes = COUNT, kept = COUNT, error = FLOAT}"},
    {kRoundsTwiceAttr, isUnit, kUnit},
    {kRoundsWeightsAttr, isUnit, kUnit},
    {kKeepsPrecisionAttr, isUnit, kUnit},
    {kRequirementAttr, isUnit, kUnit},
    {kRowsAttr, isCount, kCount},
    {kTreeTilesAttr, isTreeTiles, "an i64 from 1 to 64"},
};

LogicalResult check(Operation *op, const std::string &whose, NamedAttribute attribute) {
  const Fact *fact = llvm::find_if(facts, [&](const Fact &row) { return attribute.getName() == row.name; });
  if (fact == std::end(facts))
    return success();
  if (fact->fits(attribute.getValue()))
    return fact->name == kSparsityAttr ? checkSparsity(op) : success();
  std::string got;
  llvm::raw_string_ostream(got) << attribute.getValue();
  constexpr size_t longest = 120;
  return op->emitError() << whose << "has '" << fact->name << "' = " << got.substr(0, longest)
                         << (got.size() > longest ? "..." : "") << "; it must be " << fact->is;
}

} // namespace

bool isArena(Attribute attr) {
  auto arena = dyn_cast<DictionaryAttr>(attr);
  Attribute unit = arena ? arena.get("unit") : Attribute();
  return arena && isCount(arena.get("size")) && isCount(arena.get("lower_bound")) && (!unit || isDim(unit));
}

/// An encoding that says what the type's extents are: dims, a layout, or both.
static bool isEncoding(RankedTensorType type, Attribute encoding) {
  auto part = [&](Attribute attr) {
    auto blocked = dyn_cast<BlockedAttr>(attr);
    auto dims = dyn_cast<DimsAttr>(attr);
    return (dims && dims.getDims().size() <= type.getNumDynamicDims()) ||
           (blocked && blocked.getAxis() >= 0 && blocked.getAxis() < type.getRank() && blocked.getBlock() > 0);
  };
  auto parts = dyn_cast<ArrayAttr>(encoding);
  return parts ? parts.size() == 2 && isa<DimsAttr>(parts[0]) && isa<BlockedAttr>(parts[1]) && llvm::all_of(parts, part)
               : part(encoding);
}

/// What callers bind is as they have it, and what they bind by name has a name of its own; states are no such.
static LogicalResult checkNames(FunctionOpInterface function) {
  for (ArrayRef<Type> all : {function.getArgumentTypes(), function.getResultTypes()})
    for (Type type : all)
      if (formBytesOf(type))
        return function.emitError() << "takes or gives " << type
                                    << ", the form of a target that only its regions hand over";
  auto check = [&](StringRef what, unsigned count, auto get) -> LogicalResult {
    llvm::StringSet<> names;
    for (unsigned i = 0; i < count; ++i) {
      auto name = get(i, kNameAttr) ? dyn_cast<StringAttr>(get(i, kNameAttr)) : StringAttr();
      if (name && !get(i, kStateAttr) && !names.insert(name.getValue()).second)
        return function.emitError() << "two " << what << " have the '" << kNameAttr << "' \"" << name.getValue()
                                    << "\"";
    }
    return success();
  };
  if (function.isPrivate())
    return success();
  return failure(failed(check("arguments", function.getNumArguments(),
                              [&](unsigned i, StringRef name) { return function.getArgAttr(i, name); })) ||
                 failed(check("results", function.getNumResults(),
                              [&](unsigned i, StringRef name) { return function.getResultAttr(i, name); })));
}

LogicalResult checkFacts(ModuleOp module) {
  RankedTensorType wrong;
  AttrTypeWalker types;
  types.addWalk([&](RankedTensorType type) {
    if (type.getEncoding() && !formBytesOf(type) && !isEncoding(type, type.getEncoding()))
      wrong = type;
    return wrong ? WalkResult::interrupt() : WalkResult::advance();
  });
  WalkResult done = module.walk([&](Operation *op) {
    types.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      types.walk(type);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          types.walk(type);
    if (wrong) {
      op->emitError()
          << "the encoding of " << wrong
          << " is neither #dmir.dims of its dynamic dims nor #dmir.blocked of one of its axes, nor a form with `bytes` "
             "for all of it";
      return WalkResult::interrupt();
    }
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (failed(check(op, "", attribute)))
        return WalkResult::interrupt();
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function)
      return WalkResult::advance();
    if (failed(checkNames(function)))
      return WalkResult::interrupt();
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (NamedAttribute attribute : function.getArgAttrs(i))
        if (failed(check(op, "argument " + std::to_string(i) + " ", attribute)))
          return WalkResult::interrupt();
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      for (NamedAttribute attribute : function.getResultAttrs(i))
        if (failed(check(op, "result " + std::to_string(i) + " ", attribute)))
          return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(done.wasInterrupted());
}

} // namespace dmxc::dmir
