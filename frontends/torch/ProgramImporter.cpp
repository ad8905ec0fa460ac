//===- ProgramImporter.cpp - walks graphs and imports their nodes ---------===//
#include "ProgramImporter.h"
#include "AtenContext.h"
#include "KernelNodes.h"
#include "SymbolicExpr.h"

#include <algorithm>

namespace dmxc::torchfe {
namespace {

constexpr int kMaxDepth = 16;
/// Nodes after inlining.
constexpr int64_t kMaxNodes = 2'000'000;
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.", kBatching = "torch._functorch.predispatch.";

bool isPoison(const Arg &arg) {
  return std::any_of(arg.tensors.begin(), arg.tensors.end(), [](const Val &v) { return v && v.isPoison(); });
}

std::string nameOfNode(const Node &node, size_t index) {
  if (!node.name.empty())
    return node.name;
  std::string name;
  for (const Argument &output : node.outputs)
    forEachName(output, [&](const std::string &text) { name = name.empty() ? text : name; });
  return name.empty() ? node.target + "_" + std::to_string(index) : name;
}

/// What helps with those that torch takes apart, which are not listed here.
constexpr const char *kDecompose = "if torch has a decomposition of it, ep = ep.run_decompositions() before "
                                   "torch.export.save makes core operators of it";

/// Fails unless the table imports what a node calls.
void requireKnown(std::string_view target) {
  std::string_view name = operatorName(target);
  const AtenOp *known = AtenTable::get().find(name);
  if (!known)
    known = AtenTable::get().findInPlace(name);
  if (!known && !isAten(target))
    fail("op-unknown", "the operator is none of torch's ATen; of other libraries few operators are known here",
         {"write it with torch's own operators, or give it a kernel of your own: --kernels FILE"});
  if (!known) {
    std::string near = AtenTable::get().nearest(std::string(name));
    std::vector<std::string> helps{kDecompose};
    if (!near.empty())
      helps.push_back("did you mean '" + near + "'?");
    fail("op-unknown", "the operator is unknown", helps);
  }
  if (!known->row.import)
    fail("op-unsupported", known->row.note);
}

/// The last frame of a Python stack trace on one line: `model.py:12 in forward: return self.fc(x)`.
std::string lastFrame(const std::string &trace) {
  size_t file = trace.rfind("File \"");
  if (file == std::string::npos)
    return "";
  std::string text;
  for (char c : trace.substr(file, 400)) {
    bool space = c == '\n' || c == ' ';
    if (!space)
      text += c;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  }
  return text;
}

} // namespace

ProgramImporter::Uses::Uses(const Graph &graph) {
  findDead(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (dead[i])
      continue;
    for (const NamedArgument &input : graph.nodes[i].inputs)
      forEachName(input.value, [&](const std::string &name) { last[name] = i; });
  }
  for (const Argument &output : graph.outputs)
    forEachName(output, [&](const std::string &name) { last[name] = graph.nodes.size(); });
}

/// Alone, or between the tokens that order it among operators that have effects.
static bool isAssertion(const Node &node) {
  std::string_view target = node.target;
  if (target == "torch.ops.higher_order.with_effects" && node.inputs.size() > 1)
    if (const Argument &called = node.inputs[1].value; called.tag == "as_operator" && called.elements.size() == 1)
      target = called.elements[0].text;
  const AtenOp *op = AtenTable::get().find(operatorName(target));
  return op && op->row.import == ignoreAssertion;
}

std::vector<bool> ProgramImporter::Uses::read(const Node &node, size_t index) const {
  std::vector<bool> results;
  for (const Argument &output : node.outputs) {
    results.push_back(false);
    forEachName(output, [&](const std::string &name) { results.back() = results.back() || after(name, index); });
  }
  return results;
}

/// Whether what a node gives is storage of its own, which nothing has a view of yet.
static bool makesStorage(const Node &node) {
  static const std::set<std::string_view> makers = {"empty", "full",      "new_empty", "new_full",
                                                    "ones",  "new_zeros", "new_ones",  "zeros"};
  std::string_view name = operatorName(node.target);
  return makers.count(name.substr(0, name.find('.'))) != 0;
}

/// Whether an operator changes an operand, as far as its name says where it is not known here.
static bool isChanging(const Node &node) {
  std::string_view name = operatorName(node.target);
  name = name.substr(0, name.find('.'));
  return inPlaceOperator(node) || (name.ends_with("_") && !name.ends_with("__"));
}

/// The value that such an operator changes; empty where it is not one.
static std::string changedBy(const Node &node) {
  const AtenOp *op = inPlaceOperator(node);
  std::string parameter = "self", changed;
  int written = 0;
  for (size_t i = 0; op && i < op->schema.parameters.size(); ++i)
    if (op->schema.parameters[i].written)
      ++written, parameter = op->schema.parameters[i].name;
  for (const NamedArgument &input : node.inputs)
    if (input.name == parameter && written < 2)
      forEachName(input.value, [&](const std::string &name) { changed = name; });
  return changed;
}

/// From the end: dead are assertions and what gives values of which none is read by a node that is not dead. A node
/// that changes its operand is dead only where that is storage of its own, of which no live node reads anything: so are
/// tables that are filled for what does not read them.
void ProgramImporter::Uses::findDead(const Graph &graph) {
  std::set<std::string> read, made;
  for (const Node &node : graph.nodes)
    if (makesStorage(node))
      for (const Argument &output : node.outputs)
        forEachName(output, [&](const std::string &name) { made.insert(name); });
  auto addNames = [&](const Argument &argument) {
    forEachName(argument, [&](const std::string &name) { read.insert(name); });
  };
  // Views that are read later may stand before the node that changes what they are of: again with what was read.
  for (bool again = true; again;) {
    again = false;
    for (const Argument &output : graph.outputs)
      addNames(output);
    dead.assign(graph.nodes.size(), false);
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node &node = graph.nodes[i];
      bool gives = false, isRead = false;
      for (const Argument &output : node.outputs)
        forEachName(output, [&](const std::string &name) {
          gives = true;
          isRead |= read.count(name) != 0;
        });
      if (isChanging(node)) {
        inPlace = true;
        isRead |= made.count(changedBy(node)) == 0 || read.count(changedBy(node)) != 0;
      }
      dead[i] = isAssertion(node) || (gives && !isRead);
      if (dead[i])
        continue;
      for (const NamedArgument &input : node.inputs)
        forEachName(input.value, [&](const std::string &name) {
          const bool isNew = read.insert(name).second;
          again |= isNew && inPlace && made.count(name) != 0;
        });
    }
  }
}

const Arg &ProgramImporter::valueOf(const std::string &name, const Scope &scope) {
  auto found = scope.values.find(name);
  if (found == scope.values.end())
    fail("torch-graph", "the value '" + name + "' is defined nowhere before");
  return found->second;
}

Arg ProgramImporter::resolve(const Argument &argument, const Scope &scope) const {
  using Kind = Argument::Kind;
  switch (argument.kind) {
  case Kind::None:
    return Arg::none();
  case Kind::Ignored:
    return Arg::ignored();
  case Kind::Refused:
    fail("op-argument", "an argument of kind '" + argument.tag + "' has no tensor meaning");
  case Kind::Graph: {
    Arg arg;
    arg.kind = Arg::Kind::Graph;
    arg.graph = argument.graph.get();
    return arg;
  }
  case Kind::Type: {
    const int64_t number = argument.elements[0].integer;
    std::optional<DType> type = dtypeOfSchema(number), parts = dtypeOfComplexParts(number);
    if (!type && !parts)
      fail("op-dtype", "the element type " + schemaTypeName(number) + " has no tensor meaning here");
    return Arg::dtype(type ? *type : *parts, !type);
  }
  default:
    break;
  }
  if (!argument.list && argument.elements[0].kind == Element::Kind::Name)
    return valueOf(argument.elements[0].text, scope);
  Arg arg;
  arg.list = argument.list;
  arg.kind = argument.kind == Kind::Tensor  ? Arg::Kind::Tensor
             : argument.kind == Kind::Int   ? Arg::Kind::Int
             : argument.kind == Kind::Float ? Arg::Kind::Float
             : argument.kind == Kind::Bool  ? Arg::Kind::Bool
                                            : Arg::Kind::String;
  for (const Element &element : argument.elements)
    append(element, scope, arg);
  return arg;
}

/// One more element of a list, or the only one.
void ProgramImporter::append(const Element &element, const Scope &scope, Arg &arg) {
  switch (element.kind) {
  case Element::Kind::None:
    arg.tensors.push_back(Val());
    break;
  case Element::Kind::Name: {
    const Arg &value = valueOf(element.text, scope);
    if (value.kind != arg.kind || value.list)
      fail("op-argument", "the list has '" + element.text + "', which is " + value.describe());
    if (isBatched(value)) {
      arg.levels.resize(arg.tensors.size());
      arg.levels.insert(arg.levels.end(), value.levels.begin(), value.levels.end());
    }
    arg.tensors.insert(arg.tensors.end(), value.tensors.begin(), value.tensors.end());
    arg.ints.append(value.ints.begin(), value.ints.end());
    arg.numbers.insert(arg.numbers.end(), value.numbers.begin(), value.numbers.end());
    break;
  }
  case Element::Kind::Int:
  case Element::Kind::Bool:
    if (arg.kind == Arg::Kind::Int)
      arg.ints.push_back(element.integer);
    else
      arg.numbers.push_back(static_cast<double>(element.integer));
    break;
  case Element::Kind::Float:
    arg.numbers.push_back(element.number);
    break;
  case Element::Kind::Text:
    arg.text = element.text;
    break;
  }
}

void ProgramImporter::importNodes(const Graph &graph, Scope &scope) {
  Uses uses(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!uses.dead[i])
      importNode(graph.nodes[i], i, graph, scope, uses);
    // Folded intermediates can be as large as weights: let them go after their last reader.
    for (const NamedArgument &input : graph.nodes[i].inputs)
      forEachName(input.value, [&](const std::string &name) {
        if (!uses.after(name, i) && !scope.views.count(name) && !scope.kept.count(name))
          scope.values.erase(name);
      });
  }
}

void ProgramImporter::importNode(const Node &node, size_t index, const Graph &graph, Scope &scope, const Uses &uses) {
  std::string name = scope.prefix + nameOfNode(node, index);
  emitter.setNode(name);
  names.insert(name);
  try {
    if (++nodeCount > kMaxNodes)
      fail("op-unsupported", "the program has more than " + std::to_string(kMaxNodes) + " nodes after inlining");
    importKnown(node, name, graph, scope, index, uses);
  } catch (const NodeFailure &failure) {
    report(node, name, scope, failure);
    for (const Argument &output : node.outputs)
      forEachName(output, [&](const std::string &text) { scope.values[text] = Arg::tensor(Val::poison()); });
  }
}

void ProgramImporter::importKnown(const Node &node, const std::string &name, const Graph &graph, Scope &scope,
                                  size_t index, const Uses &uses) {
  std::string_view target = node.target;
  bool higherOrder = target.starts_with(kHigherOrder), symbolic = isSymbolic(node.target);
  bool batching = target.starts_with(kBatching);
  const dmir::KernelDecl *kernel = kernelOf(emitter, target);
  if (!kernel && !higherOrder && !symbolic && !batching)
    requireKnown(target); // what needs no operands is checked even behind a failed node
  bool poisoned = false;
  std::vector<Arg> operands;
  for (const NamedArgument &input : node.inputs) {
    operands.push_back(resolve(input.value, scope));
    poisoned |= isPoison(operands.back());
  }
  if (poisoned) {
    for (const Argument &output : node.outputs)
      forEachName(output, [&](const std::string &text) { scope.values[text] = Arg::tensor(Val::poison()); });
    return;
  }
  std::vector<Arg> results;
  if ((kernel || higherOrder || symbolic) && std::any_of(operands.begin(), operands.end(), isBatched))
    fail("op-unsupported", "the operator is not known inside of torch.vmap");
  if (kernel) {
    std::vector<std::pair<std::string, Arg>> arguments;
    for (size_t i = 0; i < operands.size(); ++i)
      arguments.emplace_back(node.inputs[i].name, operands[i]);
    results = torchfe::callKernel(emitter, name, *kernel, arguments);
  } else if (batching)
    results = importBatching(emitter, std::string(target.substr(kBatching.size())), operands);
  else if (higherOrder)
    results =
        importHigherOrder(node, std::string(target.substr(kHigherOrder.size())), name, scope, uses.read(node, index));
  else if (symbolic)
    results.push_back(*importSymbolic(emitter, node.target, operands));
  else
    results = importOperator(node, name, scope, index, uses);
  bindResults(node, std::move(results), graph, scope, index, uses);
}

std::vector<Arg> ProgramImporter::bindArguments(const AtenOp &op, bool inPlace, const Node &node,
                                                const Scope &scope) const {
  const std::vector<Parameter> &parameters = op.schema.parameters;
  std::vector<std::optional<Arg>> given(parameters.size());
  for (const NamedArgument &input : node.inputs) {
    auto found =
        std::find_if(parameters.begin(), parameters.end(), [&](const Parameter &p) { return p.name == input.name; });
    if (found == parameters.end() && inPlace && input.name == "self") // whatever the functional form calls it
      found = parameters.begin();
    if (found == parameters.end())
      fail("op-argument", "the operator has no argument '" + input.name + "'",
           {"it is " + std::string(op.row.signature)});
    std::optional<Arg> &place = given[found - parameters.begin()];
    if (place)
      fail("op-argument", "the argument '" + input.name + "' stands twice");
    place = coerce(*found, resolve(input.value, scope));
  }
  std::vector<Arg> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!given[i] && !parameters[i].otherwise && !parameters[i].optional)
      fail("op-argument", "the argument '" + parameters[i].name + "' is missing");
    arguments.push_back(given[i] ? *given[i] : parameters[i].otherwise.value_or(Arg::none()));
  }
  return arguments;
}

/// A value with the type and shape of the one whose place it takes.
Val ProgramImporter::asStored(const Val &value, const Val &before) {
  if (!before.isComplex())
    return emitter.broadcast(emitter.cast(value.isComplex() ? value.real() : value, before.dtype()), before.dims());
  const Val &re = value.isComplex() ? value.real() : value;
  Val im = value.isComplex() ? value.imaginary() : emitter.splat(re.dtype(), re.dims(), 0);
  return Val::complexOf(asStored(re, before.real()), asStored(im, before.imaginary()));
}

std::vector<Arg> ProgramImporter::importOperator(const Node &node, const std::string &name, Scope &scope, size_t index,
                                                 const Uses &uses) {
  std::string_view target = operatorName(node.target);
  const AtenOp *op = AtenTable::get().find(target);
  bool inPlace = !op;
  if (inPlace)
    op = AtenTable::get().findInPlace(target);
  std::vector<Arg> arguments = bindArguments(*op, inPlace, node, scope);
  if (std::any_of(arguments.begin(), arguments.end(), isBatched)) {
    if (inPlace || inPlaceOperator(node))
      fail("op-unsupported", "what operators change in place is not known inside of torch.vmap");
    return callWithLevels(*op, arguments, name, emitter);
  }
  bool complex = std::any_of(arguments.begin(), arguments.end(), hasComplex);
  std::vector<Arg> results = complex ? callWithComplex(*op, arguments, name, emitter)
                                     : callForSome(*op, arguments, name, emitter, uses.read(node, index));
  if (inPlace && changesShape(node)) {
    reshapeInPlace(*op, node, arguments, results.at(0), scope);
    return results;
  }
  for (size_t i = 0; i < op->schema.parameters.size(); ++i) {
    if (!op->schema.parameters[i].written && !(inPlace && i == 0))
      continue;
    if (results.empty() || results[0].tensors.size() != 1 || arguments[i].tensors.size() != 1)
      fail("op-unsupported", "the operator changes its argument in place in a way that is not known here");
    results[0] = Arg::tensor(asStored(results[0].tensors[0], arguments[i].tensors[0]));
    writeInPlace(*op, node, i, results[0], scope, index, uses);
  }
  if (!inPlace && uses.inPlace)
    noteViews(*op, node, arguments, results, scope);
  return results;
}

std::vector<Arg> ProgramImporter::inlineGraph(const Graph &graph, std::vector<Arg> arguments,
                                              const std::string &prefix) {
  if (depth >= kMaxDepth)
    fail("op-unsupported", "graphs are nested deeper than " + std::to_string(kMaxDepth) + " levels");
  if (arguments.size() != graph.inputs.size())
    fail("torch-graph", "the inner graph has " + std::to_string(graph.inputs.size()) + " inputs for " +
                            std::to_string(arguments.size()) + " operands");
  Scope inner;
  inner.prefix = prefix;
  for (size_t i = 0; i < arguments.size(); ++i)
    forEachName(graph.inputs[i], [&](const std::string &name) {
      inner.values[name] = arguments[i];
      inner.defined.insert(name);
      inner.given.insert(name);
      inner.outer.insert(name);
    });
  ++depth;
  importNodes(graph, inner);
  --depth;
  std::vector<Arg> results;
  for (const Argument &output : graph.outputs)
    results.push_back(resolve(output, inner));
  return results;
}

//===--- Results -------------------------------------------------------------------===//

void ProgramImporter::checkMeta(const std::string &name, const Val &value, const Graph &graph) {
  auto found = graph.tensors.find(name);
  if (found == graph.tensors.end() || value.isPoison() || !value.isTensor())
    return;
  const TensorMeta &meta = found->second;
  std::optional<DType> declared = dtypeOfSchema(meta.dtype);
  bool good = declared == value.dtype() && static_cast<int64_t>(meta.sizes.size()) == value.rank();
  for (size_t i = 0; good && i < meta.sizes.size(); ++i)
    if (meta.sizes[i].expression.empty())
      good = value.extent(i).valueOr(meta.sizes[i].number) == meta.sizes[i].number;
  if (good)
    return;
  std::string text;
  for (const SymInt &size : meta.sizes)
    text += (text.empty() ? "" : "x") + (size.expression.empty() ? std::to_string(size.number) : "?");
  Diagnostic differs{
      Severity::Warning, "torch-meta", path, name, "its result is not what the program says", ErrorKind::Model, {}};
  diagnostics.report(std::move(differs.note("the program says " + schemaTypeName(meta.dtype) + "[" + text +
                                            "], the operator gives " + value.describe())));
}

/// One of a list's tensors.
static Arg part(const Arg &list, size_t i) {
  Arg one = Arg::tensor(list.tensors[i]);
  if (i < list.levels.size())
    one.levels = {list.levels[i]};
  return one;
}

void ProgramImporter::bindOne(const std::string &name, Arg value, const Graph &graph, Scope &scope) {
  if (!scope.defined.insert(name).second)
    fail("torch-graph", "the value '" + name + "' is defined a second time");
  if (value.kind == Arg::Kind::Tensor && value.tensors.size() == 1 && value.tensors[0] && !isBatched(value))
    checkMeta(name, value.tensors[0], graph);
  scope.values[name] = std::move(value);
}

void ProgramImporter::bindResults(const Node &node, std::vector<Arg> results, const Graph &graph, Scope &scope,
                                  size_t index, const Uses &uses) {
  if (node.outputs.size() == 1 && node.outputs[0].list) {
    const std::vector<Element> &names = node.outputs[0].elements;
    if (results.size() != 1 || results[0].tensors.size() != names.size())
      fail("torch-graph", "the node has " + std::to_string(names.size()) + " results, the operator gives " +
                              std::to_string(results.empty() ? 0 : results[0].tensors.size()));
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i].kind == Element::Kind::Name)
        bindOne(names[i].text, part(results[0], i), graph, scope);
    return;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    forEachName(node.outputs[i], [&](const std::string &name) {
      if (i < results.size() && !results[i].isNone() && (results[i].tensors.empty() || results[i].tensors[0]))
        return bindOne(name, results[i], graph, scope);
      if (uses.after(name, index))
        fail("op-unsupported", "result " + std::to_string(i) + " ('" + name + "') is not available from this operator");
    });
}

void ProgramImporter::report(const Node &node, const std::string &name, const Scope &scope,
                             const NodeFailure &failure) {
  Diagnostic diagnostic{Severity::Error,  failure.id, path, name, node.target + ": " + failure.text,
                        ErrorKind::Model, {}};
  std::string operands;
  for (const NamedArgument &input : node.inputs)
    forEachName(input.value, [&](const std::string &text) {
      auto found = scope.values.find(text);
      std::string what = found == scope.values.end() ? "undefined" : found->second.describe();
      if (found != scope.values.end() && found->second.tensors.size() == 1 && found->second.tensors[0])
        what = found->second.tensors[0].describe();
      operands += (operands.empty() ? "'" : ", '") + text + "' " + what;
    });
  if (!operands.empty())
    diagnostic.note("operands: " + operands);
  if (!node.module.empty())
    diagnostic.note("in module " + node.module);
  if (std::string frame = lastFrame(node.stackTrace); !frame.empty())
    diagnostic.note("exported from " + frame);
  for (const std::string &help : emitter.helpsOf(failure))
    diagnostic.help(help);
  diagnostics.report(std::move(diagnostic));
}

} // namespace dmxc::torchfe
