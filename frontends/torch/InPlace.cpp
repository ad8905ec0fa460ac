//===- InPlace.cpp - operators that change a value ------------------------===//
//
// DMIR has values only. A value that shares storage with another knows how it is made from that one: when an operator
// changes it, the storage's owner becomes a new value, and its other views are made again from that.
//
//===----------------------------------------------------------------------===//
#include "AtenContext.h"
#include "ProgramImporter.h"

#include <algorithm>

namespace dmxc::torchfe {
namespace {

bool isOneOf(const std::string &name, std::initializer_list<const char *> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Those that give their operand itself: dropout does in programs of inference.
bool givesOperand(const AtenOp &op) {
  return isOneOf(op.schema.name, {"alias.default", "detach.default", "dropout.default", "feature_dropout.default",
                                  "alpha_dropout.default"});
}

/// "Tensor(a)" on both sides of the signature.
bool givesViews(const AtenOp &op) {
  std::string_view signature = op.row.signature;
  bool single = signature.find("-> Tensor(a)") != std::string_view::npos;
  return givesOperand(op) || (single && signature.find("(a!)") == std::string_view::npos);
}

/// A conversion to another type, or one that is asked to copy.
bool copies(const AtenOp &op, const std::vector<Arg> &arguments, const std::vector<Arg> &results) {
  for (size_t i = 0; i < op.schema.parameters.size(); ++i)
    if (op.schema.parameters[i].name == "copy" && arguments[i].numbers.size() == 1 && arguments[i].numbers[0] != 0)
      return true;
  return results[0].tensors[0].dtype() != arguments[0].tensors[0].dtype();
}

/// What the operator's first parameter is called.
std::string baseOf(const Node &node, const AtenOp &op) {
  std::string base;
  for (const NamedArgument &input : node.inputs)
    if (!op.schema.parameters.empty() && input.name == op.schema.parameters[0].name && !input.value.list)
      forEachName(input.value, [&](const std::string &text) { base = text; });
  return base;
}

/// A part of `base` along an axis, as slice.Tensor and select.int give it.
View partOf(const std::string &base, const Val &whole, int64_t axis, Dim start, Dim size, bool dropsAxis) {
  Arg self = Arg::tensor(whole), dim = Arg::integer(axis);
  if (dropsAxis)
    return {base, AtenTable::get().find("select.int"), {self, dim, Arg::integer(start)}};
  return {base,
          AtenTable::get().find("slice.Tensor"),
          {self, dim, Arg::integer(start), Arg::integer(start + size), Arg::integer(1)}};
}

/// How the results of a view operator are made again: one recipe a result.
std::vector<View> recipesOf(const AtenOp &op, const std::string &base, const std::vector<Arg> &arguments,
                            const std::vector<Arg> &results) {
  const std::string &name = op.schema.name;
  const Val &whole = arguments[0].tensors[0];
  std::vector<View> views;
  if (results[0].list) { // split, chunk, unbind: parts in order along an axis
    int64_t axis = name.starts_with("dsplit.") ? 2 : name.starts_with("hsplit.") && whole.rank() > 1 ? 1 : 0;
    for (size_t i = 0; i < op.schema.parameters.size(); ++i)
      if (op.schema.parameters[i].name == "dim")
        axis = AtenContext::normalizeAxis(arguments[i].ints[0].valueOr(0), whole.rank());
    bool dropsAxis = name == "unbind.int";
    Dim start = 0;
    for (const Val &part : results[0].tensors) {
      Dim size = dropsAxis ? Dim(1) : part.extent(axis);
      views.push_back(partOf(base, whole, axis, start, size, dropsAxis));
      start += size;
    }
    return views;
  }
  bool mayCopy = isOneOf(name, {"reshape.default", "flatten.using_ints", "ravel.default", "contiguous.default",
                                "to.dtype", "to.device", "to.dtype_layout"});
  views.push_back({base, mayCopy ? nullptr : &op, arguments, givesOperand(op)});
  return views;
}

} // namespace

bool changesShape(const Node &node) {
  std::string_view name = operatorName(node.target);
  const AtenOp *op = AtenTable::get().find(name) ? nullptr : AtenTable::get().findInPlace(name);
  return op && givesViews(*op) && !givesOperand(*op);
}

const AtenOp *inPlaceOperator(const Node &node) {
  std::string_view name = operatorName(node.target);
  const AtenOp *op = AtenTable::get().find(name);
  if (!op)
    return AtenTable::get().findInPlace(name);
  bool writes = std::any_of(op->schema.parameters.begin(), op->schema.parameters.end(),
                            [](const Parameter &parameter) { return parameter.written; });
  return writes ? op : nullptr;
}

std::set<std::string> changedValues(const Graph &graph) {
  std::map<std::string, std::string> ownerOf;
  std::set<std::string> changed;
  auto owner = [&](const std::string &name) {
    auto found = ownerOf.find(name);
    return found == ownerOf.end() ? name : found->second;
  };
  for (const Node &node : graph.nodes) {
    const AtenOp *op = inPlaceOperator(node);
    if (!op)
      op = AtenTable::get().find(operatorName(node.target));
    else if (!changesShape(node))
      changed.insert(owner(baseOf(node, *op)));
    if (!op || (!inPlaceOperator(node) && !givesViews(*op)))
      continue;
    for (const Argument &output : node.outputs)
      forEachName(output, [&](const std::string &name) { ownerOf.emplace(name, owner(baseOf(node, *op))); });
  }
  return changed;
}

void ProgramImporter::noteViews(const AtenOp &op, const Node &node, const std::vector<Arg> &arguments,
                                const std::vector<Arg> &results, Scope &scope) const {
  std::string base = baseOf(node, op);
  bool tensors = !arguments.empty() && arguments[0].tensors.size() == 1 && !arguments[0].list;
  if (!givesViews(op) || base.empty() || !tensors || results.empty() || results[0].tensors.empty())
    return;
  if (copies(op, arguments, results))
    return;
  // What is contiguous already is taken as it is.
  bool owner = !scope.views.count(base) || scope.views.at(base).same;
  std::vector<View> views = recipesOf(op, base, arguments, results);
  bool kept = isOneOf(op.schema.name, {"contiguous.default", "to.dtype", "to.device", "to.dtype_layout"});
  if (owner && kept)
    views[0].same = true;
  size_t i = 0;
  for (const Argument &output : node.outputs)
    forEachName(output, [&](const std::string &name) {
      if (i < views.size() && !scope.defined.count(name) && scope.views.emplace(name, views[i]).second)
        scope.viewOrder.push_back(name);
      ++i;
    });
  scope.kept.insert(base); // it may have to be made again
}

Val ProgramImporter::callOperator(const AtenOp &op, std::vector<Arg> arguments) {
  bool complex = std::any_of(arguments.begin(), arguments.end(), hasComplex);
  auto call = complex ? callWithComplex : torchfe::callOperator;
  return call(op, std::move(arguments), op.schema.name, emitter).at(0).tensors.at(0);
}

/// What undoes a view that has the elements of its base in another order or shape; null for other views.
Val ProgramImporter::undone(const View &view, const Val &base, const Val &value) {
  const std::string &name = view.op->schema.name;
  std::vector<Arg> arguments = view.arguments;
  if (isOneOf(name, {"view.default", "unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims",
                     "unflatten.int", "view_as.default"}))
    return emitter.reshape(value, base.dims());
  if (name == "permute.default") {
    std::vector<int64_t> back(base.rank());
    for (size_t i = 0; i < back.size(); ++i)
      back[AtenContext::normalizeAxis(arguments[1].ints[i].valueOr(0), base.rank())] = i;
    return emitter.transpose(value, back);
  }
  arguments[0] = Arg::tensor(value);
  if (name.starts_with("movedim.") || name.starts_with("moveaxis."))
    std::swap(arguments[1], arguments[2]); // source, destination
  else if (name == "view.dtype")
    arguments[1] = Arg::dtype(base.dtype());
  else if (!isOneOf(name, {"transpose.int", "t.default", "swapaxes.default", "swapdims.default", "mT.default",
                           "numpy_T.default"})) // twice is as before
    return Val();
  return callOperator(*view.op, std::move(arguments));
}

Val ProgramImporter::putBack(const View &view, const Val &base, const Val &value) {
  if (base.isComplex() && value.isComplex()) {
    Val re = putBack(view, base.real(), value.real()), im = putBack(view, base.imaginary(), value.imaginary());
    return re && im ? Val::complexOf(re, im) : Val();
  }
  if (view.same)
    return value;
  if (!view.op)
    return Val();
  if (Val whole = undone(view, base, value))
    return whole;
  const std::string &name = view.op->schema.name;
  std::vector<Arg> arguments = view.arguments;
  if (name == "narrow.default") { // dim, start, length
    int64_t axis = AtenContext::normalizeAxis(arguments[1].ints[0].valueOr(0), base.rank());
    Dim start = arguments[2].ints[0];
    start += start.valueOr(0) < 0 ? base.extent(axis) : Dim(0);
    arguments = partOf("", base, axis, start, arguments[3].ints[0], false).arguments;
  }
  static const std::map<std::string, const char *> scatters = {{"select.int", "select_scatter.default"},
                                                               {"slice.Tensor", "slice_scatter.default"},
                                                               {"narrow.default", "slice_scatter.default"},
                                                               {"diagonal.default", "diagonal_scatter.default"},
                                                               {"linalg_diagonal.default", "diagonal_scatter.default"}};
  auto scatter = scatters.find(name);
  if (scatter == scatters.end())
    return Val();
  arguments[0] = Arg::tensor(base);
  arguments.insert(arguments.begin() + 1, Arg::tensor(value));
  return callOperator(*AtenTable::get().find(scatter->second), std::move(arguments));
}

/// An operator like transpose_ has given a tensor another shape: the storage goes on under a name of its own, of which
/// the tensor is a view like those that there were before.
void ProgramImporter::reshapeInPlace(const AtenOp &op, const Node &node, const std::vector<Arg> &arguments,
                                     const Arg &result, Scope &scope) {
  const std::string name = baseOf(node, op);
  if (name.empty())
    return;
  std::string storage = name + "'";
  while (scope.values.count(storage) || scope.defined.count(storage))
    storage += "'";
  scope.values[storage] = scope.values[name];
  for (std::set<std::string> *names : {&scope.given, &scope.outer})
    if (names->count(name))
      names->insert(storage);
  for (auto &[other, view] : scope.views)
    if (view.base == name)
      view.base = storage;
  if (auto view = scope.views.find(name); view != scope.views.end()) {
    scope.views.emplace(storage, view->second);
    *std::find(scope.viewOrder.begin(), scope.viewOrder.end(), name) = storage;
  }
  scope.views[name] = View{storage, &op, arguments};
  scope.viewOrder.push_back(name);
  scope.values[name] = result;
  nameResults(node, name, scope);
  scope.kept.insert({name, storage});
}

/// The results of a node are the tensor that it has changed.
void ProgramImporter::nameResults(const Node &node, const std::string &changed, Scope &scope) {
  for (const Argument &output : node.outputs)
    forEachName(output, [&](const std::string &text) {
      if (!scope.defined.count(text) && scope.views.emplace(text, View{changed, nullptr, {}, true}).second)
        scope.viewOrder.push_back(text);
    });
}

bool ProgramImporter::isAlone(const std::string &view, const Scope &scope, size_t index, const Uses &uses) {
  std::set<std::string> below = {view}, around; // what is made from the view, and the rest of the storage
  std::string root = view;
  for (auto found = scope.views.find(root); found != scope.views.end(); found = scope.views.find(root))
    around.insert(root = found->second.base);
  for (const std::string &name : scope.viewOrder) {
    const std::string &base = scope.views.at(name).base;
    if (below.count(base))
      below.insert(name);
    else if (around.count(base) && name != view)
      around.insert(name);
  }
  return !scope.given.count(root) && !scope.outer.count(root) &&
         std::none_of(around.begin(), around.end(), [&](const std::string &name) { return uses.after(name, index); });
}

/// An operator has changed a value: all that shares its storage is made again.
void ProgramImporter::writeInPlace(const AtenOp &op, const Node &node, size_t parameter, const Arg &written,
                                   Scope &scope, size_t index, const Uses &uses) {
  const std::vector<std::string> helps = {
      "ep.run_decompositions() before torch.export.save makes such programs functional"};
  std::string changed;
  for (const NamedArgument &input : node.inputs)
    if (input.name == op.schema.parameters[parameter].name)
      forEachName(input.value, [&](const std::string &text) { changed = text; });
  std::string owner = changed;
  std::set<std::string> fresh = {changed}; // have their new value
  scope.values[changed] = written;
  for (auto view = scope.views.find(owner); view != scope.views.end(); view = scope.views.find(owner)) {
    const std::string &base = view->second.base;
    if (!view->second.op && !view->second.same && isAlone(owner, scope, index, uses))
      break;
    Val value = putBack(view->second, scope.values[base].tensors.at(0), scope.values[owner].tensors.at(0));
    if (!value)
      fail("op-unsupported",
           "the operator changes '" + changed + "' and with it '" + base +
               (view->second.op ? "', in a way that is not known here" : "', unless it is a copy"),
           helps);
    scope.values[base] = Arg::tensor(value);
    fresh.insert(owner = base);
  }
  if (scope.outer.count(owner))
    fail("op-unsupported", "the operator changes '" + owner + "', a value of the graph around it", helps);
  // What is read later, and what that is made from.
  std::set<std::string> needed;
  for (size_t i = scope.viewOrder.size(); i-- > 0;)
    if (const std::string &name = scope.viewOrder[i]; needed.count(name) || uses.after(name, index)) {
      needed.insert(name);
      needed.insert(scope.views.at(name).base);
    }
  for (const std::string &name : scope.viewOrder) {
    const View &view = scope.views.at(name);
    if (!fresh.count(view.base) || fresh.count(name))
      continue;
    fresh.insert(name);
    if (!needed.count(name))
      continue;
    if (!view.op && !view.same)
      fail("op-unsupported", "'" + name + "' is read after '" + changed + "' has changed; it may be a copy or not",
           helps);
    if (view.same) {
      scope.values[name] = scope.values[view.base];
      continue;
    }
    std::vector<Arg> arguments = view.arguments;
    arguments[0] = scope.values[view.base];
    scope.values[name] = Arg::tensor(callOperator(*view.op, std::move(arguments)));
  }
  nameResults(node, changed, scope);
  scope.kept.insert(changed);
}

} // namespace dmxc::torchfe
