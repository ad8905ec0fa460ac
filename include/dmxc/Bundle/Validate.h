//===- Validate.h - the rules of FORMAT.md, checked -------------*- C++ -*-===//
#pragma once

#include "dmxc/Bundle/Reader.h"

namespace dmxc::bundle {

/// One broken rule.
struct Problem {
  std::string where;   ///< "graph 'main', task 12 (conv1)"
  std::string message; ///< expected and got
};

enum class CheckLevel {
  /// Manifest, graph, weights headers, table of entries; checksums of code.
  Structure,
  /// Also the checksums (sha256 and CRC) of every entry, weights included.
  Everything
};

/// All broken rules of an open bundle; empty when it is sound. Never fails on
/// hostile contents. At most `limit` problems are collected.
std::vector<Problem> validate(const Bundle &bundle, CheckLevel level, size_t limit = 100);

/// The rules that need the graph and manifest alone; also used on a graph that
/// is about to be written. `entrySize` gives the size of an entry, or nothing
/// when there is none of that name.
std::vector<Problem> validateGraph(const GraphDesc &graph, const EntryPoint *entryPoint,
                                   const std::function<std::optional<uint64_t>(const std::string &)> &entrySize,
                                   size_t limit = 100);

/// The rules between graphs: each that a task names exists, has this one owner,
/// is no entry point's, and takes and gives what the task does.
std::vector<Problem> validateOwnership(const GraphFile &file, const std::vector<EntryPoint> &entryPoints,
                                       size_t limit = 100);

/// Pairs of tasks that touch overlapping bytes, one of them writing, with no
/// path of deps between them. Symbolic sizes are taken at the dims given.
/// Call only on a graph that validateGraph found sound. Graphs of more than
/// 32768 tasks are not examined.
std::vector<Problem> findHazards(const GraphDesc &graph, const DimValues &dims, size_t limit = 100);

/// Every input dim at its lower (or upper) bound, the computed dims evaluated.
/// An unbounded upper end counts as max(min, 16). Where these values break a
/// constraint or do not broadcast, all dims get the same value as far as their
/// bounds allow it; ErrorKind::Constraint when that does not help either.
Result<DimValues> extremeDims(const GraphDesc &graph, bool upper);

/// The same with every dim at 16 where its bounds allow it, and next to that where not.
Result<DimValues> usualDims(const GraphDesc &graph);

/// The values that rules about symbolic dims are tried at: those of extremeDims and usualDims. Of a graph with open
/// dims, without values at which an extent is negative or cannot be computed, or a tensor is larger than any memory: no
/// run has these.
std::vector<DimValues> sampleDims(const GraphDesc &graph);

/// What is wrong with an output that has `room`, a rule of graphs; empty where nothing is.
std::string cacheProblem(const GraphDesc &graph, const BufferDesc &output);

} // namespace dmxc::bundle
