//===- Contract.cpp - what kernels rely on --------------------------------===//

#include "Contract.h"
#include "Graph.h"
#include "Layout.h"

#include <algorithm>

namespace dmxrt {
namespace {

/// Takes a count of at most `most` from the front; false when there is none.
bool takeCount(std::span<const int64_t> words, size_t &at, int64_t most, uint32_t &out) {
  if (at >= words.size() || words[at] < 0 || words[at] > most)
    return false;
  out = static_cast<uint32_t>(words[at++]);
  return true;
}

template <typename... Parts> Error broken(const Graph &graph, size_t task, const Parts &...parts) {
  return badBundle("graph '", graph.name, "', ", describeTask(graph, task), ": kernel '", graph.tasks[task].kernel,
                   "' ", parts..., "; graph.json does not fit the code, compile the model again");
}

} // namespace

bool ContractTable::add(std::string_view name, std::span<const int64_t> words) {
  KernelContract contract;
  constexpr int64_t most = 1 << 16;
  uint32_t buffers = 0;
  size_t at = 1; // the first word is their number
  if (!takeCount(words, at, most, buffers) || !takeCount(words, at, buffers, contract.outputs) ||
      !takeCount(words, at, most, contract.dims) || !takeCount(words, at, most, contract.results) ||
      words.size() - at < buffers)
    return false;
  contract.bytes.resize(buffers);
  auto expr = [&](ExprId &out) { return exprs.read(words, at, contract.dims, out); };
  if (!expr(contract.work) || !expr(contract.scratch) ||
      !std::all_of(contract.bytes.begin(), contract.bytes.end(), expr))
    return false;
  return at == words.size() && contracts.emplace(name, std::move(contract)).second;
}

const KernelContract *ContractTable::find(std::string_view name) const {
  auto it = contracts.find(name);
  return it == contracts.end() ? nullptr : &it->second;
}

Status ContractTable::matchTask(const Graph &graph, size_t index, const KernelContract &contract) const {
  const Task &task = graph.tasks[index];
  struct {
    std::string_view what;
    size_t wanted, given;
  } counts[] = {{"buffers", contract.bytes.size(), task.buffers.size()},
                {"outputs", contract.outputs, task.outputs},
                {"dims", contract.dims, task.dims.size()},
                {"results", contract.results, task.results}};
  for (const auto &count : counts)
    if (count.wanted != count.given)
      return broken(graph, index, "has ", count.wanted, " ", count.what, ", the task ", count.given);
  return {};
}

Status ContractTable::matchNumbers(const Graph &graph, size_t index, const KernelContract &contract,
                                   const Layout &layout) const {
  const Task &task = graph.tasks[index];
  const Layout::TaskNumbers &numbers = layout.tasks[index];
  std::span<const int64_t> own = std::span(layout.taskDims).subspan(numbers.firstDim, task.dims.size());
  auto evaluate = [&](ExprId id, uint64_t &value) -> Status {
    auto result = exprs.evaluate(id, own);
    if (!result || *result < 0)
      return broken(graph, index, "cannot have these dims");
    value = static_cast<uint64_t>(*result);
    return {};
  };
  uint64_t value = 0;
  if (Status status = evaluate(contract.work, value); !status)
    return status;
  if (value != static_cast<uint64_t>(numbers.work))
    return broken(graph, index, "has ", value, " work items, the task ", numbers.work);
  if (Status status = evaluate(contract.scratch, value); !status)
    return status;
  if (value > numbers.scratch)
    return broken(graph, index, "needs ", value, " bytes of scratch, the task has ", numbers.scratch);
  for (size_t i = 0; i < task.buffers.size(); ++i) {
    if (Status status = evaluate(contract.bytes[i], value); !status)
      return status;
    if (uint64_t given = layout.places[task.buffers[i]].dense; value != given)
      return broken(graph, index, "takes ", value, " bytes as buffer ", i, ", the task gives ", given, " (buffer ",
                    task.buffers[i], " of the graph)");
  }
  return {};
}

} // namespace dmxrt
