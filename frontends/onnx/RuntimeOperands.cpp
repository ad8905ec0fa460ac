//===- RuntimeOperands.cpp - operands that declared shapes imply ----------===//
//
// A requirement becomes a gather whose index is out of range when it does not hold, which fails the run, and every
// result of the node depends on what is gathered. Its location says what was required: an error names it.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"

#include "dmxc/Dialect/DMIR/Constraints.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// More candidates than these are not computed side by side.
constexpr size_t kMaxCandidates = 32;

/// True for a number at most when every element of `condition` is true: how many are not.
Val violations(Emitter &e, const Val &condition) {
  Val wrong = e.cast(e.emit<NotOp>({condition}), DType::I64);
  return e.reduce(Reduction::sum, e.reshape(wrong, {wrong.elements()}), {0}, false);
}

/// The value, whose tensors depend on `held` (bool).
Val tied(Emitter &e, const Val &held, const Val &value) {
  if (value.isPoison() || value.isNone())
    return value;
  if (value.isTensor())
    return e.select(held, value, e.scalarLike(value, 0));
  if (value.pieces()) {
    Val::Pieces pieces = *value.pieces();
    pieces.whole = tied(e, held, pieces.whole);
    pieces.length = tied(e, held, pieces.length);
    return Val::sequenceOf(std::move(pieces));
  }
  std::vector<Val> items = value.items();
  for (Val &item : items)
    item = tied(e, held, item);
  return Val::sequenceOf(std::move(items));
}

} // namespace

std::optional<Shape> NodeContext::declaredShape(int i) const {
  if (!place || !place->scope.declared || i >= numResults())
    return std::nullopt;
  auto found = place->scope.declared->find(outputs[i]);
  return found == place->scope.declared->end() ? std::nullopt : std::optional<Shape>(found->second);
}

std::optional<int64_t> NodeContext::declaredDim(int result, int64_t axis) const {
  std::optional<Shape> shape = declaredShape(result);
  if (!shape || axis < 0 || axis >= static_cast<int64_t>(shape->size()))
    return std::nullopt;
  return (*shape)[axis];
}

std::vector<int64_t> NodeContext::impliedInts(int i, const char *what,
                                              const std::optional<std::vector<int64_t>> &implied) {
  if (isConstant(i) || !implied)
    return constantInts(i, what);
  Val value = operand(i);
  int64_t count = static_cast<int64_t>(implied->size());
  requireShape(value.numElements() == count, std::string("the ") + what + " (operand " + std::to_string(i) + ") has " +
                                                 std::to_string(value.numElements()) + " numbers where the shape " +
                                                 "declared for the result asks for " + std::to_string(count));
  std::vector<int64_t> checked;
  std::vector<Val> parts;
  Val flat = e.reshape(e.cast(value, DType::I64), {count});
  for (int64_t k = 0; k < count; ++k)
    if ((*implied)[k] != kAny) {
      checked.push_back((*implied)[k]);
      parts.push_back(e.sliceAxis(flat, 0, k, 1));
    }
  if (!checked.empty())
    requireAtRun(e.compare(Compare::eq, static_cast<int64_t>(checked.size()) == count ? flat : e.concat(parts, 0),
                           e.ints(checked)));
  return *implied;
}

int64_t NodeContext::impliedInt(int i, const char *what, std::optional<int64_t> implied) {
  if (isConstant(i) || !implied)
    return constantInt(i, what);
  return impliedInts(i, what, std::vector<int64_t>{*implied}).front();
}

Val NodeContext::chosen(const Val &key, const std::vector<std::vector<int64_t>> &candidates,
                        const std::function<Val(const std::vector<int64_t> &)> &make) {
  if (candidates.empty())
    fail("op-shape", "no value of the operand gives the shape that the model declares for the result");
  if (candidates.size() > kMaxCandidates)
    fail("op-operand-not-constant", std::to_string(candidates.size()) + " values of the operand that is not known at " +
                                        "compile time are possible; at most " + std::to_string(kMaxCandidates) +
                                        " are computed side by side");
  Val result, any;
  for (const std::vector<int64_t> &candidate : candidates) {
    Val differences = violations(e, e.compare(Compare::eq, key, e.ints(candidate)));
    Val match = e.compare(Compare::eq, differences, e.intScalar(DType::I64, 0));
    if (Val value = make(candidate))
      result = result ? e.select(match, value, result) : value;
    any = any ? e.emit<OrOp>({any, match}) : match;
  }
  requireAtRun(any);
  return result;
}

Val NodeContext::namedAxes(int i, int64_t rank) {
  Val given = operand(i);
  Dim count = given.elements();
  Val axes = e.reshape(e.cast(given, DType::I64), {count, 1});
  Val zero = e.intScalar(DType::I64, 0);
  axes = e.select(e.compare(Compare::lt, axes, zero), e.add(axes, e.intScalar(DType::I64, rank)), axes);
  Val hit = e.compare(Compare::eq, axes, e.iota(DType::I64, {1, rank}, 1));
  Val counts = e.reduce(Reduction::sum, e.cast(hit, DType::I64), {0}, false);
  // As many different axes as there are numbers.
  Val named = e.min(counts, e.intScalar(DType::I64, 1));
  requireAtRun(e.compare(Compare::eq, e.reduce(Reduction::sum, named, {0}, false), e.size(count)));
  return named;
}

std::vector<std::vector<int64_t>> NodeContext::axisSets(int64_t rank, int64_t count,
                                                        const std::function<bool(const std::vector<int64_t> &)> &fits) {
  std::vector<std::vector<int64_t>> sets;
  if (count > rank || rank > 16)
    return sets;
  std::vector<int64_t> named(rank, 0);
  std::fill(named.end() - count, named.end(), 1);
  do {
    if (fits(named))
      sets.push_back(named);
  } while (std::next_permutation(named.begin(), named.end()));
  return sets;
}

void NodeContext::requireAtRun(const Val &condition) {
  if (condition.isConstant()) {
    for (int64_t i = 0; i < condition.numElements(); ++i)
      if (!condition.constant().asInt(i))
        fail("op-shape", "an operand does not fit the shape that the model declares for the result");
    return;
  }
  requirements.push_back(condition);
}

Val NodeContext::heldAtRun(const std::vector<Val> &conditions, const std::string &what) {
  Val count;
  for (const Val &condition : conditions) {
    Val more = violations(e, condition);
    count = count ? e.add(count, more) : more;
  }
  e.setNode(name + ": " + what);
  Val gathered = e.gather(e.ints({0}), count, 0);
  if (auto gather = e.ssa(gathered).getDefiningOp<GatherOp>())
    gather->setAttr(kRequirementAttr, mlir::UnitAttr::get(gather->getContext()));
  e.setNode(name);
  return e.compare(Compare::eq, gathered, e.intScalar(DType::I64, 0));
}

Val NodeContext::required(const Val &value, const Val &condition, const std::string &what) {
  return tied(e, heldAtRun({condition}, what), value);
}

void NodeContext::tieRequirements() {
  if (requirements.empty())
    return;
  Val held = heldAtRun(requirements, "what is known at run time only must be valid and give what the model declares");
  for (auto &[i, value] : produced)
    value = tied(e, held, value);
}

} // namespace dmxc::onnxfe
