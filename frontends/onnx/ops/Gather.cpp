//===- Gather.cpp - reading and writing by index --------------------------===//
#include "../Differences.h"
#include "../NodeContext.h"

#include "frontends/common/ops/Order.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

void importGather(NodeContext &c) {
  Val data = c.operand(0);
  c.result(c.e.gather(data, c.operand(1), c.normalizeAxis(c.attrInt("axis", 0), data.rank())));
}

void importGatherElements(NodeContext &c) {
  Val data = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), data.rank());
  c.result(c.e.emit<GatherElementsOp>({data, c.operand(1)}, {c.e.attr("axis", axis)}));
}

/// Index tuples whose length only the declared rank of a result tells.
Val withTupleLength(NodeContext &c, Val indices, std::optional<int64_t> length) {
  if (indices.rank() == 0 || indices.extent(-1).isStatic() || !length || *length < 0)
    return indices;
  Dims dims = indices.dims();
  dims.back() = *length;
  return c.e.reshape(indices, dims);
}

void importGatherND(NodeContext &c) {
  Val data = c.operand(0), indices = c.operand(1);
  int64_t batch = c.attrInt("batch_dims", 0);
  c.requireAttr(batch >= 0 && batch < std::min(data.rank(), indices.rank()),
                "batch_dims must be less than the ranks of the data and the indices");
  std::optional<int64_t> length = c.declaredRank();
  if (length)
    length = indices.rank() + data.rank() - 1 - batch - *length;
  indices = withTupleLength(c, indices, length);
  c.result(c.e.emit<GatherNDOp>({data, indices}, {c.e.attr("batchDims", batch)}));
}

ScatterMode scatterModeOf(NodeContext &c) {
  std::string name = c.attrString("reduction", "none");
  if (name == "none")
    return ScatterMode::replace;
  if (name == "add")
    return ScatterMode::add;
  if (name == "mul")
    return ScatterMode::mul;
  if (name == "max" && c.since() >= 18)
    return ScatterMode::max;
  c.requireAttr(name == "min" && c.since() >= 18, "reduction '" + name + "' is unknown");
  return ScatterMode::min;
}

void importScatterElements(NodeContext &c) {
  Val data = c.operand(0);
  int64_t axis = c.normalizeAxis(c.attrInt("axis", 0), data.rank());
  ScatterMode mode = scatterModeOf(c);
  Val indices = c.operand(1), updates = c.operand(2);
  c.result(scatterElements(c.e, data, indices, updates, axis, mode));
}

void importScatterND(NodeContext &c) {
  Val data = c.operand(0), indices = c.operand(1), updates = c.operand(2);
  indices = withTupleLength(c, indices, indices.rank() - 1 + data.rank() - updates.rank());
  c.result(scatterND(c.e, data, indices, updates, scatterModeOf(c)));
}

void importOneHot(NodeContext &c) {
  Val indices = c.cast64(0), values = c.operand(2);
  int64_t rank = indices.rank() + 1, axis = c.normalizeAxis(c.attrInt("axis", -1), rank);
  std::optional<int64_t> declared = c.declaredDim(0, axis);
  Dim depth; // which may be a float
  if (c.operand(1).isConstant())
    depth = static_cast<int64_t>(c.constantDouble(1, "depth"));
  else
    depth = c.sizes(1, "depth", declared ? std::optional(std::vector{*declared}) : std::nullopt, 1)[0];
  c.requireShape(depth.valueOr(0) >= 0 && values.rank() == 1 && mayEqual(values.extent(0), 2),
                 "expected a depth >= 0 and two values");
  Dims column = indices.dims(), line(rank, 1);
  column.insert(column.begin() + axis, 1);
  line[axis] = depth;
  Val wrapped = c.e.select(c.e.compare(Compare::lt, indices, c.e.scalarLike(indices, 0)),
                           c.e.add(indices, c.e.size(depth)), indices);
  Val hot = c.e.compare(Compare::eq, c.e.reshape(wrapped, column), c.e.iota(DType::I64, line, axis));
  Val off = c.e.reshape(c.e.sliceAxis(values, 0, 0, 1), {}), on = c.e.reshape(c.e.sliceAxis(values, 0, 1, 1), {});
  c.result(c.e.select(hot, on, off));
}

void importTensorScatter(NodeContext &c) {
  Val cache = c.operand(0), update = c.operand(1);
  std::string mode = c.attrString("mode", "linear");
  c.requireAttr(mode == "linear" || mode == "circular", "mode must be 'linear' or 'circular', not '" + mode + "'");
  int64_t axis = c.normalizeAxis(c.attrInt("axis", -2), cache.rank());
  c.requireShape(axis != 0 && update.rank() == cache.rank(), "expected operands of one rank and an axis other than 0");
  Dims line(cache.rank(), 1), batch(cache.rank(), 1);
  line[axis] = update.extent(axis);
  batch[0] = cache.extent(0);
  Val at = c.e.iota(DType::I64, line, axis);
  if (c.has(2))
    at = c.e.add(at, c.e.reshape(c.cast64(2), batch));
  if (mode == "circular")
    at = c.e.emit<ModOp>({at, c.e.size(cache.extent(axis))});
  c.result(scatterElements(c.e, cache, c.e.broadcast(at, update.dims()), update, axis, ScatterMode::replace));
}

} // namespace

std::vector<OpRows> gatherOps() {
  using namespace types;
  return {
      {"Gather", {1, 11, 13}, "..>1", importGather, "axis", {Any, Index}},
      {"GatherElements", {11, 13}, "..>1", importGatherElements, "axis", {Any, Index}},
      {"GatherND", {11}, "..>1", importGatherND, "", {Any, Index}},
      {"GatherND", {12, 13}, "..>1", importGatherND, "batch_dims", {Any, Index}},
      {"Scatter", {9, 11}, "T.T>1", importScatterElements, "axis", {Any, Index, Any}},
      {"ScatterElements", {11, 13}, "T.T>1", importScatterElements, "axis", {Any, Index, Any}},
      {"ScatterElements", {16, 18}, "T.T>1", importScatterElements, "axis,reduction", {Any, Index, Any}},
      {"ScatterND", {11, 13}, "T.T>1", importScatterND, "", {Any, Index, Any}},
      {"ScatterND", {16, 18}, "T.T>1", importScatterND, "reduction", {Any, Index, Any}},
      {"OneHot",
       {9, 11},
       "...>1",
       importOneHot,
       "axis",
       {Number, Number, Any},
       "the depth must be known at compile time"},
      {"TensorScatter", {24}, "TT.>1", importTensorScatter, "axis,mode", {Any, Any, Index}},
  };
}

std::vector<Difference> gatherDifferences() {
  return {
      {"scatterelements-extremum-nan", "ScatterElements", "reduction max or min with NaN",
       "NaN where it was, not from updates", "NaN from updates, not where it was", "NaN", "NaN", "as Max and Min"},
      {"scatternd-extremum-nan", "ScatterND", "reduction max or min with NaN", "NaN",
       "NaN from updates, not where it was", "NaN", "NaN", "as Max and Min"},
  };
}

} // namespace dmxc::onnxfe
