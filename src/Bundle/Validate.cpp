//===- Validate.cpp - the rules of a whole bundle -------------------------===//
#include "dmxc/Bundle/Validate.h"

#include "EntryName.h"
#include "WriterImpl.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace dmxc::bundle {

namespace {

class BundleChecker {
public:
  BundleChecker(const Bundle &bundle, CheckLevel level, size_t limit) : bundle(bundle), level(level), limit(limit) {}

  std::vector<Problem> run() {
    checkManifest();
    checkTable();
    for (const EntryDesc &row : bundle.manifest().entries)
      checkEntry(row);
    checkFeatures();
    std::vector<Problem> found =
        validateOwnership(bundle.graphs(), bundle.manifest().entryPoints, limit - std::min(limit, problems.size()));
    problems.insert(problems.end(), found.begin(), found.end());
    for (const GraphDesc &graph : bundle.graphs().graphs)
      checkGraph(graph);
    return std::move(problems);
  }

private:
  void report(std::string where, std::string message) {
    if (problems.size() < limit)
      problems.push_back({std::move(where), std::move(message)});
  }
  void checkManifest();
  void checkEntryPoint(const EntryPoint &entry, std::set<std::string> &names);
  void checkFeatures();
  void checkTable();
  void checkEntry(const EntryDesc &row);
  void checkCode(const BundleEntry &entry);
  void checkGraph(const GraphDesc &graph);
  void checkConstants(const GraphDesc &graph);
  void checkQueues(const GraphDesc &graph);

  const Bundle &bundle;
  CheckLevel level;
  size_t limit;
  std::map<std::string, std::vector<WeightInfo>, std::less<>> weights;
  std::vector<Problem> problems;
};

void BundleChecker::checkEntryPoint(const EntryPoint &entry, std::set<std::string> &names) {
  std::string where = "manifest.json, entry point '" + entry.name + "'";
  if (!names.insert(entry.name).second)
    report(where, "the name is used twice");
  if (!bundle.graphs().find(entry.name))
    report(where, "graph.json has no graph of that name");
  for (auto *tensors : {&entry.inputs, &entry.outputs}) {
    std::set<std::string> seen;
    for (const TensorDesc &tensor : *tensors)
      if (!seen.insert(tensor.name).second)
        report(where, "two " + std::string(tensors == &entry.inputs ? "inputs" : "outputs") + " are named '" +
                          tensor.name + "'");
  }
  for (const SymbolicDim &dim : entry.dims)
    if (dim.min < 0 || dim.max < dim.min)
      report(where, "the bounds of dim '" + dim.name + "' are empty or negative");
}

void BundleChecker::checkManifest() {
  const Manifest &m = bundle.manifest();
  std::set<std::string> names;
  if (m.entryPoints.empty())
    report("manifest.json", "there is no entry point");
  for (const EntryPoint &entry : m.entryPoints)
    checkEntryPoint(entry, names);
  for (const TargetDesc &target : m.targets) {
    std::string where = "manifest.json, target '" + target.target + "'";
    if (!bundle.find(target.entry))
      report(where, "there is no entry '" + target.entry + "'");
    if (!target.common.empty() && !bundle.find(target.common))
      report(where, "there is no entry '" + target.common + "', its 'common'");
  }
  for (const std::string &feature : m.required)
    if (const auto &known = knownFeatures(); std::find(known.begin(), known.end(), feature) == known.end())
      report("manifest.json", "the bundle requires the feature '" + feature + "', which this version does not know");
}

/// An older reader must refuse what it would not understand.
void BundleChecker::checkFeatures() {
  const Manifest &m = bundle.manifest();
  auto check = [&](const std::string &where, const std::string &feature) {
    if (std::find(m.required.begin(), m.required.end(), feature) == m.required.end())
      report("manifest.json", where + " uses '" + feature + "', which 'required' does not list");
    if (m.minor < minorOf(feature))
      report("manifest.json", where + " uses '" + feature + "', which format " + std::to_string(m.major) + "." +
                                  std::to_string(m.minor) + " does not have");
  };
  for (const std::string &feature : featuresOf(bundle.graphs()))
    check("graph.json", feature);
  for (const std::string &feature : featuresOf(m))
    check("'targets'", feature);
  if (m.minor < minorOfDescriptions(m))
    report("manifest.json", "an input or output has a 'description', which format " + std::to_string(m.major) + "." +
                                std::to_string(m.minor) + " does not have");
}

void BundleChecker::checkTable() {
  const Manifest &m = bundle.manifest();
  std::set<std::string_view> listed;
  for (const EntryDesc &row : m.entries)
    if (!listed.insert(row.name).second)
      report("manifest.json", "entry '" + row.name + "' is listed twice");
  unsigned lastGroup = 0;
  std::string_view lastName;
  for (const BundleEntry &entry : bundle.entries()) {
    if (entry.name == "manifest.json")
      continue;
    if (!listed.count(entry.name))
      report("entry '" + entry.name + "'", "the manifest does not list it");
    unsigned group = entryGroup(entry.name);
    if (std::pair(group, std::string_view(entry.name)) < std::pair(lastGroup, lastName))
      report("entry '" + entry.name + "'", "it is out of order");
    lastGroup = group;
    lastName = entry.name;
  }
  for (const std::string &name : bundle.unlisted())
    report("file '" + name + "'", "the manifest does not list it");
}

void BundleChecker::checkCode(const BundleEntry &entry) {
  std::string_view text = entry.text();
  // 64-bit little-endian ELF shared object; other targets have other forms.
  bool elf = text.size() >= 64 &&
             text.substr(0, 4) == "\x7f"
                                  "ELF" &&
             text[4] == 2 && text[5] == 1 && text[16] == 3 && text[17] == 0;
  if (entry.name.ends_with(".so") && !elf)
    report("entry '" + entry.name + "'", "not a 64-bit ELF shared object");
}

void BundleChecker::checkEntry(const EntryDesc &row) {
  std::string where = "entry '" + row.name + "'";
  const BundleEntry *entry = bundle.find(row.name);
  if (!entry)
    return report(where, "the manifest lists it, but it is missing");
  if (entry->bytes.size() != row.size)
    return report(where, "it has " + std::to_string(entry->bytes.size()) + " bytes, the manifest says " +
                             std::to_string(row.size));
  bool isCode = row.name.starts_with("code/");
  if (level == CheckLevel::Everything || isCode) {
    std::string sha = Sha256::hexOf(entry->bytes);
    if (sha != row.sha256)
      report(where, "its sha256 is " + sha + ", the manifest says " + row.sha256);
    if (!bundle.isDirectory() && updateCrc32(0, entry->bytes) != entry->crc)
      report(where, "its CRC-32 differs from the archive's");
  }
  if (isCode)
    checkCode(*entry);
  if (!row.name.ends_with(".safetensors"))
    return;
  auto tensors = readWeights(entry->bytes);
  if (!tensors)
    return report(where, tensors.error().message);
  weights[row.name] = std::move(*tensors);
}

/// Whether the constant's bytes are bytes of the tensor it names.
bool inside(const BufferDesc &buffer, const WeightInfo &tensor) {
  std::optional<int64_t> offset = buffer.offset.constant(), size = buffer.size.constant();
  if (!offset || !size || *offset < 0 || *size < 0)
    return false;
  uint64_t begin = static_cast<uint64_t>(*offset), count = static_cast<uint64_t>(*size);
  return begin >= tensor.offset && count <= tensor.size && begin - tensor.offset <= tensor.size - count;
}

void BundleChecker::checkConstants(const GraphDesc &graph) {
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    const BufferDesc &buffer = graph.buffers[i];
    auto file = weights.find(buffer.entry);
    if (buffer.kind != BufferKind::Const || file == weights.end())
      continue;
    auto tensor = std::find_if(file->second.begin(), file->second.end(),
                               [&](const WeightInfo &info) { return info.name == buffer.tensor; });
    std::string where = "graph '" + graph.name + "', buffer " + std::to_string(i);
    if (tensor == file->second.end())
      report(where, "entry '" + buffer.entry + "' has no tensor '" + buffer.tensor + "'");
    else if (!inside(buffer, *tensor))
      report(where, "tensor '" + buffer.tensor + "' lies at " + std::to_string(tensor->offset) + "+" +
                        std::to_string(tensor->size) + ", the graph says " + buffer.offset.str() + "+" +
                        buffer.size.str());
  }
}

/// Kernels have code for the target of their queue.
void BundleChecker::checkQueues(const GraphDesc &graph) {
  std::set<std::string_view> missing;
  for (const TaskDesc &task : graph.tasks)
    if (task.kind == TaskKind::Dispatch && task.queue >= 0 && static_cast<size_t>(task.queue) < graph.queues.size())
      missing.insert(graph.queues[task.queue].target);
  for (const TargetDesc &code : bundle.manifest().targets)
    missing.erase(code.target);
  for (std::string_view target : missing)
    report("graph '" + graph.name + "'",
           "kernels run on target '" + std::string(target) + "', which the manifest lists no code for");
}

void BundleChecker::checkGraph(const GraphDesc &graph) {
  auto entrySize = [&](const std::string &name) -> std::optional<uint64_t> {
    const BundleEntry *entry = bundle.find(name);
    return entry ? std::optional<uint64_t>(entry->bytes.size()) : std::nullopt;
  };
  std::vector<Problem> found = validateGraph(graph, bundle.manifest().findEntryPoint(graph.name), entrySize,
                                             limit - std::min(limit, problems.size()));
  bool sound = found.empty();
  problems.insert(problems.end(), found.begin(), found.end());
  checkConstants(graph);
  checkQueues(graph);
  if (!sound)
    return;
  std::set<std::string> seen;
  for (const DimValues &dims : sampleDims(graph))
    for (const Problem &hazard : findHazards(graph, dims, 10))
      if (seen.insert(hazard.message).second)
        report(hazard.where, hazard.message);
}

} // namespace

std::vector<Problem> validate(const Bundle &bundle, CheckLevel level, size_t limit) {
  return BundleChecker(bundle, level, limit).run();
}

std::string cacheProblem(const GraphDesc &graph, const BufferDesc &output) {
  auto dim = std::find_if(graph.dims.begin(), graph.dims.end(),
                          [&](const DimDesc &row) { return row.isRoom && row.name == output.room; });
  auto input = std::find_if(graph.buffers.begin(), graph.buffers.end(), [&](const BufferDesc &buffer) {
    return buffer.kind == BufferKind::Input && buffer.index == output.past;
  });
  bool hasAxis = output.axis >= 0 && static_cast<size_t>(output.axis) < output.shape.size();
  if (dim == graph.dims.end() || !hasAxis || !(output.shape[static_cast<size_t>(output.axis)] == *dim->expr))
    return "'room' is '" + output.room + "', which is not how much room there is for the rows of axis " +
           std::to_string(output.axis);
  if (input == graph.buffers.end() || input->dtype != output.dtype || dtypeBits(output.dtype) < 8 ||
      input->shape.size() != output.shape.size())
    return "it cannot begin with the rows of input " + std::to_string(output.past);
  return "";
}

} // namespace dmxc::bundle
