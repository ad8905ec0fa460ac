//===- Sequence.cpp - sequences of tensors whose length is known ----------===//
//
// A sequence has no tensor meaning, but as long as its length and the positions
// are known at compile time its tensors can be followed one by one; only the
// operators that take them apart remain.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

std::vector<Val> itemsOf(NodeContext &c, int i) {
  Val value = c.anyOperand(i);
  if (!value.isSequence())
    fail("op-dtype", "operand " + std::to_string(i) + " must be a sequence, not " + value.describe());
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
void importEmpty(NodeContext &c) { c.result(Val::sequenceOf({})); }
void importLength(NodeContext &c) { c.result(c.e.intScalar(DType::I64, itemsOf(c, 0).size())); }

void importAt(NodeContext &c) {
  std::vector<Val> items = itemsOf(c, 0);
  c.result(items[positionOf(c, 1, items.size(), items.size())]);
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

void importConcatFromSequence(NodeContext &c) {
  std::vector<Val> items = itemsOf(c, 0);
  c.requireShape(!items.empty(), "the sequence is empty");
  bool fresh = c.attrInt("new_axis", 0) != 0;
  int64_t axis = c.normalizeAxis(c.attrInt("axis"), items[0].rank() + (fresh ? 1 : 0));
  for (Val &item : items)
    if (fresh) {
      Dims shape = item.dims();
      c.requireShape(axis <= item.rank(), "the tensors differ in rank");
      shape.insert(shape.begin() + axis, 1);
      item = c.e.reshape(item, shape);
    }
  c.result(c.e.concat(items, axis));
}

void importSplitToSequence(NodeContext &c) {
  Val x = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), x.rank()), dim = x.dim(axis);
  bool squeeze = !c.has(1) && c.attrInt("keepdims", 1) == 0;
  std::vector<int64_t> sizes(c.has(1) ? 0 : dim, 1);
  if (c.has(1)) {
    sizes = c.constantInts(1, "split sizes");
    if (c.operand(1).rank() == 0) { // one number: equal parts, the last may be smaller
      int64_t part = sizes[0];
      c.requireShape(part > 0, "a part of " + std::to_string(part) + " elements");
      sizes.clear();
      for (int64_t at = 0; at < dim; at += part)
        sizes.push_back(std::min(part, dim - at));
    }
  }
  c.requireShape(sizes.size() <= 65536, "the sequence would have " + std::to_string(sizes.size()) + " tensors");
  std::vector<Val> items;
  int64_t at = 0;
  for (int64_t size : sizes) {
    c.requireShape(size >= 0 && size <= dim - at,
                   "the sizes exceed the " + std::to_string(dim) + " elements of the axis");
    Val item = c.e.sliceAxis(x, axis, at, size);
    if (squeeze) {
      Dims shape = item.dims();
      shape.erase(shape.begin() + axis);
      item = c.e.reshape(item, shape);
    }
    items.push_back(std::move(item));
    at += size;
  }
  c.requireShape(at == dim, "the sizes add up to " + std::to_string(at) + ", not " + std::to_string(dim));
  c.result(Val::sequenceOf(std::move(items)));
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
  return {
      {"SequenceConstruct", {11}, importConstruct, "", {}, note},
      {"SequenceEmpty", {11}, importEmpty, "dtype", {}, note},
      {"SequenceLength", {11}, importLength, "", {}, note},
      {"SequenceAt", {11}, importAt, "", {}, note},
      {"SequenceInsert", {11}, importInsert, "", {}, note},
      {"SequenceErase", {11}, importErase, "", {}, note},
      {"SequenceMap", {17}, importSequenceMap, "body", {}, note},
      {"ConcatFromSequence", {11}, importConcatFromSequence, "axis,new_axis", {}, note},
      {"SplitToSequence", {11, 24}, importSplitToSequence, "axis,keepdims", {}, note},
  };
}

} // namespace dmxc::onnxfe
