//===- Match.cpp - transform.dmx.match ------------------------------------===//
#include "dmxc/Dialect/Transform/Transform.h"

#include "dmxc/Support/Diagnostic.h"
#include "loops/Nest.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <fnmatch.h>
#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;

namespace {

const std::vector<std::string> kKeys = {"kind", "op", "node", "where", "device", "algorithm", "nth"};
const std::vector<std::string> kKinds = {"region", "op", "product", "loop", "nest"};

bool globMatches(StringRef glob, const std::string &text) { return fnmatch(glob.str().c_str(), text.c_str(), 0) == 0; }

bool isComputed(Operation &op) {
  return isa_and_nonnull<dmir::DMIRDialect>(op.getDialect()) && !isa<dmir::ConstantOp, dmir::YieldOp>(op);
}

std::string attrText(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

/// "2", "[3, 3]": without types, so that [3, 3] in a script is the same as array<i64: 3, 3> in a model.
std::string plainText(Attribute attr) {
  std::string text;
  auto list = [&](auto range, auto one) {
    for (auto element : range)
      text += (text.empty() ? "" : ", ") + one(element);
    return "[" + text + "]";
  };
  if (auto array = dyn_cast<DenseI64ArrayAttr>(attr))
    return list(array.asArrayRef(), [](int64_t value) { return std::to_string(value); });
  if (auto array = dyn_cast<ArrayAttr>(attr))
    return list(array, [](Attribute value) { return plainText(value); });
  if (auto integer = dyn_cast<IntegerAttr>(attr); integer && !integer.getType().isInteger(1))
    return valueText(attr);
  return attrText(attr);
}

/// What a match asks for.
class Filter {
public:
  Filter(MatchOp op) : op(op), filter(op.getFilter()) {
    if (auto where = filter.getAs<DictionaryAttr>("where"))
      attributes = where;
  }

  StringRef text(StringRef key) const {
    auto value = filter.getAs<StringAttr>(key);
    return value ? value.getValue() : StringRef();
  }
  bool ofLoops() const { return text("kind") == "loop" || text("kind") == "nest"; }
  bool ofRegions() const { return text("kind").empty() || text("kind") == "region"; }
  /// "no region", "1 op", "2 products".
  std::string counted(size_t count) const;
  /// Whether an op is of the kind that is asked for.
  bool isCandidate(Operation &op) const;

  /// The properties that a candidate lacks, with what it has in their place.
  SmallVector<std::string> lacking(Operation *candidate) const;

private:
  bool hasOp(Operation &inner) const { return text("op").empty() || inner.getName().getStringRef() == text("op"); }
  bool hasNode(Operation &inner) const {
    return text("node").empty() || globMatches(text("node"), dmir::nodeName(&inner));
  }
  /// The first of `where` that an op lacks, with its own value; nullopt where it has all.
  std::optional<std::string> lacksWhere(Operation &inner) const;

  MatchOp op;
  DictionaryAttr filter, attributes;
};

std::optional<std::string> Filter::lacksWhere(Operation &inner) const {
  if (!attributes)
    return std::nullopt;
  for (NamedAttribute wanted : attributes) {
    Attribute own = inner.getAttr(wanted.getName());
    if (!own)
      return "no " + wanted.getName().str();
    if (plainText(own) != plainText(wanted.getValue()))
      return wanted.getName().str() + " = " + plainText(own);
  }
  return std::nullopt;
}

bool Filter::isCandidate(Operation &op) const {
  if (ofLoops())
    return isa<affine::AffineForOp, scf::ForOp>(op) && (text("kind") == "loop" || isNest(&op));
  bool region = isa<dmir::RegionOp>(op);
  return ofRegions() ? region : !region && isComputed(op) && (text("kind") == "op" || isProduct(&op));
}

std::string Filter::counted(size_t count) const {
  std::string what = ofRegions() ? "region" : text("kind").str();
  return count ? std::to_string(count) + " " + what + (count == 1 ? "" : "s") : "no " + what;
}

SmallVector<std::string> Filter::lacking(Operation *candidate) const {
  SmallVector<std::string> lacks;
  SmallVector<Operation *> inner;
  auto region = dyn_cast<dmir::RegionOp>(candidate);
  if (region)
    for (Operation &op : *region.getBlock())
      if (isComputed(op))
        inner.push_back(&op);
  if (inner.empty())
    inner.push_back(candidate);
  auto any = [&](auto has) { return llvm::any_of(inner, [&](Operation *op) { return has(*op); }); };
  if (!any([&](Operation &op) { return hasOp(op); }))
    lacks.push_back("op " + inner.back()->getName().getStringRef().str());
  // A region has a name of its own where it is of no node: what --explain-decisions calls it.
  bool isNamed = region && text("op").empty() && !attributes && hasNode(*candidate);
  if (!isNamed && !any([&](Operation &op) { return hasNode(op); }))
    lacks.push_back("node");
  auto hasAll = [&](Operation &op) { return hasOp(op) && (isNamed || hasNode(op)) && !lacksWhere(op); };
  if (lacks.empty() && !any(hasAll)) {
    auto both = llvm::find_if(inner, [&](Operation *op) { return hasOp(*op) && hasNode(*op); });
    lacks.push_back(both == inner.end() ? "op and node are of different ops" : *lacksWhere(**both));
  }
  auto holder = region ? region : candidate->getParentOfType<dmir::RegionOp>();
  if (StringRef device = text("device"); !device.empty() && (!holder || holder.getDevice() != device))
    lacks.push_back(holder ? "device " + holder.getDevice().str() : "no device yet");
  if (StringRef glob = text("algorithm"); !glob.empty()) {
    auto strategy = holder ? holder.getStrategyAttr() : DictionaryAttr();
    auto own = strategy ? strategy.getAs<StringAttr>("algorithm") : StringAttr();
    if (!own || !globMatches(glob, own.str()))
      lacks.push_back(own ? "algorithm " + own.str() : "no algorithm yet");
  }
  return lacks;
}

std::string namesOf(ArrayRef<Operation *> ops) {
  constexpr size_t most = 6;
  std::string text;
  for (Operation *op : ops.take_front(most))
    text += (text.empty() ? "'" : ", '") + dmir::nodeName(op) + "'";
  return ops.size() > most ? text + " and " + std::to_string(ops.size() - most) + " more" : text;
}

/// What was found, then what would have been but for one property.
void attachNotes(DiagnosedSilenceableFailure &failure, const Filter &filter, ArrayRef<Operation *> found,
                 ArrayRef<Operation *> all) {
  constexpr size_t most = 4;
  std::string near;
  std::set<std::string> nodes;
  size_t count = 0;
  for (Operation *op : all) {
    SmallVector<std::string> lacks = filter.lacking(op);
    nodes.insert(dmir::nodeName(op));
    if (lacks.size() == 1 && lacks[0] != "node" && count++ < most)
      near += (near.empty() ? "'" : ", '") + dmir::nodeName(op) + "' (" + lacks[0] + ")";
  }
  std::string name = nearestName(filter.text("node").str(), {nodes.begin(), nodes.end()});
  if (found.empty() && !name.empty())
    near += (near.empty() ? "'" : ", '") + name + "' (node)";
  if (!found.empty())
    failure.attachNote() << "found " << namesOf(found);
  if (!near.empty())
    failure.attachNote() << "near: " << near;
  if (filter.ofLoops() && all.empty())
    failure.attachNote()
        << "there are no loops here: --print-phases says behind which stop kernels of a target are loops";
  else
    failure.attachNote() << (filter.ofLoops() ? "--emit shows all loops" : "--explain-decisions lists all regions")
                         << "; 'expect' says how many there are, 'expect any' that "
                            "there may be none";
}

} // namespace

bool dmxc::transform::isProduct(Operation *op) { return isa<dmir::MatMulOp, dmir::GroupedMatMulOp, dmir::ConvOp>(op); }

LogicalResult MatchOp::verify() {
  for (NamedAttribute entry : getFilter()) {
    StringRef key = entry.getName();
    bool isNumber = key == "nth", isDictionary = key == "where";
    if (!llvm::is_contained(kKeys, key))
      return emitOpError("has no property '")
             << key << "'; there are " << llvm::join(kKeys, ", ") << nearName(key, kKeys) << " [schedule-match]";
    if (isNumber       ? !isa<IntegerAttr>(entry.getValue())
        : isDictionary ? !isa<DictionaryAttr>(entry.getValue())
                       : !isa<StringAttr>(entry.getValue()))
      return emitOpError("'") << key << "' is "
                              << (isNumber       ? "a number"
                                  : isDictionary ? "a dictionary"
                                                 : "a text")
                              << ", not " << entry.getValue() << " [schedule-match]";
  }
  if (getExpected() && getExpectedAttr().getInt() < 0)
    return emitOpError("expects ") << getExpectedAttr().getInt() << "; give 0 or more [schedule-match]";
  if (auto kind = getFilter().getAs<StringAttr>("kind"); kind && !llvm::is_contained(kKinds, kind.getValue()))
    return emitOpError("knows no kind '") << kind.getValue() << "'; there are " << llvm::join(kKinds, ", ")
                                          << nearName(kind.getValue(), kKinds) << " [schedule-match]";
  if (auto name = getFilter().getAs<StringAttr>("op");
      name && !RegisteredOperationName::lookup(name.getValue(), getContext())) {
    std::vector<std::string> names;
    for (RegisteredOperationName known : getContext()->getRegisteredOperationsByDialect("dmir"))
      names.push_back(known.getStringRef().str());
    return emitOpError("there is no op '")
           << name.getValue() << "'" << nearName(name.getValue(), names) << " [schedule-match]";
  }
  return success();
}

DiagnosedSilenceableFailure MatchOp::apply(mlir::transform::TransformRewriter &,
                                           mlir::transform::TransformResults &results,
                                           mlir::transform::TransformState &state) {
  Filter filter(*this);
  SmallVector<Operation *> all, found;
  for (Operation *root : state.getPayloadOps(getRoot()))
    root->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (filter.isCandidate(*op))
        all.push_back(op);
    });
  for (Operation *op : all)
    if (filter.lacking(op).empty())
      found.push_back(op);
  auto expected = getExpected();
  bool wrong = expected ? found.size() != *expected : found.empty() && !getMayBeNone();
  if (wrong) {
    auto failure = emitSilenceableError()
                   << "'dmx.match' found " << filter.counted(found.size()) << ", expected "
                   << (expected ? std::to_string(*expected) : "1 or more") << " [schedule-match]";
    attachNotes(failure, filter, found, all);
    return failure;
  }
  if (auto nth = getFilter().getAs<IntegerAttr>("nth"); nth && !found.empty()) {
    int64_t index = domainValue(nth) == nth ? nth.getInt() : -1;
    if (index < 0 || index >= static_cast<int64_t>(found.size())) {
      auto failure = emitSilenceableError()
                     << "'dmx.match' found " << filter.counted(found.size()) << ", nth = " << index
                     << " is none of 0 to " << found.size() - 1 << " [schedule-match]";
      attachNotes(failure, filter, found, all);
      return failure;
    }
    found = {found[index]};
  }
  results.set(cast<OpResult>(getMatched()), found);
  return DiagnosedSilenceableFailure::success();
}

void MatchOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getRootMutable(), effects);
  mlir::transform::producesHandle(getOperation()->getOpResults(), effects);
  mlir::transform::onlyReadsPayload(effects);
}
