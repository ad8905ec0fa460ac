//===- Control.cpp - If, Loop and Scan ------------------------------------===//
//
// What is known at compile time is inlined and unrolled; the rest becomes graphs that a run branches to and repeats.
//
//===----------------------------------------------------------------------===//
#include "../NodeContext.h"

#include "frontends/common/ControlGraphs.h"

#include <utility>

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

/// The operator that gives a graph's one output; "" where it has several or nothing computes it.
std::string lastOperator(const onnx::GraphProto &graph) {
  if (graph.output_size() == 1)
    for (const onnx::NodeProto &node : graph.node())
      if (node.output_size() == 1 && node.output(0) == graph.output(0).name())
        return node.op_type();
  return "";
}

/// A branch of an If, and what is to be said of its nodes.
struct Branch {
  NodeContext &c;
  const char *attribute, *suffix;
  std::vector<Diagnostic> problems = {};

  std::vector<Val> inlined() const { return c.inlineGraph(c.attrGraph(attribute), {}, suffix); }
  std::vector<Val> tried() {
    problems.clear();
    return c.tryGraph(c.attrGraph(attribute), suffix, problems);
  }
  void report() {
    for (Diagnostic &problem : std::exchange(problems, {}))
      c.report(std::move(problem));
  }
  /// Whether the graph cannot be at the sizes that its operands have: no run takes it, or that run is wrong.
  bool cannotBe() const {
    auto isError = [](const Diagnostic &problem) { return problem.severity == Severity::Error; };
    auto isOfShapes = [&](const Diagnostic &problem) { return !isError(problem) || problem.id == "op-shape"; };
    return llvm::any_of(problems, isError) && llvm::all_of(problems, isOfShapes);
  }
  Diagnostic warning() const {
    auto error = llvm::find_if(problems, [](const Diagnostic &p) { return p.severity == Severity::Error; });
    Diagnostic left{Severity::Warning,
                    "branch-shape",
                    error->file,
                    c.name,
                    std::string("its ") + attribute +
                        " cannot be computed at these sizes; a run that takes it is refused",
                    ErrorKind::Model,
                    {}};
    return left.note("node '" + error->node + "': " + error->text);
  }
};

/// Of a branch that cannot be only the other one is left, which every run must take. False where both can, or neither.
bool takeOther(NodeContext &c, const Val &condition, Branch &then, Branch &otherwise) {
  if (then.cannotBe() == otherwise.cannotBe())
    return false;
  bool isThen = otherwise.cannotBe();
  c.report((isThen ? otherwise : then).warning());
  c.requireAtRun(isThen ? condition : c.e.emit<NotOp>({condition}));
  setAll(c, (isThen ? then : otherwise).inlined());
  return true;
}

void importIf(NodeContext &c) {
  Val condition = c.operand(0);
  c.requireShape(mayEqual(condition.elements(), 1), "the condition must be one bool");
  Branch then{c, "then_branch", "/then"}, otherwise{c, "else_branch", "/else"};
  if (condition.isConstant())
    return setAll(c, (condition.constant().asInt(0) ? then : otherwise).inlined());
  Emitter::Checkpoint start = c.e.checkpoint();
  try {
    std::vector<Val> results = c.e.branch(condition, [&] { return then.tried(); }, [&] { return otherwise.tried(); });
    if (Val::anyPoison(results)) {
      c.e.rollBack(start);
      if (takeOther(c, condition, then, otherwise))
        return;
    }
    then.report();
    otherwise.report();
    return setAll(c, results);
  } catch (const NodeFailure &failure) {
    // Exporters write x.squeeze(axis) of a dim that they do not know as "if it is 1, squeeze, else x". A tensor has one
    // rank here: that of the squeezed one, which every run must then take.
    if (failure.id != kBranchesDiffer || lastOperator(c.attrGraph("then_branch")) != "Squeeze" ||
        lastOperator(c.attrGraph("else_branch")) != "Identity") {
      then.report();
      otherwise.report();
      throw;
    }
  }
  c.e.rollBack(start);
  c.requireAtRun(condition);
  setAll(c, then.inlined());
}

/// Stacks what each iteration produced along a new axis.
Val stack(NodeContext &c, const std::vector<Val> &slices, int64_t axis, bool reverse) {
  std::vector<Val> parts;
  for (const Val &slice : slices) {
    if (!slice.isTensor())
      fail("op-dtype", "sequences cannot be stacked into a tensor");
    Dims dims = slice.dims();
    dims.insert(dims.begin() + c.normalizeAxis(axis, slice.rank() + 1), 1);
    parts.push_back(c.e.reshape(slice, dims));
  }
  if (reverse)
    std::reverse(parts.begin(), parts.end());
  return c.e.concat(parts, c.normalizeAxis(axis, parts.front().rank()));
}

void poisonResults(NodeContext &c) {
  for (int i = 0; i < c.numResults(); ++i)
    c.result(i, Val::poison());
}

/// Unrolls a loop of at most `limit` iterations. False, with nothing set, where it has too many or its condition is not
/// known at compile time.
bool unroll(NodeContext &c, const onnx::GraphProto &body, int64_t limit, std::vector<Val> carried) {
  size_t states = carried.size();
  Val condition = c.optional(1);
  std::vector<std::vector<Val>> scanned(body.output_size() - 1 - states);
  for (int64_t i = 0; i < limit; ++i) {
    if (condition && !condition.isConstant())
      return false;
    if (condition && condition.constant().asInt(0) == 0)
      break;
    if (i >= kMaxUnrolled)
      return false;
    std::vector<Val> inputs{c.e.intScalar(DType::I64, i), condition ? condition : c.e.scalar(DType::Bool, 1)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Val> outputs = c.inlineGraph(body, inputs, "/" + std::to_string(i));
    if (Val::anyPoison(outputs)) {
      poisonResults(c);
      return true;
    }
    // Without a condition operand the body's own still ends the loop.
    condition = outputs[0];
    std::copy_n(outputs.begin() + 1, states, carried.begin());
    for (size_t k = 0; k < scanned.size(); ++k)
      scanned[k].push_back(outputs[1 + states + k]);
  }
  if (!scanned.empty() && scanned[0].empty()) // no iteration: the body says what none of them would have given
    return false;
  for (size_t k = 0; k < states; ++k)
    c.result(k, carried[k]);
  for (size_t k = 0; k < scanned.size(); ++k)
    if (c.wants(states + k))
      c.result(states + k, stack(c, scanned[k], 0, false));
  return true;
}

void importLoop(NodeContext &c) {
  const onnx::GraphProto &body = c.attrGraph("body");
  Val trips = c.optional(0), condition = c.optional(1);
  for (const Val &single : {trips, condition})
    c.requireShape(!single || mayEqual(single.elements(), 1), "the trip count and the condition have one element each");
  std::vector<Val> carried;
  for (int i = 2; i < c.numOperands(); ++i)
    carried.push_back(c.anyOperand(i));
  size_t states = carried.size();
  if (body.input_size() != static_cast<int>(states) + 2 || body.output_size() < static_cast<int>(states) + 1)
    fail("onnx-graph", "the body's inputs or outputs do not fit the " + std::to_string(states) + " carried values");
  int64_t limit = trips && trips.isConstant() ? trips.constant().asInt(0) : INT64_MAX;
  if (!trips || limit <= kMaxUnrolled) {
    Emitter::Checkpoint start = c.e.checkpoint();
    if (unroll(c, body, limit, carried))
      return;
    c.e.rollBack(start);
  }
  setAll(c,
         c.e.loop(trips, condition, carried, [&](const Val &iteration, const Val &holds, llvm::ArrayRef<Val> values) {
           std::vector<Val> inputs{iteration, holds};
           inputs.insert(inputs.end(), values.begin(), values.end());
           return c.inlineGraph(body, inputs, "/body");
         }));
}

/// Results of all steps, stacked along a first axis, as the node wants them.
Val arrangeScanned(NodeContext &c, Val stacked, int64_t axis, bool reverse) {
  if (stacked.isPoison())
    return stacked;
  if (reverse)
    stacked = c.e.sliceAxis(stacked, 0, stacked.extent(0) - 1, stacked.extent(0), -1);
  std::vector<int64_t> permutation;
  for (int64_t i = 1; i < stacked.rank(); ++i)
    permutation.push_back(i);
  permutation.insert(permutation.begin() + c.normalizeAxis(axis, stacked.rank()), 0);
  return c.e.transpose(stacked, permutation);
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

/// A scan over any number of steps.
std::vector<Val> scanAtRun(NodeContext &c, Dim steps, const std::vector<Val> &states, const std::vector<Val> &inputs,
                           const ScanPlan &plan, const std::string &suffix) {
  Emitter &e = c.e;
  for (size_t k = 0; k < inputs.size(); ++k)
    c.requireShape(mayEqual(inputs[k].extent(c.normalizeAxis(plan.inputAxes[k], inputs[k].rank())), steps),
                   "the scanned operands differ in length");
  auto body = [&](const Val &iteration, const Val &, llvm::ArrayRef<Val> carried) {
    std::vector<Val> arguments(carried.begin(), carried.end());
    for (size_t k = 0; k < inputs.size(); ++k) {
      Val at = plan.inputReverse[k] ? e.sub(e.size(steps - 1), iteration) : iteration;
      arguments.push_back(e.gather(inputs[k], at, c.normalizeAxis(plan.inputAxes[k], inputs[k].rank())));
    }
    std::vector<Val> outputs = c.inlineGraph(c.attrGraph("body"), arguments, suffix + "/body");
    outputs.insert(outputs.begin(), e.scalar(DType::Bool, 1));
    return outputs;
  };
  size_t count = states.size();
  std::vector<Val> results = e.loop(e.size(steps), Val(), states, body);
  for (size_t k = count; k < results.size(); ++k)
    results[k] = arrangeScanned(c, results[k], plan.outputAxes[k - count], plan.outputReverse[k - count] != 0);
  return results;
}

/// One run of a Scan: final states, then the stacked results.
std::vector<Val> scan(NodeContext &c, std::vector<Val> states, const std::vector<Val> &inputs, const ScanPlan &plan,
                      const std::string &suffix) {
  const onnx::GraphProto &body = c.attrGraph("body");
  std::vector<std::vector<Val>> scanned(body.output_size() - states.size());
  Dim length = inputs[0].extent(c.normalizeAxis(plan.inputAxes[0], inputs[0].rank()));
  int64_t steps = length.valueOr(0);
  if (steps == 0 || steps > kMaxUnrolled)
    return scanAtRun(c, length, states, inputs, plan, suffix);
  for (int64_t t = 0; t < steps; ++t) {
    std::vector<Val> arguments = states;
    for (size_t k = 0; k < inputs.size(); ++k) {
      int64_t along = c.normalizeAxis(plan.inputAxes[k], inputs[k].rank());
      c.requireShape(inputs[k].dim(along) == steps, "the scanned operands differ in length");
      Dims dims = inputs[k].dims();
      dims.erase(dims.begin() + along);
      arguments.push_back(
          c.e.reshape(c.e.sliceAxis(inputs[k], along, plan.inputReverse[k] ? steps - 1 - t : t, 1), dims));
    }
    std::vector<Val> outputs = c.inlineGraph(body, arguments, suffix + "/" + std::to_string(t));
    if (Val::anyPoison(outputs))
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
  int64_t count = c.attrInt("num_scan_inputs"), most = static_cast<int64_t>(values.size());
  int64_t states = count < 1 ? -1 : most - count;
  if (states < 0 || body.input_size() != static_cast<int>(values.size()) || body.output_size() < states)
    fail("onnx-graph", "the body's inputs or outputs do not fit "
                       "num_scan_inputs and the operands");
  ScanPlan plan = planOf(c, count, body.output_size() - states);
  auto split = values.begin() + states;
  if (!first)
    return setAll(c, scan(c, std::vector<Val>(values.begin(), split), std::vector<Val>(split, values.end()), plan, ""));
  for (const Val &value : values)
    c.requireShape(value.rank() >= 1 && mayEqual(value.extent(0), values.front().extent(0)),
                   "the operands' batches differ");
  setAll(c, c.e.loop(
                c.e.size(values.front().extent(0)), Val(), {}, [&](const Val &batch, const Val &, llvm::ArrayRef<Val>) {
                  std::vector<Val> entry;
                  for (const Val &value : values)
                    entry.push_back(c.e.gather(value, batch, 0));
                  auto split = entry.begin() + states;
                  std::vector<Val> results =
                      scan(c, std::vector<Val>(entry.begin(), split), std::vector<Val>(split, entry.end()), plan, "");
                  results.insert(results.begin(), c.e.scalar(DType::Bool, 1));
                  return results;
                }));
}

} // namespace

std::vector<OpRows> controlOps() {
  using namespace types;
  const char *loop = "up to 64 iterations that are known at compile time are unrolled; tensors alone are carried "
                     "through others, of one type and rank";
  return {
      {"If",
       {1, 11, 13, 16, 19, 21, 23, 24, 25},
       ".>*",
       importIf,
       "else_branch,then_branch",
       {Bool},
       "branches that a run chooses agree in the type and rank of their results"},
      {"Loop",
       {1, 11, 13, 16, 19, 21, 23, 24, 25},
       "...*>*",
       importLoop,
       "body",
       {bitOf(DType::I64), types::Bool, types::Any},
       loop},
      {"Scan", {8}, "..*>*", importScan, "body,directions,num_scan_inputs", {}, loop},
      {"Scan",
       {9, 11, 16, 19, 21, 23, 24, 25},
       ".*>*",
       importScan,
       "body,num_scan_inputs,scan_input_axes,scan_input_directions,scan_output_"
       "axes,scan_output_directions",
       {},
       loop},
  };
}

} // namespace dmxc::onnxfe
