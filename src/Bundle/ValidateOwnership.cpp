//===- ValidateOwnership.cpp - graphs that tasks of other graphs own -------===//
#include "dmxc/Bundle/Validate.h"

#include "schemas/BundleFormat.h"

#include <map>
#include <set>

namespace dmxc::bundle {

namespace {

using dmx::format::kHostTarget;
using dmx::format::kMaxNesting;

/// dtype and rank of a tensor between a task and its graph.
struct Form {
  DType dtype = DType::F32;
  size_t rank = 0;
  bool operator==(const Form &) const = default;
  std::string str() const { return std::string(dtypeName(dtype)) + " of rank " + std::to_string(rank); }
};

class OwnershipChecker {
public:
  OwnershipChecker(const GraphFile &file, size_t limit) : file(file), limit(limit) {}
  std::vector<Problem> run(const std::vector<EntryPoint> &entryPoints);

private:
  void report(const std::string &message) {
    if (problems.size() < limit)
      problems.push_back({where, message});
  }
  void own(const GraphDesc &owner, const TaskDesc &task, const std::string &name);
  void checkInputs(const GraphDesc &owner, const TaskDesc &task, const GraphDesc &graph);
  void checkOutputs(const GraphDesc &owner, const TaskDesc &task, const GraphDesc &graph);
  void checkNesting(const GraphDesc &graph);
  /// Nothing when there is no such buffer.
  static std::optional<Form> formOf(const GraphDesc &graph, int64_t id) {
    if (id < 0 || static_cast<size_t>(id) >= graph.buffers.size())
      return std::nullopt;
    return Form{graph.buffers[id].dtype, graph.buffers[id].shape.size()};
  }
  static std::map<int64_t, Form> forms(const GraphDesc &graph, BufferKind kind) {
    std::map<int64_t, Form> all;
    for (const BufferDesc &buffer : graph.buffers)
      if (buffer.kind == kind)
        all[buffer.index] = {buffer.dtype, buffer.shape.size()};
    return all;
  }

  const GraphFile &file;
  size_t limit;
  std::map<std::string, const GraphDesc *> owners; ///< by the owned graph's name
  std::string where;
  std::vector<Problem> problems;
};

void OwnershipChecker::checkInputs(const GraphDesc &owner, const TaskDesc &task, const GraphDesc &graph) {
  std::vector<std::optional<Form>> given;
  if (task.kind == TaskKind::Loop)
    given = {Form{DType::I64, 0}, Form{DType::Bool, 0}};
  for (const std::vector<int64_t> &list : {task.carried, task.buffers})
    for (int64_t id : list)
      given.push_back(formOf(owner, id));
  for (const auto &[index, form] : forms(graph, BufferKind::Input)) {
    if (index < 0 || static_cast<size_t>(index) >= given.size())
      report("graph '" + graph.name + "' has input " + std::to_string(index) + ", but gets " +
             std::to_string(given.size()) + " inputs");
    else if (given[index] && *given[index] != form)
      report("input " + std::to_string(index) + " of graph '" + graph.name + "' is " + form.str() + ", but it gets " +
             given[index]->str());
  }
}

void OwnershipChecker::checkOutputs(const GraphDesc &owner, const TaskDesc &task, const GraphDesc &graph) {
  bool loop = task.kind == TaskKind::Loop;
  int64_t carried = static_cast<int64_t>(task.carried.size());
  std::map<int64_t, Form> outputs = forms(graph, BufferKind::Output), given;
  int64_t expected = task.outputCount() + loop;
  if (static_cast<int64_t>(outputs.size()) != expected ||
      (expected && (outputs.begin()->first != 0 || outputs.rbegin()->first != expected - 1)))
    return report("graph '" + graph.name + "' does not have just outputs 0 to " + std::to_string(expected - 1));
  for (auto [index, form] : outputs) {
    if (!loop || index > carried) {
      form.rank += loop; // a scan output is stacked
      given[index - loop] = form;
      continue;
    }
    std::optional<Form> wanted = index ? formOf(owner, task.carried[index - 1]) : Form{DType::Bool, 0};
    if (wanted && *wanted != form)
      report("output " + std::to_string(index) + " of graph '" + graph.name + "' is " + form.str() + ", expected " +
             wanted->str());
    if (index)
      given[index - 1] = form;
  }
  int64_t position = &task - owner.tasks.data();
  for (const BufferDesc &buffer : owner.buffers)
    if (auto it = given.find(buffer.index); buffer.kind == BufferKind::Result && buffer.task == position &&
                                            it != given.end() && it->second != Form{buffer.dtype, buffer.shape.size()})
      report("output " + std::to_string(buffer.index) + " is " + it->second.str() + ", but its result buffer is " +
             Form{buffer.dtype, buffer.shape.size()}.str());
  for (const DimDesc &dim : owner.dims)
    if (auto it = given.find(dim.output);
        dim.task == position && it != given.end() && dim.axis >= static_cast<int64_t>(it->second.rank))
      report("dim '" + dim.name + "' is read from axis " + std::to_string(dim.axis) + " of output " +
             std::to_string(dim.output) + ", which is " + it->second.str());
}

void OwnershipChecker::own(const GraphDesc &owner, const TaskDesc &task, const std::string &name) {
  const GraphDesc *graph = file.find(name);
  if (!graph)
    return report("there is no graph '" + name + "'");
  if (!owners.emplace(name, &owner).second)
    return report("graph '" + name + "' is another task's already; a graph has one owner");
  checkInputs(owner, task, *graph);
  checkOutputs(owner, task, *graph);
  for (const QueueDesc &queue : graph->queues)
    if (queue.target != kHostTarget)
      report("graph '" + name + "' has a queue of target '" + queue.target + "'; owned graphs run on '" +
             std::string(kHostTarget) + "' only");
}

void OwnershipChecker::checkNesting(const GraphDesc &graph) {
  unsigned depth = 0;
  for (auto it = owners.find(graph.name); it != owners.end(); it = owners.find(it->second->name))
    if (++depth > kMaxNesting)
      return report("it is nested deeper than " + std::to_string(kMaxNesting) + " levels or in itself");
}

std::vector<Problem> OwnershipChecker::run(const std::vector<EntryPoint> &entryPoints) {
  for (const GraphDesc &graph : file.graphs)
    for (size_t i = 0; i < graph.tasks.size(); ++i) {
      where = "graph '" + graph.name + "', task " + std::to_string(i) + " (" + graph.tasks[i].name + ")";
      for (const std::string &name : graph.tasks[i].ownedGraphs())
        own(graph, graph.tasks[i], name);
    }
  std::map<std::string, const EntryPoint *> entries;
  for (const EntryPoint &entry : entryPoints)
    entries[entry.name] = &entry;
  std::set<std::string> names;
  for (const GraphDesc &graph : file.graphs) {
    where = "graph '" + graph.name + "'";
    if (!names.insert(graph.name).second)
      report("another graph has the same name");
    checkNesting(graph);
    bool owned = owners.count(graph.name), entry = entries.count(graph.name);
    if (owned && entry)
      report("it is owned by a task and the graph of an entry point");
    if (!owned && !entry && !entryPoints.empty())
      report("nothing uses it");
  }
  return std::move(problems);
}

} // namespace

std::vector<Problem> validateOwnership(const GraphFile &file, const std::vector<EntryPoint> &entryPoints,
                                       size_t limit) {
  return OwnershipChecker(file, limit).run(entryPoints);
}

} // namespace dmxc::bundle
