//===- InspectDims.cpp - dims, constraints and owned graphs ---------------===//
#include "InspectView.h"

#include <algorithm>

namespace dmxc::tools {

using namespace bundle;

namespace {

/// Where a dim's value comes from.
std::string sourceOf(const GraphDesc &graph, const DimDesc &dim) {
  if (dim.isRoom)
    return "room of the caller's tensors, at least " + dim.expr->str();
  if (dim.expr)
    return "= " + dim.expr->str();
  if (dim.next)
    return "a length of states, then " + dim.next->str();
  if (dim.task < 0)
    return "input " + std::to_string(dim.input) + ", axis " + std::to_string(dim.axis);
  std::string task = "task " + std::to_string(dim.task);
  if (static_cast<size_t>(dim.task) < graph.tasks.size())
    task += " (" + graph.tasks[static_cast<size_t>(dim.task)].name + ")";
  return dim.output < 0 ? task + " returns " + std::to_string(dim.result)
                        : task + ", output " + std::to_string(dim.output) + ", axis " + std::to_string(dim.axis);
}

Json boundJson(const Expr &bound) { return bound == Expr(INT64_MAX) ? Json("unbounded") : exprJson(bound); }

Table dimTable(const GraphDesc &graph) {
  Table table{"dims of '" + graph.name + "'", {"name", "from", "min", "max"}, {}};
  for (const DimDesc &dim : graph.dims) {
    bool returned = dim.task >= 0;
    table.add({dim.name, sourceOf(graph, dim), dim.expr ? Json("") : boundJson(returned ? dim.lower : Expr(dim.min)),
               dim.expr ? Json("") : boundJson(returned ? dim.upper : Expr(dim.max))});
  }
  return table;
}

Table constraintTable(const GraphDesc &graph) {
  Table table{"constraints of '" + graph.name + "'", {"left", "relation", "right", "text"}, {}};
  for (const ConstraintDesc &constraint : graph.constraints)
    table.add(
        {constraint.lhs.str(), std::string(relationName(constraint.relation)), constraint.rhs.str(), constraint.text});
  return table;
}

} // namespace

std::vector<size_t> taskStages(const GraphDesc &graph) {
  auto ends = stageEnds(graph);
  if (!ends || ends->size() < 2)
    return {};
  std::vector<size_t> stages;
  for (size_t i = 0; i < graph.tasks.size(); ++i)
    stages.push_back(
        static_cast<size_t>(std::upper_bound(ends->begin(), ends->end(), static_cast<int64_t>(i)) - ends->begin()));
  return stages;
}

View dimsView(const Bundle &bundle) {
  View view;
  Table owned{"graphs in tasks", {"graph", "owner", "task", "kind"}, {}};
  for (const GraphDesc &graph : bundle.graphs().graphs) {
    for (Table table : {dimTable(graph), constraintTable(graph)})
      if (!table.rows.empty())
        view.tables.push_back(std::move(table));
    for (const TaskDesc &task : graph.tasks)
      for (const std::string &name : task.ownedGraphs())
        owned.add({name, graph.name, task.name, std::string(taskKindName(task.kind))});
  }
  if (!owned.rows.empty())
    view.tables.push_back(std::move(owned));
  return view;
}

} // namespace dmxc::tools
