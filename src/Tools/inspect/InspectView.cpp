//===- InspectView.cpp - facts and tables of a bundle ---------------------===//
#include "InspectView.h"

#include "InspectCode.h"
#include "dmxc/Bundle/Validate.h"
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Runtime.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace dmxc::tools {

using namespace bundle;

std::string humanBytes(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit)
    bytes /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

Json exprJson(const Expr &expr) { return expr.isInt() ? Json(expr.value()) : Json(expr.str()); }

std::vector<Lifetime> lifetimes(const GraphDesc &graph, const DimValues &dims) {
  std::vector<Lifetime> lives(graph.buffers.size());
  auto touch = [&](int64_t id, size_t task) {
    if (id < 0 || static_cast<size_t>(id) >= graph.buffers.size())
      return;
    if (graph.buffers[id].kind == BufferKind::Alias)
      id = graph.buffers[id].of;
    if (id < 0 || static_cast<size_t>(id) >= graph.buffers.size())
      return;
    Lifetime &life = lives[id];
    if (life.first < 0)
      life.first = static_cast<int64_t>(task);
    life.last = static_cast<int64_t>(task);
  };
  for (size_t i = 0; i < graph.tasks.size(); ++i)
    for (const std::vector<int64_t> &list : {graph.tasks[i].reads(), graph.tasks[i].writes()})
      for (int64_t id : list)
        touch(id, i);
  std::vector<Lifetime> arenaLives;
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const BufferDesc &buffer = graph.buffers[i];
    auto offset = buffer.offset.evaluate(dims), size = buffer.size.evaluate(dims);
    if (buffer.kind != BufferKind::Arena || !offset || !size)
      continue;
    lives[i].buffer = i;
    lives[i].arena = buffer.arena;
    lives[i].offset = *offset;
    lives[i].size = *size;
    arenaLives.push_back(lives[i]);
  }
  return arenaLives;
}

namespace {

/// The largest dims, so that figures of a dynamic model are its upper bounds.
DimValues upperDims(const GraphDesc &graph) {
  auto dims = extremeDims(graph, true);
  return dims ? *dims : DimValues();
}

int64_t valueOf(const Expr &expr, const DimValues &dims) {
  auto value = expr.evaluate(dims);
  return value ? *value : 0;
}

std::string joined(const std::vector<std::string> &items) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "" : ", ") + item;
  return text;
}

} // namespace

std::string tensorName(const Bundle &bundle, const GraphDesc &graph, const BufferDesc &buffer) {
  if (buffer.kind == BufferKind::Const)
    return buffer.tensor;
  const EntryPoint *entry = bundle.manifest().findEntryPoint(graph.name);
  if (!entry || buffer.kind > BufferKind::Output)
    return "";
  const auto &list = buffer.kind == BufferKind::Input ? entry->inputs : entry->outputs;
  size_t index = static_cast<size_t>(buffer.index);
  return index < list.size() ? list[index].name : "";
}

namespace {

std::string placeOf(const BufferDesc &buffer) {
  switch (buffer.kind) {
  case BufferKind::Input:
  case BufferKind::Output:
    return std::string(bufferKindName(buffer.kind)) + " " + std::to_string(buffer.index);
  case BufferKind::Result:
    return "output " + std::to_string(buffer.index) + " of task " + std::to_string(buffer.task);
  case BufferKind::Const:
    return buffer.entry + " @ " + buffer.offset.str();
  case BufferKind::Arena:
    return "arena " + std::to_string(buffer.arena) + " @ " + buffer.offset.str();
  case BufferKind::Alias:
    return "buffer " + std::to_string(buffer.of) + " @ " + buffer.offset.str();
  case BufferKind::State:
    return "session";
  }
  return "";
}

uint64_t entryBytes(const Bundle &bundle, std::string_view prefix) {
  uint64_t sum = 0;
  for (const BundleEntry &entry : bundle.entries())
    if (entry.name.starts_with(prefix))
      sum += entry.bytes.size();
  return sum;
}

void addIo(Table &table, const char *role, const std::vector<TensorDesc> &tensors) {
  for (const TensorDesc &tensor : tensors)
    table.add({role, tensor.name, std::string(dtypeName(tensor.dtype)), bundle::shapeString(tensor.shape),
               tensor.description});
}

void addEntryPoints(const Manifest &m, View &view) {
  Table io{"inputs and outputs", {"role", "name", "dtype", "shape", "description"}, {}};
  Table dims{"symbolic dims", {"name", "min", "max"}, {}};
  for (const EntryPoint &entry : m.entryPoints) {
    if (m.entryPoints.size() > 1)
      io.add({"entry point", entry.name, "", "", ""});
    addIo(io, "input", entry.inputs);
    addIo(io, "output", entry.outputs);
    for (const SymbolicDim &dim : entry.dims)
      dims.add({dim.name, dim.min, dim.max == INT64_MAX ? Json("unbounded") : Json(dim.max)});
  }
  view.tables.push_back(std::move(io));
  if (!dims.rows.empty())
    view.tables.push_back(std::move(dims));
}

void addGraphTotals(const Bundle &bundle, View &view) {
  Table table{"graphs", {"name", "tasks", "buffers", "arena", "lower bound", "GFLOP"}, {}};
  for (const GraphDesc &graph : bundle.graphs().graphs) {
    DimValues dims = upperDims(graph);
    int64_t arena = 0, bound = 0;
    double flops = 0;
    for (const ArenaDesc &a : graph.arenas) {
      arena += valueOf(a.size, dims);
      bound += valueOf(a.lowerBound, dims);
    }
    for (const TaskDesc &task : graph.tasks)
      flops += static_cast<double>(valueOf(task.flops, dims));
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", flops / 1e9);
    table.add({graph.name, graph.tasks.size(), graph.buffers.size(), humanBytes(static_cast<double>(arena)),
               humanBytes(static_cast<double>(bound)), text});
  }
  view.tables.push_back(std::move(table));
}

/// Whom the signature names; only dmx-sign and the runtime, which know keys, can say that it is true.
std::string signerOf(const Bundle &bundle) {
  const std::optional<Signature> &signature = bundle.signature();
  if (!signature)
    return "nobody";
  return signature->version == signatureVersion ? "key " + signature->key
                                                : "a signature of version " + std::to_string(signature->version);
}

View summary(const Bundle &bundle) {
  const Manifest &m = bundle.manifest();
  View view;
  auto bytes = [](uint64_t count) { return humanBytes(static_cast<double>(count)); };
  view.facts = {{"bundle", bundle.path()},
                {"form", bundle.isDirectory() ? "directory" : "file"},
                {"size", bytes(bundle.fileSize())},
                {"format", std::to_string(m.major) + "." + std::to_string(m.minor)},
                {"producer", m.producerName + " " + m.producerVersion},
                {"min runtime", m.minRuntime},
                {"signed by (unchecked)", signerOf(bundle)},
                {"model", m.modelName},
                {"model source", m.modelSource},
                {"model sha256", m.modelSha256},
                {"weights", bytes(entryBytes(bundle, "weights/"))},
                {"code", bytes(entryBytes(bundle, "code/"))}};
  for (const auto &[key, text] : m.modelMetadata)
    view.facts.emplace_back("metadata " + key, text);
  for (const auto &[name, value] : m.options)
    std::visit([&, &key = name](const auto &v) { view.facts.emplace_back("option " + key, v); }, value);
  if (!m.required.empty())
    view.facts.emplace_back("requires", joined(m.required));
  Table targets{"targets", {"target", "arch", "code", "contracts", "features"}, {}};
  std::vector<std::string> contracts = contractsOf(bundle.path());
  contracts.resize(m.targets.size());
  for (size_t i = 0; i < m.targets.size(); ++i)
    targets.add({m.targets[i].target, m.targets[i].arch,
                 m.targets[i].entry + (m.targets[i].common.empty() ? "" : " " + m.targets[i].common), contracts[i],
                 joined(m.targets[i].features)});
  view.tables.push_back(std::move(targets));
  if (std::find(contracts.begin(), contracts.end(), "no") != contracts.end())
    view.facts.emplace_back(
        "without contracts",
        "graph.json is believed where it says what kernels touch; compile again to have it checked");
  addEntryPoints(m, view);
  Table placement{"placement", {"target", "nodes", "reason"}, {}};
  for (const PlacementDesc &place : m.placement)
    placement.add({place.target, place.ops, place.reason});
  view.tables.push_back(std::move(placement));
  if (!m.userCode.empty()) {
    Table code{"user code", {"kernel", "target", "arch", "file", "symbol", "sha256"}, {}};
    for (const UserCodeDesc &row : m.userCode)
      code.add({row.kernel, row.target, row.arch, row.file, row.symbol, row.sha256});
    view.tables.push_back(std::move(code));
  }
  addGraphTotals(bundle, view);
  for (const CodeObject &object : codeObjects(bundle))
    if (auto description = object.describe("", false))
      addCodeTables(object, *description, false, view);
    else // the rest can be shown; --check and --what kernels fail
      view.facts.emplace_back("damaged", description.error().message);
  return view;
}

View tensors(const Bundle &bundle) {
  View view;
  for (const GraphDesc &graph : bundle.graphs().graphs) {
    Table table{"tensors of '" + graph.name + "'", {"id", "kind", "dtype", "shape", "bytes", "place", "name"}, {}};
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      const BufferDesc &b = graph.buffers[i];
      Expr size = b.kind >= BufferKind::Const ? b.size : denseBytes(b.dtype, b.shape);
      table.add({i, std::string(bufferKindName(b.kind)), std::string(dtypeName(b.dtype)), bundle::shapeString(b.shape),
                 exprJson(size), placeOf(b), tensorName(bundle, graph, b)});
    }
    view.tables.push_back(std::move(table));
  }
  return view;
}

Result<View> tasks(const Bundle &bundle) {
  View view;
  auto formats = formatsByNode(bundle);
  if (!formats)
    return formats.takeError();
  for (const GraphDesc &graph : bundle.graphs().graphs) {
    Table table{
        "tasks of '" + graph.name + "'",
        {"id", "kind", "queue", "name", "kernel", "work", "grain", "scratch", "flops", "bytes", "deps", "nodes"},
        {}};
    for (size_t i = 0; i < graph.tasks.size(); ++i) {
      const TaskDesc &t = graph.tasks[i];
      bool copy = t.kind == TaskKind::Copy, dispatch = t.kind == TaskKind::Dispatch;
      table.add({i, std::string(taskKindName(t.kind)), t.queue, t.name,
                 t.isControl() ? joined(t.ownedGraphs()) : t.kernel, dispatch ? exprJson(t.work) : Json(""),
                 dispatch ? exprJson(t.grain) : Json(""), exprJson(t.scratch), exprJson(t.flops),
                 exprJson(copy ? t.size : t.bytes), t.deps, t.nodes});
    }
    if (std::vector<size_t> stages = taskStages(graph); !stages.empty()) {
      table.columns.push_back("stage");
      for (size_t i = 0; i < stages.size(); ++i)
        table.rows[i].push_back(stages[i]);
    }
    if (!formats->empty()) {
      table.columns.push_back("arithmetic");
      for (size_t i = 0; i < graph.tasks.size(); ++i)
        table.rows[i].push_back(arithmeticOf(graph.tasks[i], *formats));
    }
    view.tables.push_back(std::move(table));
  }
  return view;
}

Result<View> memory(const Bundle &bundle) {
  View view;
  for (const GraphDesc &graph : bundle.graphs().graphs) {
    DimValues dims = upperDims(graph);
    Table arenas{"arenas of '" + graph.name + "'", {"id", "size", "lower bound", "ratio", "align", "bytes"}, {}};
    for (size_t i = 0; i < graph.arenas.size(); ++i) {
      const ArenaDesc &a = graph.arenas[i];
      int64_t size = valueOf(a.size, dims), bound = valueOf(a.lowerBound, dims);
      char ratio[32];
      std::snprintf(ratio, sizeof ratio, "%.3f",
                    bound > 0 ? static_cast<double>(size) / static_cast<double>(bound) : 1.0);
      arenas.add({i, humanBytes(static_cast<double>(size)), humanBytes(static_cast<double>(bound)), ratio, a.align,
                  exprJson(a.size)});
    }
    view.tables.push_back(std::move(arenas));
    Table table{"arena buffers of '" + graph.name + "'",
                {"buffer", "arena", "offset", "bytes", "first task", "last task", "shape"},
                {}};
    for (const Lifetime &life : lifetimes(graph, dims))
      table.add({life.buffer, life.arena, life.offset, life.size, life.first, life.last,
                 bundle::shapeString(graph.buffers[life.buffer].shape)});
    view.tables.push_back(std::move(table));
  }
  for (const CodeObject &object : codeObjects(bundle)) {
    auto description = object.describe("", true);
    if (!description)
      return description.takeError();
    addRangeTables(object, *description, view);
  }
  return view;
}

/// Viewers' objects: as tables and text, and as data. Counts the kernels shown.
Status addCode(const Bundle &bundle, const std::string &kernel, View &view, std::vector<std::string> &names) {
  Json objects = Json::array();
  for (const CodeObject &object : codeObjects(bundle)) {
    auto description = object.describe(kernel, true);
    if (!description)
      return description.takeError();
    if (partOf(*description, "kernels").empty() && !kernel.empty())
      continue;
    auto text = object.print(kernel);
    if (!text)
      return text.takeError();
    for (const Json &one : partOf(*description, "kernels"))
      names.push_back(textOf(one, "name"));
    size_t tables = view.tables.size();
    addCodeTables(object, *description, true, view);
    for (size_t i = tables; i < view.tables.size(); ++i)
      view.tables[i].textOnly = true;
    view.code.emplace_back(object.target->entry, *text);
    Json root = {{"entry", object.target->entry}, {"target", object.target->target}, {"arch", object.target->arch}};
    root.update(*description);
    root["disassembly"] = *text;
    objects.push_back(std::move(root));
  }
  if (!objects.empty())
    view.data.emplace_back("objects", std::move(objects));
  return Status::ok();
}

Error unknownKernel(const Bundle &bundle, const std::string &kernel, std::vector<std::string> known) {
  for (const CodeObject &object : codeObjects(bundle))
    if (auto description = object.describe("", false))
      for (const Json &one : partOf(*description, "kernels"))
        known.push_back(textOf(one, "name"));
  return usageError("--kernel " + kernel + ": the bundle has no such kernel" + didYouMean(kernel, known));
}

Result<View> kernels(const Bundle &bundle, const std::string &only) {
  struct Use {
    int64_t tasks = 0;
    double flops = 0;
    std::vector<std::string> names;
  };
  View view;
  Table code{"code", {"entry", "bytes"}, {}};
  for (const BundleEntry &entry : bundle.entries())
    if (entry.name.starts_with("code/"))
      code.add({entry.name, entry.bytes.size()});
  view.tables.push_back(std::move(code));
  std::map<std::string, Use> uses;
  for (const GraphDesc &graph : bundle.graphs().graphs) {
    DimValues dims = upperDims(graph);
    for (const TaskDesc &task : graph.tasks)
      if (task.kind == TaskKind::Dispatch) {
        Use &use = uses[task.kernel];
        ++use.tasks;
        use.flops += static_cast<double>(valueOf(task.flops, dims));
        use.names.push_back(task.name);
      }
  }
  Table table{"kernels", {"kernel", "tasks", "flops", "used by"}, {}};
  std::vector<std::string> known, shown;
  for (const auto &[name, use] : uses) {
    known.push_back(name);
    if (only.empty() || name == only)
      table.add({name, use.tasks, use.flops, use.names});
  }
  bool used = !table.rows.empty();
  view.tables.push_back(std::move(table));
  if (Status done = addCode(bundle, only, view, shown); !done)
    return done.takeError();
  if (!only.empty() && !used && shown.empty())
    return unknownKernel(bundle, only, std::move(known));
  return view;
}

View sizes(const Bundle &bundle) {
  View view;
  Table entries{"entries", {"entry", "bytes", "share"}, {}};
  for (const BundleEntry &entry : bundle.entries()) {
    char share[32];
    std::snprintf(share, sizeof share, "%.2f %%",
                  100.0 * static_cast<double>(entry.bytes.size()) /
                      static_cast<double>(std::max<uint64_t>(bundle.fileSize(), 1)));
    entries.add({entry.name, entry.bytes.size(), share});
  }
  view.tables.push_back(std::move(entries));
  view.facts = {{"size", bundle.fileSize()}};
  for (const BundleEntry &entry : bundle.entries()) {
    if (!entry.name.ends_with(".safetensors"))
      continue;
    auto weights = readWeights(entry.bytes);
    if (!weights)
      continue; // --check says why
    std::stable_sort(weights->begin(), weights->end(), [](auto &a, auto &b) { return a.size > b.size; });
    Table table{"weights in " + entry.name, {"tensor", "bytes", "dtype", "shape", "packing"}, {}};
    for (const WeightInfo &info : *weights)
      table.add({info.name, info.size, info.dtype, dmxc::shapeString(info.shape), info.packing});
    view.tables.push_back(std::move(table));
  }
  return view;
}

} // namespace

Result<View> makeView(const Bundle &bundle, const std::string &what, const std::string &kernel) {
  if (what == "tensors")
    return tensors(bundle);
  if (what == "dims")
    return dimsView(bundle);
  if (what == "tasks")
    return tasks(bundle);
  if (what == "memory")
    return memory(bundle);
  if (what == "kernels")
    return kernels(bundle, kernel);
  if (what == "sizes")
    return sizes(bundle);
  if (what == "masks")
    return masksView(bundle);
  return summary(bundle);
}

} // namespace dmxc::tools
