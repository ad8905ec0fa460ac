//===- GraphImporter.cpp - walks graphs and imports their nodes -----------===//
#include "GraphImporter.h"
#include "Definition.h"
#include "Differences.h"

#include "dmxc/Support/Stars.h"

#include "llvm/ADT/ScopeExit.h"
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <set>
#include <utility>

namespace dmxc::onnxfe {
namespace {

using google::protobuf::RepeatedPtrField;
using NodeField = RepeatedPtrField<onnx::NodeProto>;

/// Calls of functions and nested bodies; deeper ones are recursion or an
/// attack.
constexpr int kMaxDepth = 48;
/// Nodes after inlining and unrolling.
constexpr int64_t kMaxNodes = 2'000'000;

std::string normalDomain(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }
std::string shownDomain(const std::string &domain) { return domain.empty() ? "ai.onnx" : domain; }

/// Names a node reads, those captured by its subgraphs included.
void collectUses(const onnx::NodeProto &node, std::set<std::string> &names) {
  names.insert(node.input().begin(), node.input().end());
  auto graph = [&](const onnx::GraphProto &body) {
    std::set<std::string> inside;
    for (const auto &inner : body.node())
      collectUses(inner, inside);
    for (const auto &output : body.output())
      inside.insert(output.name());
    for (const auto &inner : body.node())
      for (const std::string &output : inner.output())
        inside.erase(output);
    for (const auto &input : body.input())
      inside.erase(input.name());
    for (const auto &tensor : body.initializer())
      inside.erase(tensor.name());
    names.insert(inside.begin(), inside.end());
  };
  for (const auto &attribute : node.attribute()) {
    if (attribute.has_g())
      graph(attribute.g());
    for (const auto &body : attribute.graphs())
      graph(body);
  }
}

/// How many names a node has before those that are left out at the end.
size_t countWithoutEnd(const RepeatedPtrField<std::string> &names) {
  size_t count = names.size();
  while (count && names[static_cast<int>(count) - 1].empty())
    --count;
  return count;
}

/// A length-delimited field that this libonnx does not know yet.
std::vector<std::string> unknownFields(const google::protobuf::Message &message, int number) {
  std::vector<std::string> found;
  const auto &set = message.GetReflection()->GetUnknownFields(message);
  for (int i = 0; i < set.field_count(); ++i)
    if (set.field(i).number() == number && set.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
      found.push_back(set.field(i).length_delimited());
  return found;
}

constexpr int kNodeOverload = 8, kFunctionAttributeProto = 11, kFunctionOverload = 13;

std::string functionKey(const std::string &domain, const std::string &name, const std::vector<std::string> &overload) {
  return normalDomain(domain) + ":" + name + ":" + (overload.empty() ? "" : overload.back());
}

/// Constant nodes whose result a later Constant node defines again. Other
/// runtimes let the last one win, and exported models exist that need it.
std::set<int> overriddenConstants(const NodeField &nodes) {
  std::map<std::string, int> last;
  std::set<int> overridden;
  for (int i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op_type() != "Constant" || !normalDomain(nodes[i].domain()).empty() || nodes[i].output_size() != 1)
      continue;
    auto [place, isNew] = last.try_emplace(nodes[i].output(0), i);
    if (!isNew) {
      overridden.insert(place->second);
      place->second = i;
    }
  }
  return overridden;
}

/// The order to import nodes in: the file's, except where a node reads what a
/// later one writes. Nodes in a cycle come last.
std::vector<int> topologicalOrder(const NodeField &nodes, const std::vector<std::set<std::string>> &uses,
                                  const std::set<int> &leftOut) {
  std::map<std::string, int> producer;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i].output())
      if (!output.empty() && !leftOut.count(i))
        producer.emplace(output, i);
  std::vector<int> waiting(nodes.size(), 0), order;
  std::vector<std::vector<int>> readers(nodes.size());
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &name : uses[i])
      if (auto found = producer.find(name); found != producer.end() && found->second != i) {
        readers[found->second].push_back(i);
        ++waiting[i];
      }
  std::set<int> ready;
  for (int i = 0; i < nodes.size(); ++i)
    if (!waiting[i] && !leftOut.count(i))
      ready.insert(i);
  while (!ready.empty()) {
    int next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (int reader : readers[next])
      if (!--waiting[reader])
        ready.insert(reader);
  }
  for (int i = 0; i < nodes.size(); ++i)
    if (waiting[i])
      order.push_back(i);
  return order;
}

} // namespace

const Val *Scope::find(const std::string &name) const {
  for (const Scope *scope = this; scope; scope = scope->parent)
    if (auto found = scope->values.find(name); found != scope->values.end())
      return &found->second;
  return nullptr;
}

Val Scope::lookup(const std::string &name) const {
  const Val *found = find(name);
  return found ? *found : Val();
}

GraphImporter::GraphImporter(const onnx::ModelProto &model, const ImportOptions &options, TensorReader &tensors,
                             Emitter &emitter, Diagnostics &diagnostics)
    : options(options), tensors(tensors), emitter(emitter), diagnostics(diagnostics) {
  for (const auto &import : model.opset_import())
    opsets[normalDomain(import.domain())] = import.version();
  if (model.ir_version() < 3) // the opset was implied then
    opsets.try_emplace("", 1);
  declared = declaredShapes(model.graph());
  ranks = declaredRanks(model.graph());
  fromPytorch = llvm::StringRef(model.producer_name()).starts_with("pytorch");
  for (const auto &proto : model.functions()) {
    Function function{&proto, {}, {}};
    for (const auto &import : proto.opset_import())
      function.opsets[normalDomain(import.domain())] = import.version();
    for (const std::string &bytes : unknownFields(proto, kFunctionAttributeProto)) {
      onnx::AttributeProto attribute;
      if (attribute.ParseFromString(bytes))
        function.defaults.push_back(std::move(attribute));
    }
    functions[functionKey(proto.domain(), proto.name(), unknownFields(proto, kFunctionOverload))] = std::move(function);
  }
}

Scope GraphImporter::mainScope() { return Scope{nullptr, &opsets, nullptr, "", {}, &declared, &ranks}; }

void GraphImporter::bind(Scope &scope, const std::string &name, Val value) {
  if (scope.values.count(name)) {
    Diagnostic diagnostic{Severity::Error,
                          "onnx-graph",
                          options.path,
                          name,
                          "the name '" + name + "' is defined twice in one graph",
                          ErrorKind::Model,
                          {}};
    report(std::move(diagnostic));
  }
  scope.values[name] = std::move(value);
}

void GraphImporter::bindInitializers(const onnx::GraphProto &graph, Scope &scope) {
  auto bindOne = [&](const std::string &name, Result<StoredTensor> tensor) {
    if (tensor)
      return bind(scope, name, emitter.stored(tensor->tensor, tensor->path, tensor->offset, name));
    Diagnostic diagnostic{Severity::Error,
                          "onnx-tensor",
                          options.path,
                          name,
                          "the tensor '" + name + "' " + tensor.error().message,
                          tensor.error().kind,
                          {}};
    report(std::move(diagnostic));
    scope.values[name] = Val::poison();
  };
  for (const auto &tensor : graph.initializer())
    bindOne(tensor.name(), tensors.read(tensor));
  for (const auto &sparse : graph.sparse_initializer())
    bindOne(sparse.values().name(), tensors.read(sparse));
}

void GraphImporter::importNodes(const NodeField &nodes, const RepeatedPtrField<onnx::ValueInfoProto> &outputs,
                                Scope &scope) {
  std::vector<std::set<std::string>> uses(nodes.size());
  for (int i = 0; i < nodes.size(); ++i)
    collectUses(nodes[i], uses[i]);
  std::set<int> overridden = overriddenConstants(nodes);
  for (int i : overridden) {
    Diagnostic diagnostic{Severity::Warning,
                          "onnx-graph",
                          options.path,
                          scope.prefix + nodes[i].name(),
                          "its constant is defined again later; the last definition is used",
                          ErrorKind::Model,
                          {}};
    report(std::move(diagnostic.note("the constant is '" + nodes[i].output(0) + "'")));
  }
  std::vector<int> order = topologicalOrder(nodes, uses, overridden);
  std::map<std::string, size_t> lastUse;
  for (size_t k = 0; k < order.size(); ++k)
    for (const std::string &name : uses[order[k]])
      lastUse[name] = k;
  std::set<std::string> kept;
  for (const auto &output : outputs)
    kept.insert(output.name());
  for (size_t k = 0; k < order.size(); ++k) {
    importNode(nodes[order[k]], order[k], scope);
    // Folded intermediates can be as large as weights: let them go after their
    // last reader.
    for (const std::string &name : uses[order[k]])
      if (lastUse[name] == k && !kept.count(name))
        scope.values.erase(name);
  }
}

std::vector<Val> GraphImporter::tryGraph(const onnx::GraphProto &graph, Scope &outer, const std::string &prefix,
                                         std::vector<Diagnostic> &problems) {
  auto before = std::exchange(waiting, &problems);
  auto after = llvm::make_scope_exit([&] { waiting = before; });
  return inlineGraph(graph, outer, {}, prefix);
}

std::vector<Val> GraphImporter::inlineGraph(const onnx::GraphProto &graph, Scope &outer, const std::vector<Val> &inputs,
                                            const std::string &prefix) {
  if (depth >= kMaxDepth)
    fail("op-unsupported", "graphs are nested deeper than " + std::to_string(kMaxDepth) + " levels");
  Scope scope{&outer, outer.opsets, outer.functionAttributes, prefix + "/"};
  for (int i = 0; i < graph.input_size() && i < static_cast<int>(inputs.size()); ++i)
    scope.values[graph.input(i).name()] = inputs[i];
  bindInitializers(graph, scope);
  ++depth;
  importNodes(graph.node(), graph.output(), scope);
  --depth;
  std::vector<Val> results;
  for (const auto &output : graph.output()) {
    Val value = scope.lookup(output.name());
    if (!value)
      fail("onnx-graph",
           "the subgraph '" + graph.name() + "' has the output '" + output.name() + "', which nothing computes");
    results.push_back(std::move(value));
  }
  return results;
}

//===--- One node
//---------------------------------------------------------------===//

void GraphImporter::importNode(const onnx::NodeProto &node, int index, Scope &scope) {
  std::string domain = normalDomain(node.domain());
  std::string name = node.name();
  for (int i = 0; name.empty() && i < node.output_size(); ++i)
    name = node.output(i);
  if (name.empty())
    name = node.op_type() + "_" + std::to_string(index);
  name = scope.prefix + name;
  emitter.setNode(name);
  names.insert(name);
  std::vector<Val> operands;
  try {
    if (++nodeCount > kMaxNodes)
      fail("op-unsupported",
           "the model has more than " + std::to_string(kMaxNodes) + " nodes after inlining and unrolling");
    importKnown(node, domain, name, scope);
  } catch (const NodeFailure &failure) {
    for (const std::string &input : node.input())
      operands.push_back(input.empty() ? Val() : scope.lookup(input));
    report(node, domain, name, scope, failure, operands);
    for (const std::string &output : node.output())
      if (!output.empty())
        scope.values[output] = Val::poison();
  }
}

const OpRow &GraphImporter::findRow(const onnx::NodeProto &node, const std::string &domain, Scope &scope) const {
  const OpTable &table = OpTable::get();
  const std::string &op = node.op_type();
  if (!table.knows(domain, op)) {
    std::string near = domain.empty() ? table.nearest(op) : "";
    std::vector<std::string> helps{"--kernels FILE gives the operator a kernel of your own"};
    if (!near.empty())
      helps.insert(helps.begin(), "did you mean '" + near + "'?");
    fail("op-unknown", "the operator is unknown", helps);
  }
  auto imported = scope.opsets->find(domain);
  if (imported == scope.opsets->end())
    fail("op-unknown", "the model imports no opset of domain " + shownDomain(domain));
  const OpRow *row = table.find(domain, op, imported->second);
  if (!row)
    fail("op-unknown", "the operator exists since opset " + std::to_string(table.firstVersion(domain, op)) +
                           ", the model imports " + std::to_string(imported->second));
  return *row;
}

const GraphImporter::Function *GraphImporter::findFunction(const onnx::NodeProto &node,
                                                           const std::string &domain) const {
  auto found = functions.find(functionKey(domain, node.op_type(), unknownFields(node, kNodeOverload)));
  return found == functions.end() ? nullptr : &found->second;
}

AttributeMap GraphImporter::resolveAttributes(const onnx::NodeProto &node, const Scope &scope) const {
  AttributeMap attributes;
  for (const auto &attribute : node.attribute()) {
    const onnx::AttributeProto *actual = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      if (!scope.functionAttributes)
        fail("op-attribute", "the attribute '" + attribute.name() + "' refers to '" + attribute.ref_attr_name() +
                                 "' outside of a function");
      auto found = scope.functionAttributes->find(attribute.ref_attr_name());
      if (found == scope.functionAttributes->end())
        continue; // the caller left it out: the operator's default holds
      actual = found->second;
    }
    if (!attributes.emplace(attribute.name(), actual).second)
      fail("op-attribute", "the attribute '" + attribute.name() + "' stands twice");
  }
  return attributes;
}

void GraphImporter::importKnown(const onnx::NodeProto &node, const std::string &domain, const std::string &name,
                                Scope &scope) {
  AttributeMap attributes = resolveAttributes(node, scope);
  const dmir::KernelDecl *kernel = findKernel(node, domain, scope);
  const Function *function = kernel ? nullptr : findFunction(node, domain);
  const OpRow *row = kernel || function ? nullptr : &findRow(node, domain, scope);
  NodeAttributes own;
  if (row && !row->import)
    fail("op-unsupported", row->note);
  if (!function)
    for (const auto &[key, attribute] : attributes)
      own[key] = attributeOf(*attribute);
  if (row) { // what needs no operands is checked even behind a failed node
    requireAttributes(*row, own);
    requireCounts(*row, countWithoutEnd(node.input()), countWithoutEnd(node.output()));
  }
  std::vector<Val> operands;
  bool poisoned = false;
  for (const std::string &input : node.input()) {
    const Val *found = input.empty() ? nullptr : scope.find(input);
    if (!input.empty() && !found)
      fail("onnx-graph", "the operand '" + input + "' is defined nowhere");
    Val value = found ? *found : Val(); // a null value: an optional operand the
                                        // caller of a function left out
    poisoned |= value && value.isPoison();
    operands.push_back(std::move(value));
  }
  if (poisoned) {
    for (const std::string &output : node.output())
      if (!output.empty())
        scope.values[output] = Val::poison();
    return;
  }
  if (kernel)
    importKernel(*kernel, node, name, own, operands, scope);
  else if (function)
    inlineFunction(*function, node, attributes, operands, name, scope);
  else
    importOperator(*row, node, domain, name, std::move(own), std::move(operands), scope);
}

void GraphImporter::importOperator(const OpRow &row, const onnx::NodeProto &node, const std::string &domain,
                                   const std::string &name, NodeAttributes attributes, std::vector<Val> operands,
                                   Scope &scope) {
  if (node.output_size() == 0)
    fail("onnx-graph", "the node has no results");
  requireTypes(row, operands);
  NodeContext context(row, scope.opsets->at(domain), name, std::move(operands), std::move(attributes),
                      {node.output().begin(), node.output().end()}, emitter, NodePlace{*this, scope, tensors, node});
  row.import(context);
  context.tieRequirements();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    auto found = context.results().find(i);
    if (found == context.results().end())
      fail("op-unsupported",
           "result " + std::to_string(i) + " ('" + node.output(i) + "') is not available from this operator");
    bind(scope, node.output(i), found->second);
  }
}

void GraphImporter::inlineFunction(const Function &function, const onnx::NodeProto &node,
                                   const AttributeMap &attributes, const std::vector<Val> &operands,
                                   const std::string &name, Scope &scope) {
  if (depth >= kMaxDepth)
    fail("op-unsupported",
         "functions call each other deeper than " + std::to_string(kMaxDepth) + " levels (a recursion?)");
  const onnx::FunctionProto &proto = *function.proto;
  AttributeMap actual = attributes;
  for (const onnx::AttributeProto &attribute : function.defaults)
    actual.emplace(attribute.name(), &attribute);
  for (const auto &[key, attribute] : attributes) {
    bool declared = std::find(proto.attribute().begin(), proto.attribute().end(), key) != proto.attribute().end();
    for (const onnx::AttributeProto &known : function.defaults)
      declared |= known.name() == key;
    if (!declared)
      fail("op-attribute", "the model's function '" + proto.name() + "' has no attribute '" + key + "'");
  }
  if (static_cast<int>(operands.size()) > proto.input_size() || node.output_size() > proto.output_size())
    fail("op-operand", "the model's function '" + proto.name() + "' has " + std::to_string(proto.input_size()) +
                           " operands and " + std::to_string(proto.output_size()) + " results");
  Scope inner{nullptr, &function.opsets, &actual, name + "/"};
  for (int i = 0; i < proto.input_size(); ++i)
    inner.values[proto.input(i)] = i < static_cast<int>(operands.size()) ? operands[i] : Val();
  RepeatedPtrField<onnx::ValueInfoProto> outputs;
  for (const std::string &output : proto.output())
    outputs.Add()->set_name(output);
  ++depth;
  importNodes(proto.node(), outputs, inner);
  --depth;
  for (int i = 0; i < node.output_size(); ++i) {
    Val value = inner.lookup(proto.output(i));
    if (!value)
      fail("onnx-graph",
           "the function '" + proto.name() + "' has the output '" + proto.output(i) + "', which nothing computes");
    if (!node.output(i).empty())
      bind(scope, node.output(i), value);
  }
}

void GraphImporter::report(const onnx::NodeProto &node, const std::string &domain, const std::string &name,
                           const Scope &scope, const NodeFailure &failure, const std::vector<Val> &operands) {
  auto opset = scope.opsets->find(domain);
  std::string text = node.op_type() + " (" + shownDomain(domain) +
                     (opset == scope.opsets->end() ? "" : " opset " + std::to_string(opset->second)) +
                     "): " + failure.text;
  Diagnostic diagnostic{Severity::Error, failure.id, options.path, name, text, ErrorKind::Model, {}};
  std::string list;
  for (int i = 0; i < node.input_size(); ++i)
    list += (i ? ", " : "") + (node.input(i).empty()
                                   ? std::string("(none)")
                                   : "'" + node.input(i) + "' " + (operands[i] ? operands[i].describe() : "undefined"));
  if (!list.empty())
    diagnostic.note("operands: " + list);
  for (const std::string &help : emitter.helpsOf(failure))
    diagnostic.help(help);
  report(std::move(diagnostic));
}

bool GraphImporter::isState(const std::string &input, const std::string &output) const {
  return std::any_of(options.states.begin(), options.states.end(), [&](const auto &pair) {
    std::optional<std::vector<std::string>> stars = starsOf(pair.first, input);
    return stars && withStars(pair.second, *stars) == output;
  });
}

void GraphImporter::noteDifference(const std::string &row, const std::string &node) { differing[row].push_back(node); }

void GraphImporter::reportDifferences() {
  for (const auto &[name, nodes] : differing)
    if (const Difference *row = findDifference(name))
      report({Severity::Note,
              "onnx-difference",
              options.path,
              "",
              noteOf(*row, static_cast<int64_t>(nodes.size()), nodes.front(), fromPytorch),
              ErrorKind::Model,
              {}});
}

void GraphImporter::report(Diagnostic diagnostic) {
  if (waiting)
    waiting->push_back(std::move(diagnostic));
  else
    diagnostics.report(std::move(diagnostic));
}

} // namespace dmxc::onnxfe
