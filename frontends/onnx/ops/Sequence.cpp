//===- Sequence.cpp - sequences of tensors --------------------------------===//
//
// A sequence has no tensor meaning, but as long as its length and the positions
// are known at compile time its tensors can be followed one by one; only the
// operators that take them apart remain. A sequence whose length a run decides
// is what a tensor was split into: the tensor, with where each piece begins.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"

#include "frontends/common/ops/Order.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

std::vector<Val> itemsOf(NodeContext &c, int i) {
  Val value = c.anyOperand(i);
  if (!value.isSequence() || value.pieces())
    fail("op-dtype", "operand " + std::to_string(i) + " must be a sequence of known length, not a " + value.describe());
  return value.items();
}

/// A position in a sequence of `count` items; negative ones count from the end.
int64_t positionOf(NodeContext &c, int operand, int64_t count, int64_t limit) {
  int64_t at = c.constantInt(operand, "position");
  c.requireShape(at >= -count && at < limit,
                 "the position " + std::to_string(at) + " is outside a sequence of " + std::to_string(count));
  return at < 0 ? at + count : at;
}

void importConstruct(NodeContext &c) {
  std::vector<Val> items;
  for (int i = 0; i < c.numOperands(); ++i)
    items.push_back(c.operand(i));
  c.result(Val::sequenceOf(std::move(items)));
}
void importEmpty(NodeContext &c) { c.result(Val::sequenceOf(std::vector<Val>())); }
void importLength(NodeContext &c) {
  const Val::Pieces *pieces = c.anyOperand(0).pieces();
  c.result(pieces ? pieces->length : c.e.intScalar(DType::I64, itemsOf(c, 0).size()));
}

/// Operand 1 as a position (i64[1]) among `length` tensors, which a run checks.
Val runPosition(NodeContext &c, const Val &length) {
  Emitter &e = c.e;
  c.requireShape(c.operand(1).elements().is(1), "the position is not one number");
  Val given = e.reshape(c.cast64(1), {1}), zero = e.intScalar(DType::I64, 0);
  Val at = e.select(e.compare(Compare::lt, given, zero), e.add(given, length), given);
  c.requireAtRun(e.compare(Compare::ge, at, zero));
  c.requireAtRun(e.compare(Compare::lt, at, length));
  return at;
}

Val withAxis(Emitter &e, const Val &value, int64_t axis) {
  Dims dims = value.dims();
  dims.insert(dims.begin() + axis, 1);
  return e.reshape(value, dims);
}

Val withoutAxis(Emitter &e, const Val &value, int64_t axis) {
  Dims dims = value.dims();
  dims.erase(dims.begin() + axis);
  return e.reshape(value, dims);
}

Val pieceAt(NodeContext &c, const Val::Pieces &pieces) {
  Emitter &e = c.e;
  Val at = runPosition(c, pieces.length);
  if (pieces.starts) {
    // Clamped: the check of the position may come after the slice.
    Dim whole = pieces.whole.extent(pieces.axis);
    Val size = e.gather(pieces.sizes, at, 0);
    Val start = e.min(e.gather(pieces.starts, at, 0), e.sub(e.reshape(e.size(whole), {1}), size));
    Dims both = e.dimsOf(e.concat({start, size}, 0));
    return e.sliceAxis(pieces.whole, pieces.axis, both[0], both[1]);
  }
  Val piece = e.gather(pieces.whole, at, pieces.axis);
  return pieces.squeezed ? withoutAxis(e, piece, pieces.axis) : piece;
}

void importAt(NodeContext &c) {
  if (const Val::Pieces *pieces = c.anyOperand(0).pieces())
    return c.result(pieceAt(c, *pieces));
  std::vector<Val> items = itemsOf(c, 0);
  if (c.isConstant(1))
    return c.result(items[positionOf(c, 1, items.size(), items.size())]);
  // Tensors of one shape lie in one tensor, for a position that a run brings.
  c.requireShape(!items.empty(), "the sequence is empty");
  std::vector<Val> rows;
  for (const Val &item : items) {
    if (item.isPoison())
      return c.result(Val::poison());
    c.requireShape(item.type() == items[0].type(), "the position is known at run time only and the tensors differ: " +
                                                       items[0].describe() + " and " + item.describe());
    rows.push_back(withAxis(c.e, item, 0));
  }
  Val at = runPosition(c, c.e.intScalar(DType::I64, items.size()));
  c.result(withoutAxis(c.e, c.e.gather(c.e.concat(rows, 0), at, 0), 0));
}

void importInsert(NodeContext &c) {
  std::vector<Val> items = itemsOf(c, 0);
  int64_t count = items.size(), at = c.has(2) ? positionOf(c, 2, count, count + 1) : count;
  items.insert(items.begin() + at, c.operand(1));
  c.result(Val::sequenceOf(std::move(items)));
}

void importErase(NodeContext &c) {
  std::vector<Val> items = itemsOf(c, 0);
  c.requireShape(!items.empty(), "the sequence is empty");
  int64_t count = items.size(), at = c.has(1) ? positionOf(c, 1, count, count) : count - 1;
  items.erase(items.begin() + at);
  c.result(Val::sequenceOf(std::move(items)));
}

/// What was split is put together again.
void concatPieces(NodeContext &c, const Val::Pieces &pieces) {
  bool fresh = c.attrInt("new_axis", 0) != 0;
  int64_t axis = c.normalizeAxis(c.attrInt("axis"), pieces.whole.rank() + (fresh && !pieces.squeezed));
  if (fresh != pieces.squeezed || (!fresh && axis != pieces.axis))
    fail("op-shape", "tensors of a " + c.anyOperand(0).describe() + " are joined along the axis they were split along");
  std::vector<int64_t> order;
  for (int64_t i = 0; i < pieces.whole.rank(); ++i)
    if (i != pieces.axis)
      order.push_back(i);
  order.insert(order.begin() + axis, pieces.axis);
  c.result(c.e.transpose(pieces.whole, order));
}

void importConcatFromSequence(NodeContext &c) {
  if (const Val::Pieces *pieces = c.anyOperand(0).pieces())
    return concatPieces(c, *pieces);
  std::vector<Val> items = itemsOf(c, 0);
  c.requireShape(!items.empty(), "the sequence is empty");
  bool fresh = c.attrInt("new_axis", 0) != 0;
  int64_t axis = c.normalizeAxis(c.attrInt("axis"), items[0].rank() + (fresh ? 1 : 0));
  for (Val &item : items)
    if (fresh) {
      c.requireShape(axis <= item.rank(), "the tensors differ in rank");
      item = withAxis(c.e, item, axis);
    }
  c.result(c.e.concat(items, axis));
}

/// The sizes of the pieces where their number is known: numbers, dims, or symbols that a run gives their values.
std::optional<Dims> pieceSizes(NodeContext &c, Dim dim) {
  auto checked = [&](int64_t count) {
    c.requireShape(count <= 65536, "the sequence would have " + std::to_string(count) + " tensors");
    return count;
  };
  if (!c.has(1))
    return dim.isStatic() ? std::optional(Dims(checked(*dim.known()), 1)) : std::nullopt;
  if (c.operand(1).rank() == 1)
    return c.operand(1).elements().isStatic() ? std::optional(c.sizes(1, "split sizes")) : std::nullopt;
  if (!c.isConstant(1))
    return std::nullopt;
  // One number: equal pieces, the last may be smaller.
  Dim part = c.size(1, "split size");
  c.requireShape(part.valueOr(1) > 0, "a piece of " + part.str() + " elements");
  if (!part.isStatic() || !dim.isStatic())
    return std::nullopt;
  int64_t whole = *dim.known(), each = *part.known();
  Dims sizes(checked(whole / each + (whole % each != 0)), part);
  if (whole % each)
    sizes.back() = whole % each;
  return sizes;
}

Val closedSplit(NodeContext &c, const Val &x, int64_t axis, bool squeezed, const Dims &sizes) {
  Dim dim = x.extent(axis), at = 0;
  std::vector<Val> items;
  for (Dim size : sizes) {
    c.requireShape(size.valueOr(0) >= 0 && (dim - at - size).valueOr(0) >= 0,
                   "the sizes exceed the " + dim.str() + " elements of the axis");
    Val item = c.e.sliceAxis(x, axis, at, size);
    items.push_back(squeezed ? withoutAxis(c.e, item, axis) : item);
    at = at + size;
  }
  c.requireShape(mayEqual(at, dim), "the sizes add up to " + at.str() + ", not " + dim.str());
  if (!(at - dim).is(0))
    c.requireAtRun(c.e.compare(Compare::eq, c.e.size(at), c.e.size(dim)));
  return Val::sequenceOf(std::move(items));
}

Val openSplit(NodeContext &c, const Val &x, int64_t axis, bool squeezed) {
  Emitter &e = c.e;
  Dim dim = x.extent(axis);
  Val::Pieces pieces{x, axis, squeezed, e.size(dim), {}, {}};
  if (!c.has(1))
    return Val::sequenceOf(std::move(pieces));
  Val given = c.cast64(1), zero = e.intScalar(DType::I64, 0), one = e.intScalar(DType::I64, 1);
  if (given.rank() == 0) {
    c.requireAtRun(e.compare(Compare::gt, given, zero));
    Val part = e.max(given, one); // no division by zero before the check
    Val count = e.div(e.add(e.size(dim), e.sub(part, one)), part);
    pieces.length = e.size(e.dimsOf(e.reshape(count, {1}))[0]);
    pieces.starts = e.mul(e.iota(DType::I64, {pieces.length.sizes()[0]}, 0), part);
    pieces.sizes = e.min(part, e.sub(e.size(dim), pieces.starts));
  } else {
    pieces.length = e.size(given.extent(0));
    pieces.starts = cumulativeSum(e, given, 0, /*exclusive=*/true);
    pieces.sizes = given;
    c.requireAtRun(e.compare(Compare::ge, given, zero));
    c.requireAtRun(e.compare(Compare::eq, e.reduce(Reduction::sum, given, {0}, false), e.size(dim)));
  }
  return Val::sequenceOf(std::move(pieces));
}

void importSplitToSequence(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), x.rank());
  c.requireShape(!c.has(1) || c.operand(1).rank() <= 1, "the split sizes are no scalar or vector");
  bool squeezed = !c.has(1) && c.attrInt("keepdims", 1) == 0;
  std::optional<Dims> sizes = pieceSizes(c, x.extent(axis));
  c.result(sizes ? closedSplit(c, x, axis, squeezed, *sizes) : openSplit(c, x, axis, squeezed));
}

void importSequenceMap(NodeContext &c) {
  std::vector<Val> first = itemsOf(c, 0);
  const onnx::GraphProto &body = c.attrGraph("body");
  c.requireShape(first.size() <= 1024,
                 "a sequence of " + std::to_string(first.size()) + " tensors is too long to be unrolled");
  std::vector<std::vector<Val>> results(c.numResults());
  for (size_t k = 0; k < first.size(); ++k) {
    std::vector<Val> arguments{first[k]};
    for (int i = 1; i < c.numOperands(); ++i) {
      Val other = c.anyOperand(i);
      c.requireShape(!other.isSequence() || other.items().size() == first.size(), "the sequences differ in length");
      arguments.push_back(other.isSequence() ? other.items()[k] : other);
    }
    std::vector<Val> outputs = c.inlineGraph(body, arguments, "/" + std::to_string(k));
    if (outputs.size() < results.size())
      fail("onnx-graph", "the body has fewer outputs than the node has results");
    for (size_t i = 0; i < results.size(); ++i)
      results[i].push_back(outputs[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    bool poisoned = false;
    for (const Val &value : results[i])
      poisoned |= value.isPoison();
    c.result(i, poisoned ? Val::poison() : Val::sequenceOf(std::move(results[i])));
  }
}

} // namespace

std::vector<OpRows> sequenceOps() {
  const char *note = "followed at compile time: lengths and positions must be known";
  const char *open =
      "a length or position that a run decides: in what SplitToSequence made, or among tensors of one shape";
  return {
      {"SequenceConstruct", {11}, "T*>1", importConstruct, "", {}, note},
      {"SequenceEmpty", {11}, ">1", importEmpty, "dtype", {}, note},
      {"SequenceLength", {11}, ".>1", importLength, "", {}, open},
      {"SequenceAt", {11}, "..>1", importAt, "", {}, open},
      {"SequenceInsert", {11}, "...>1", importInsert, "", {}, note},
      {"SequenceErase", {11}, "..>1", importErase, "", {}, note},
      {"SequenceMap", {17}, "..*>*", importSequenceMap, "body", {}, note},
      {"ConcatFromSequence", {11}, ".>1", importConcatFromSequence, "axis,new_axis", {}, note},
      {"SplitToSequence", {11, 24}, "..>1", importSplitToSequence, "axis,keepdims", {}, ""},
  };
}

} // namespace dmxc::onnxfe
