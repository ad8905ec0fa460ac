//===- Control.cpp - control flow that is decided at compile time ---------===//
#include "../NodeContext.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

constexpr int64_t kMaxUnrolled = 64;

void setAll(NodeContext &c, const std::vector<Val> &values) {
  if (static_cast<int>(values.size()) < c.numResults())
    fail("onnx-graph", "the subgraph has " + std::to_string(values.size()) + " outputs for " +
                           std::to_string(c.numResults()) + " results");
  for (int i = 0; i < c.numResults(); ++i)
    c.result(i, values[i]);
}

void importIf(NodeContext &c) {
  Val condition = c.operand(0);
  if (!condition.isConstant())
    fail("op-unsupported", "the condition is decided at run time; only conditions known at "
                           "compile time are supported so far");
  c.requireShape(condition.numElements() == 1, "the condition must be one bool");
  bool taken = condition.constant().asInt(0) != 0;
  setAll(c, c.inlineGraph(c.attrGraph(taken ? "then_branch" : "else_branch"), {}, taken ? "/then" : "/else"));
}

/// Stacks what each iteration produced along a new axis.
Val stack(NodeContext &c, const std::vector<Val> &slices, int64_t axis, bool reverse) {
  std::vector<Val> parts;
  for (const Val &slice : slices) {
    if (!slice.isTensor())
      fail("op-dtype", "sequences cannot be stacked into a tensor");
    Shape shape(slice.shape().begin(), slice.shape().end());
    int64_t at = c.normalizeAxis(axis, slice.rank() + 1);
    shape.insert(shape.begin() + at, 1);
    parts.push_back(c.e.reshape(slice, shape));
  }
  if (reverse)
    std::reverse(parts.begin(), parts.end());
  if (parts.empty())
    fail("op-dynamic-shape", "no iteration runs, so the shape of the stacked results is unknown");
  return c.e.concat(parts, c.normalizeAxis(axis, parts.front().rank()));
}

bool anyPoison(const std::vector<Val> &values) {
  for (const Val &value : values)
    if (value.isPoison())
      return true;
  return false;
}

void poisonResults(NodeContext &c) {
  for (int i = 0; i < c.numResults(); ++i)
    c.result(i, Val::poison());
}

/// The constant of a condition, or nullopt while it is true by absence.
bool holds(NodeContext &c, const Val &condition) {
  if (!condition)
    return true;
  if (!condition.isConstant() || condition.numElements() != 1)
    fail("op-unsupported", "the loop's condition is decided at run time; only conditions known "
                           "at compile time are supported so far");
  return condition.constant().asInt(0) != 0;
}

void importLoop(NodeContext &c) {
  const onnx::GraphProto &body = c.attrGraph("body");
  int64_t limit = INT64_MAX;
  if (c.has(0)) {
    if (!c.operand(0).isConstant())
      fail("op-unsupported", "the trip count is decided at run time; only counts known at "
                             "compile time are supported so far");
    limit = c.constantInt(0, "trip count");
  }
  Val condition = c.optional(1);
  std::vector<Val> carried;
  for (int i = 2; i < c.numOperands(); ++i)
    carried.push_back(c.anyOperand(i));
  size_t states = carried.size();
  if (body.input_size() != static_cast<int>(states) + 2 || body.output_size() < static_cast<int>(states) + 1)
    fail("onnx-graph", "the body's inputs or outputs do not fit the " + std::to_string(states) + " carried values");
  std::vector<std::vector<Val>> scanned(body.output_size() - 1 - states);
  for (int64_t i = 0; i < limit && holds(c, condition); ++i) {
    if (i >= kMaxUnrolled)
      fail("op-unsupported",
           "the loop runs more than " + std::to_string(kMaxUnrolled) + " times; longer ones are not unrolled");
    std::vector<Val> inputs{c.e.intScalar(DType::I64, i), condition ? condition : c.e.scalar(DType::Bool, 1)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Val> outputs = c.inlineGraph(body, inputs, "/" + std::to_string(i));
    if (anyPoison(outputs))
      return poisonResults(c);
    // Without a condition operand the body's own still ends the loop.
    condition = outputs[0];
    std::copy_n(outputs.begin() + 1, states, carried.begin());
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k].push_back(outputs[1 + states + k]);
  }
  for (size_t k = 0; k < states; ++k)
    c.result(k, carried[k]);
  for (size_t k = 0; k < scanned.size(); ++k)
    if (c.wants(states + k))
      c.result(states + k, stack(c, scanned[k], 0, false));
}

/// What Scan does along each of its scanned operands and results.
struct ScanPlan {
  std::vector<int64_t> inputAxes, outputAxes, inputReverse, outputReverse;
};

ScanPlan planOf(NodeContext &c, size_t inputs, size_t outputs) {
  ScanPlan plan;
  auto list = [&](const char *name, size_t count) {
    std::vector<int64_t> values = c.attrInts(name, std::vector<int64_t>(count, 0));
    c.requireAttr(values.size() == count, std::string("'") + name + "' has the wrong length");
    return values;
  };
  plan.inputAxes = list("scan_input_axes", inputs);
  plan.outputAxes = list("scan_output_axes", outputs);
  plan.inputReverse = list(c.since() == 8 ? "directions" : "scan_input_directions", inputs);
  plan.outputReverse = list("scan_output_directions", outputs);
  return plan;
}

/// One run of a Scan: final states, then the stacked results.
std::vector<Val> scan(NodeContext &c, std::vector<Val> states, const std::vector<Val> &inputs, const ScanPlan &plan,
                      const std::string &suffix) {
  const onnx::GraphProto &body = c.attrGraph("body");
  std::vector<std::vector<Val>> scanned(body.output_size() - states.size());
  int64_t axis = c.normalizeAxis(plan.inputAxes[0], inputs[0].rank()), steps = inputs[0].dim(axis);
  if (steps > kMaxUnrolled)
    fail("op-unsupported", "the scan has " + std::to_string(steps) + " steps; more than " +
                               std::to_string(kMaxUnrolled) + " are not unrolled");
  for (int64_t t = 0; t < steps; ++t) {
    std::vector<Val> arguments = states;
    for (size_t k = 0; k < inputs.size(); ++k) {
      int64_t along = c.normalizeAxis(plan.inputAxes[k], inputs[k].rank());
      c.requireShape(inputs[k].dim(along) == steps, "the scanned operands differ in length");
      Shape shape(inputs[k].shape().begin(), inputs[k].shape().end());
      shape.erase(shape.begin() + along);
      arguments.push_back(
          c.e.reshape(c.e.sliceAxis(inputs[k], along, plan.inputReverse[k] ? steps - 1 - t : t, 1), shape));
    }
    std::vector<Val> outputs = c.inlineGraph(body, arguments, suffix + "/" + std::to_string(t));
    if (anyPoison(outputs))
      return std::vector<Val>(body.output_size(), Val::poison());
    std::copy_n(outputs.begin(), states.size(), states.begin());
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k].push_back(outputs[states.size() + k]);
  }
  for (size_t k = 0; k < scanned.size(); ++k)
    states.push_back(stack(c, scanned[k], plan.outputAxes[k], plan.outputReverse[k] != 0));
  return states;
}

std::vector<Val> operandsFrom(NodeContext &c, int first) {
  std::vector<Val> values;
  for (int i = first; i < c.numOperands(); ++i)
    values.push_back(c.operand(i));
  return values;
}

void importScan(NodeContext &c) {
  const onnx::GraphProto &body = c.attrGraph("body");
  int first = c.since() == 8 ? 1 : 0; // version 8 has sequence lengths in front
                                      // and a batch axis on everything
  if (first && c.has(0))
    fail("op-unsupported", "sequence lengths of version 8 are not supported");
  std::vector<Val> values = operandsFrom(c, first);
  int64_t count = c.attrInt("num_scan_inputs"), states = static_cast<int64_t>(values.size()) - count;
  if (count < 1 || states < 0 || body.input_size() != static_cast<int>(values.size()) || body.output_size() < states)
    fail("onnx-graph", "the body's inputs or outputs do not fit "
                       "num_scan_inputs and the operands");
  ScanPlan plan = planOf(c, count, body.output_size() - states);
  auto split = values.begin() + states;
  if (!first)
    return setAll(c, scan(c, std::vector<Val>(values.begin(), split), std::vector<Val>(split, values.end()), plan, ""));
  c.requireShape(values.front().rank() >= 1 && values.front().dim(0) <= kMaxUnrolled,
                 "the batch is too large to be unrolled");
  std::vector<std::vector<Val>> batches(body.output_size());
  for (int64_t b = 0; b < values.front().dim(0); ++b) {
    std::vector<Val> entry;
    for (const Val &value : values) {
      c.requireShape(value.rank() >= 1 && value.dim(0) == values.front().dim(0), "the operands' batches differ");
      entry.push_back(c.e.reshape(c.e.sliceAxis(value, 0, b, 1), value.shape().drop_front()));
    }
    std::vector<Val> results =
        scan(c, std::vector<Val>(entry.begin(), entry.begin() + states),
             std::vector<Val>(entry.begin() + states, entry.end()), plan, "/" + std::to_string(b));
    if (anyPoison(results))
      return poisonResults(c);
    for (size_t k = 0; k < results.size(); ++k)
      batches[k].push_back(results[k]);
  }
  std::vector<Val> stacked;
  for (const std::vector<Val> &slices : batches)
    stacked.push_back(stack(c, slices, 0, false));
  setAll(c, stacked);
}

} // namespace

std::vector<OpRows> controlOps() {
  using namespace types;
  const char *loop = "unrolled: counts and conditions known at compile time, "
                     "up to 64 iterations";
  return {
      {"If",
       {1, 11, 13, 16, 19, 21, 23, 24, 25},
       importIf,
       "else_branch,then_branch",
       {Bool},
       "the condition must be known at compile time"},
      {"Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}, importLoop, "body", {}, loop},
      {"Scan", {8}, importScan, "body,directions,num_scan_inputs", {}, loop},
      {"Scan",
       {9, 11, 16, 19, 21, 23, 24, 25},
       importScan,
       "body,num_scan_inputs,scan_input_axes,scan_input_directions,scan_output_"
       "axes,scan_output_directions",
       {},
       loop},
  };
}

} // namespace dmxc::onnxfe
