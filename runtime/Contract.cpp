//===- Contract.cpp - what kernels rely on --------------------------------===//

#include "Contract.h"
#include "Graph.h"
#include "Layout.h"

namespace dmxrt {
namespace {

/// Reads the words of one contract from front to back.
struct WordReader {
  std::span<const int64_t> words;
  ExprPool &exprs;
  uint32_t dims = 0;
  size_t at = 1; // the first word is their number

  bool count(int64_t most, uint32_t &out) {
    if (at >= words.size() || words[at] < 0 || words[at] > most)
      return false;
    out = static_cast<uint32_t>(words[at++]);
    return true;
  }
  bool expr(ExprId &out) { return exprs.read(words, at, dims, out); }
  bool buffer(KernelContract::Buffer &out) {
    uint32_t head = 0;
    if (!count((int64_t(DMX_MAX_RANK) << 8) | 0xff, head))
      return false;
    out.dtype = static_cast<dmx_dtype>(head & 0xff);
    out.shape.resize(head >> 8);
    for (ExprId &extent : out.shape)
      if (!expr(extent))
        return false;
    return dmx_dtype_name(out.dtype) != nullptr;
  }
};

template <typename... Parts> Error broken(const Graph &graph, size_t task, const Parts &...parts) {
  return badBundle("graph '", graph.name, "', ", describeTask(graph, task), ": kernel '", graph.tasks[task].kernel,
                   "' ", parts..., "; graph.json does not fit the code, compile the model again");
}

} // namespace

bool ContractTable::add(std::string_view name, std::span<const int64_t> words) {
  KernelContract contract;
  WordReader reader{words, exprs};
  uint32_t buffers = 0;
  constexpr int64_t most = 1 << 16;
  if (!reader.count(most, buffers) || !reader.count(buffers, contract.outputs) || !reader.count(most, contract.dims) ||
      !reader.count(most, contract.results))
    return false;
  reader.dims = contract.dims;
  if (!reader.expr(contract.work) || !reader.expr(contract.scratch) || words.size() - reader.at < buffers)
    return false;
  contract.buffers.resize(buffers);
  for (KernelContract::Buffer &buffer : contract.buffers)
    if (!reader.buffer(buffer))
      return false;
  return reader.at == words.size() && contracts.emplace(name, std::move(contract)).second;
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
  } counts[] = {{"buffers", contract.buffers.size(), task.buffers.size()},
                {"outputs", contract.outputs, task.outputs},
                {"dims", contract.dims, task.dims.size()},
                {"results", contract.results, task.results}};
  for (const auto &count : counts)
    if (count.wanted != count.given)
      return broken(graph, index, "has ", count.wanted, " ", count.what, ", the task ", count.given);
  for (size_t i = 0; i < task.buffers.size(); ++i) {
    const KernelContract::Buffer &wanted = contract.buffers[i];
    const Buffer &given = graph.buffers[task.buffers[i]];
    if (wanted.dtype != given.dtype || wanted.shape.size() != given.shape.size())
      return broken(graph, index, "takes ", dmx_dtype_name(wanted.dtype), " of rank ", wanted.shape.size(),
                    " as buffer ", i, ", the task gives ", dmx_dtype_name(given.dtype), " of rank ",
                    given.shape.size(), " (buffer ", task.buffers[i], " of the graph)");
  }
  return {};
}

Status ContractTable::matchNumbers(const Graph &graph, size_t index, const KernelContract &contract,
                                   std::span<const int64_t> dims, const Layout &layout) const {
  const Task &task = graph.tasks[index];
  const Layout::TaskNumbers &numbers = layout.tasks[index];
  std::span<const int64_t> own = std::span(layout.taskDims).subspan(numbers.firstDim, task.dims.size());
  auto evaluate = [&](ExprId id, int64_t &value) -> Status {
    auto result = exprs.evaluate(id, own);
    if (!result)
      return broken(graph, index, "cannot have these dims: ", result.error().message);
    value = *result;
    return {};
  };
  int64_t value = 0;
  if (Status status = evaluate(contract.work, value); !status)
    return status;
  if (value != numbers.work)
    return broken(graph, index, "has ", value, " work items, the task ", numbers.work);
  if (Status status = evaluate(contract.scratch, value); !status)
    return status;
  if (value > 0 && static_cast<uint64_t>(value) > numbers.scratch)
    return broken(graph, index, "needs ", value, " bytes of scratch, the task has ", numbers.scratch);
  for (size_t i = 0; i < task.buffers.size(); ++i) {
    const Buffer &buffer = graph.buffers[task.buffers[i]];
    for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
      if (Status status = evaluate(contract.buffers[i].shape[axis], value); !status)
        return status;
      auto given = graph.exprs.evaluate(buffer.shape[axis], dims);
      if (!given)
        return given.takeError();
      if (*given != value)
        return broken(graph, index, "takes ", value, " for axis ", axis, " of buffer ", i, ", the task gives ", *given,
                      " (buffer ", task.buffers[i], " of the graph)");
    }
  }
  return {};
}

} // namespace dmxrt
