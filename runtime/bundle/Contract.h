//===- Contract.h - what kernels rely on ------------------------*- C++ -*-===//
//
// A code entry says for each kernel which buffers, dims, work and scratch it expects
// (dmx_kernel.h). A task of graph.json that promises anything else is refused before it
// runs, so that a graph that does not belong to its code touches no memory.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Expr.h"

#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace dmxrt {

struct Graph;
struct Layout;

/// Expressions are over the task's dims and belong to the table's pool.
struct KernelContract {
  uint32_t outputs = 0, dims = 0, results = 0;
  ExprId work = 0, scratch = 0;
  std::vector<ExprId> bytes; // of each buffer: operands, then results
};

/// The contracts of a code object. Immutable once filled.
class ContractTable {
public:
  /// Reads a kernel's words; false when they are no contract. `name` must outlive the table.
  bool add(std::string_view name, std::span<const int64_t> words);
  /// Null when the kernel has none.
  const KernelContract *find(std::string_view name) const;

  /// What does not change with shapes: the task's counts.
  Status matchTask(const Graph &graph, size_t task, const KernelContract &contract) const;
  /// Bytes, work and scratch of a task that `layout` has placed.
  Status matchNumbers(const Graph &graph, size_t task, const KernelContract &contract, const Layout &layout) const;

private:
  ExprPool exprs;
  std::map<std::string_view, KernelContract> contracts;
};

} // namespace dmxrt
