//===- HigherOrder.cpp - nodes that run graphs of their own ---------------===//
#include "ProgramImporter.h"

#include <functional>

namespace dmxc::torchfe {
namespace {

/// A node's graphs, and the values before and behind them.
struct Operands {
  std::vector<Arg> before, behind;
  std::vector<const Graph *> graphs;
};

[[noreturn]] void refuse(const std::string &hop) {
  static const std::map<std::string, const char *> advice = {
      {"wrap_with_autocast", "export without torch.autocast, the model in the type that it shall compute in"},
      {"auto_functionalized", "operators of other libraries are not known here; write them with torch's own"},
      {"auto_functionalized_v2", "operators of other libraries are not known here; write them with torch's own"}};
  auto found = advice.find(hop);
  fail("op-unsupported", "the higher-order operator '" + hop + "' is not known here",
       found == advice.end() ? std::vector<std::string>() : std::vector<std::string>{found->second});
}

/// Whether the body computes as it stands: gradients mean nothing here, and autocast may be switched off, as models do
/// around what needs f32 (its settings are the device, the type, whether it is on, and whether casts are kept).
bool computesPlainly(const Node &node, const std::string &hop) {
  if (hop != "wrap_with_autocast")
    return hop == "wrap_with_set_grad_enabled";
  constexpr size_t kEnabled = 2;
  if (node.inputs.size() <= kEnabled)
    return false;
  const Argument &enabled = node.inputs[kEnabled].value;
  return enabled.kind == Argument::Kind::Bool && enabled.elements.size() == 1 && enabled.elements[0].integer == 0;
}

/// The elements of a list, each by itself.
std::vector<Arg> spread(const Arg &list) {
  std::vector<Arg> all;
  for (const Val &value : list.tensors)
    all.push_back(Arg::tensor(value));
  for (Dim value : list.ints)
    all.push_back(Arg::integer(value));
  return all;
}

std::vector<Val> tensorsOf(const std::vector<Arg> &values) {
  std::vector<Val> tensors;
  for (const Arg &value : values) {
    if (value.kind != Arg::Kind::Tensor)
      fail("op-unsupported", "an inner graph that a run decides on has " + value.describe() +
                                 " among its inputs or results; only tensors can be passed there");
    tensors.insert(tensors.end(), value.tensors.begin(), value.tensors.end());
  }
  return tensors;
}

std::vector<Arg> argumentsOf(llvm::ArrayRef<Val> values, const std::vector<Arg> &more) {
  std::vector<Arg> all;
  for (const Val &value : values)
    all.push_back(Arg::tensor(value));
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// A bool of one element that only a run knows, or what it is.
Val conditionOf(Emitter &e, const Arg &given) {
  Val value = given.numbers.size() == 1 ? e.scalar(DType::Bool, given.numbers[0]) : Val();
  if (!value && given.tensors.size() == 1)
    value = given.tensors[0];
  if (!value || !(value.isPoison() || value.elements().is(1)))
    fail("op-argument", "the condition is " + given.describe() + ", not one bool");
  return value.isPoison() ? value : e.reshape(e.cast(value, DType::Bool), {});
}

using Inline = std::function<std::vector<Val>(size_t graph, std::vector<Arg> arguments, const std::string &suffix)>;

/// torch.cond(condition, graph, graph, operands).
std::vector<Val> importCond(Emitter &e, const Operands &given, const Inline &inlined) {
  if (given.before.size() != 1 || given.graphs.size() != 2 || given.behind.size() > 1)
    fail("op-argument", "it takes a condition, two graphs and a list of operands");
  std::vector<Arg> operands = given.behind.empty() ? std::vector<Arg>() : spread(given.behind[0]);
  auto onTrue = [&] { return inlined(0, operands, "/then"); };
  auto onFalse = [&] { return inlined(1, operands, "/else"); };
  Val condition = conditionOf(e, given.before[0]);
  if (condition.isConstant())
    return condition.constant().asInt(0) ? onTrue() : onFalse();
  return e.branch(condition, onTrue, onFalse);
}

/// torch.while_loop: graphs of the condition and of the body, carried values, values that stay.
std::vector<Val> importWhile(Emitter &e, const Operands &given, const Inline &inlined) {
  if (!given.before.empty() || given.graphs.size() != 2 || given.behind.empty() || given.behind.size() > 2)
    fail("op-argument", "it takes two graphs and two lists of operands");
  std::vector<Val> carried = tensorsOf(spread(given.behind[0]));
  std::vector<Arg> more = given.behind.size() == 2 ? spread(given.behind[1]) : std::vector<Arg>();
  auto holds = [&](llvm::ArrayRef<Val> values) {
    std::vector<Val> results = inlined(0, argumentsOf(values, more), "/cond");
    return conditionOf(e, results.empty() ? Arg::none() : Arg::tensor(results[0]));
  };
  Val start = holds(carried);
  if (start.isPoison())
    return std::vector<Val>(carried.size(), Val::poison());
  return e.loop(Val(), start, carried, [&](const Val &, const Val &, llvm::ArrayRef<Val> values) {
    std::vector<Val> results = inlined(1, argumentsOf(values, more), "/body");
    if (results.size() != values.size())
      fail("torch-graph", "the body has " + std::to_string(results.size()) + " results for " +
                              std::to_string(values.size()) + " carried values");
    results.insert(results.begin(), holds(results)); // of a failed node too: what reads poison is poison
    return results;
  });
}

/// torch.scan: the body takes what is carried, one element of the first axis of each of `over`, and what stays; it
/// gives what is carried on, then what is stacked. Without anything carried that is torch.map.
std::vector<Val> goOver(Emitter &e, const std::vector<Val> &carried, const std::vector<Val> &over,
                        const std::vector<Arg> &more, const Inline &inlined) {
  if (over.empty())
    fail("op-argument", "there is no tensor to go over");
  std::optional<Dim> count;
  for (const Val &value : over) {
    if (value.rank() == 0 || !mayEqual(value.extent(0), count.value_or(value.extent(0))))
      fail("op-shape", "what it goes over must have first axes of one length, not " + value.describe());
    if (!count || value.extent(0).isStatic())
      count = value.extent(0);
  }
  return e.loop(e.size(*count), Val(), carried, [&](const Val &at, const Val &, llvm::ArrayRef<Val> values) {
    std::vector<Val> operands(values.begin(), values.end());
    for (const Val &value : over)
      operands.push_back(e.gather(value, at, 0));
    std::vector<Val> results = inlined(0, argumentsOf(operands, more), "/body");
    if (results.size() < values.size())
      fail("torch-graph", "the body has " + std::to_string(results.size()) + " results for " +
                              std::to_string(values.size()) + " carried values");
    results.insert(results.begin(), e.scalar(DType::Bool, 1));
    return results;
  });
}
/// scan's lists of operands are what is carried, what it goes over and what stays, map_impl's the last two.
std::vector<Val> importScan(Emitter &e, const Operands &given, const Inline &inlined) {
  if (!given.before.empty() || given.graphs.size() != 1 || given.behind.size() != 3)
    fail("op-argument", "it takes a graph and three lists of operands");
  return goOver(e, tensorsOf(spread(given.behind[0])), tensorsOf(spread(given.behind[1])), spread(given.behind[2]),
                inlined);
}
std::vector<Val> importMap(Emitter &e, const Operands &given, const Inline &inlined) {
  if (!given.before.empty() || given.graphs.size() != 1 || given.behind.size() != 2)
    fail("op-argument", "it takes a graph and two lists of operands");
  return goOver(e, {}, tensorsOf(spread(given.behind[0])), spread(given.behind[1]), inlined);
}

} // namespace

std::vector<Arg> ProgramImporter::importHigherOrder(const Node &node, const std::string &hop, const std::string &name,
                                                    Scope &scope, const std::vector<bool> &read) {
  Operands given;
  for (const NamedArgument &input : node.inputs)
    if (input.value.kind == Argument::Kind::Graph)
      given.graphs.push_back(input.value.graph.get());
    else
      (given.graphs.empty() ? given.before : given.behind).push_back(resolve(input.value, scope));
  std::vector<Arg> results;
  using Control = std::vector<Val> (*)(Emitter &, const Operands &, const Inline &);
  static const std::map<std::string, Control> controls = {
      {"cond", importCond}, {"while_loop", importWhile}, {"scan", importScan}, {"map_impl", importMap}};
  if (auto control = controls.find(hop); control != controls.end()) {
    Inline inlined = [&](size_t graph, std::vector<Arg> arguments, const std::string &suffix) {
      return tensorsOf(inlineGraph(*given.graphs[graph], std::move(arguments), name + suffix + "/"));
    };
    results = argumentsOf(control->second(emitter, given, inlined), {});
  } else if (hop == "flex_attention") {
    results = importFlexAttention(given.before, given.behind, given.graphs, name, read);
  } else if (given.graphs.size() == 1 && computesPlainly(node, hop)) { // what stands before the body are settings
    results = inlineGraph(*given.graphs[0], std::move(given.behind), name + "/");
  } else {
    refuse(hop);
  }
  bool flatten = node.outputs.size() == 1 && node.outputs[0].list;
  if (!flatten)
    return results;
  std::vector<Val> tensors;
  for (const Arg &result : results)
    tensors.insert(tensors.end(), result.tensors.begin(), result.tensors.end());
  return {Arg::tensorList(std::move(tensors))};
}

} // namespace dmxc::torchfe
