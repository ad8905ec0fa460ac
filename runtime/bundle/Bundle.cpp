//===- Bundle.cpp - an open bundle ----------------------------------------===//

#include "Bundle.h"
#include "Layout.h"
#include "Sha256.h"

#include <algorithm>

namespace dmxrt {
namespace {

/// Entries whose bytes decide what runs are checked at open; the large or
/// optional rest on request.
bool isCheckedAtOpen(std::string_view name) { return name == "graph.json" || name.starts_with("code/"); }

Signature::Tensor describeTensor(const ManifestTensor &tensor, const Graph &graph, uint32_t buffer) {
  Signature::Tensor out{tensor.name, tensor.dtype, tensor.description, {}, {}};
  std::vector<ExprPool::Range> ranges;
  for (const Dim &dim : graph.dims)
    ranges.push_back(dim.input != kNone || dim.isLength ? ExprPool::Range{dim.min, dim.max}
                     : dim.task != kNone                ? ExprPool::Range{graph.exprs.range(dim.lower, ranges).min,
                                                                          graph.exprs.range(dim.upper, ranges).max}
                                                        : graph.exprs.range(dim.expr, ranges));
  size_t rank = tensor.shape.size();
  out.dimTexts.resize(rank);
  for (size_t i = 0; i < rank; ++i) {
    dmx_dim dim{nullptr, 0, INT64_MAX};
    if (tensor.shape[i]) {
      dim.min = dim.max = *tensor.shape[i];
    } else if (buffer != kNone) {
      ExprId expr = graph.buffers[buffer].shape[i];
      ExprPool::Range range = graph.exprs.range(expr, ranges);
      int64_t value;
      if (!graph.exprs.isConstant(expr, value))
        out.dimTexts[i] = graph.exprs.text(expr, graph.dimNames);
      dim.min = std::max<int64_t>(range.min, 0);
      dim.max = range.max;
    } else {
      out.dimTexts[i] = "?"; // an input nothing reads
    }
    out.dims.push_back(dim);
  }
  for (size_t i = 0; i < rank; ++i)
    if (!out.dimTexts[i].empty())
      out.dims[i].name = out.dimTexts[i].c_str();
  return out;
}

/// The manifest's and the graph's view of one tensor must agree.
Status matchTensor(std::string_view what, const ManifestTensor &tensor, const Graph &graph, uint32_t buffer) {
  if (buffer == kNone)
    return {};
  const Buffer &other = graph.buffers[buffer];
  bool same = other.dtype == tensor.dtype && other.shape.size() == tensor.shape.size();
  for (size_t i = 0; same && i < other.shape.size(); ++i) {
    int64_t value;
    if (tensor.shape[i] && graph.exprs.isConstant(other.shape[i], value))
      same = value == *tensor.shape[i];
  }
  if (!same)
    return badBundle(what, " '", tensor.name, "' of entry point '", graph.name,
                     "' has another dtype or shape in graph.json (buffer ", buffer, ")");
  return {};
}

} // namespace

Status Bundle::checkManifest(const Archive &archive) {
  const Archive::Entry *entry = archive.find("manifest.json");
  if (!entry)
    return badBundle("there is no manifest.json");
  if (sha256Hex(entry->data) != archive.manifestSha256())
    return fail(DMX_STATUS_CHECKSUM, "entry 'manifest.json' does not have its recorded sha256; the bundle is "
                                     "damaged, copy or compile it again");
  return {};
}

Result<Manifest> Bundle::checkHeader(const Archive &archive) {
  if (Status status = checkManifest(archive); !status)
    return status.takeError();
  return parseManifest(archive.find("manifest.json")->data);
}

/// The CRC-32 that the archive's directory has of an entry. A directory has none.
Status Bundle::checkCrc(std::string_view name) const {
  const Archive::Entry *entry = files.find(name);
  if (files.isArchiveFile() && crc32(entry->data) != entry->crc)
    return fail(DMX_STATUS_CHECKSUM, "entry '", name,
                "' does not have its recorded CRC-32; the archive's "
                "directory is damaged, copy or compile the bundle again");
  return {};
}

Status Bundle::checkSha256(const ManifestEntry &entry, std::span<const std::byte> bytes) {
  if (sha256Hex(bytes) != entry.sha256)
    return fail(DMX_STATUS_CHECKSUM, "entry '", entry.name,
                "' does not have its recorded sha256; the bundle is "
                "damaged, copy or compile it again");
  return {};
}

Status Bundle::loadEntries(bool checkAll) {
  const Archive::Entry *manifestEntry = files.find("manifest.json");
  text.assign(reinterpret_cast<const char *>(manifestEntry->data.data()), manifestEntry->data.size());
  std::vector<std::string_view> left = codeForRequests(parsed.targets), names;
  std::vector<const ManifestEntry *> checked;
  for (const ManifestEntry &entry : parsed.entries) {
    if (Status status = files.load(entry.name, entry.size); !status)
      return status;
    bool isLeft = std::count(left.begin(), left.end(), entry.name) && !files.find(entry.name)->isHeld;
    if (!checkAll && (isLeft || !isCheckedAtOpen(entry.name)))
      continue;
    checked.push_back(&entry);
    names.push_back(entry.name);
  }
  // What is checked here is used later: it must be the same bytes then.
  if (Status status = files.hold(names); !status)
    return status;
  for (const ManifestEntry *entry : checked)
    if (Status status = checkSha256(*entry, files.find(entry->name)->data); !status)
      return status;
  size_t found = files.entries().size() - (files.find(kSignatureName) != nullptr);
  if (found != parsed.entries.size() + 1)
    return badBundle("the archive has ", found, " entries, the manifest lists ", parsed.entries.size() + 1,
                     " (itself included)");
  return {};
}

Status Bundle::matchGraphs() {
  for (const ManifestEntryPoint &entry : parsed.entryPoints) {
    Signature signature;
    signature.name = entry.name;
    while (signature.graph < graphs.size() && graphs[signature.graph].name != entry.name)
      ++signature.graph;
    if (signature.graph == graphs.size())
      return badBundle("graph.json has no graph for entry point '", entry.name, "'");
    Graph &graph = graphs[signature.graph];
    if (graph.owned)
      return badBundle("the graph of entry point '", entry.name, "' is owned by a task");
    if (graph.inputBuffers.size() > entry.inputs.size() || graph.outputBuffers.size() != entry.outputs.size())
      return badBundle("entry point '", entry.name, "' has ", entry.inputs.size(), " inputs and ", entry.outputs.size(),
                       " outputs, its graph ", graph.inputBuffers.size(), " and ", graph.outputBuffers.size());
    graph.inputBuffers.resize(entry.inputs.size(), kNone);
    for (size_t i = 0; i < entry.inputs.size(); ++i) {
      if (Status status = matchTensor("input", entry.inputs[i], graph, graph.inputBuffers[i]); !status)
        return status;
      signature.inputs.push_back(describeTensor(entry.inputs[i], graph, graph.inputBuffers[i]));
    }
    for (size_t i = 0; i < entry.outputs.size(); ++i) {
      if (Status status = matchTensor("output", entry.outputs[i], graph, graph.outputBuffers[i]); !status)
        return status;
      signature.outputs.push_back(describeTensor(entry.outputs[i], graph, graph.outputBuffers[i]));
    }
    functions.push_back(std::move(signature));
  }
  return {};
}

/// Constants' entries exist, and where all shapes are fixed every range holds
/// (else the session finds out for the shapes it gets).
Status Bundle::checkLayouts() const {
  for (const Graph &graph : graphs) {
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      const Buffer &buffer = graph.buffers[i];
      if (buffer.kind == BufferKind::Const && !files.find(buffer.entry))
        return badBundle("graph '", graph.name, "': buffer ", i, " lies in entry '", buffer.entry,
                         "', which does not exist");
    }
    if (!isStatic(graph))
      continue;
    std::vector<int64_t> dims(graph.dims.size());
    if (Status status = evaluateDims(graph, 0, dims, [](const Dim &) { return Result<int64_t>(0); }); !status)
      return within(cat("graph '", graph.name, "'"), status.takeError());
    Layout layout;
    if (Status status = layOut(graph, files, dims, 0, layout); !status)
      return status;
  }
  return {};
}

Result<std::shared_ptr<const Bundle>> Bundle::open(Archive archive, const Trust &trust) {
  constexpr std::string_view kManifest[] = {"manifest.json"};
  if (Status status = archive.hold(kManifest); !status)
    return status.takeError();
  if (Status status = checkManifest(archive); !status)
    return status.takeError();
  std::shared_ptr<Bundle> bundle(new Bundle(std::move(archive)));
  const Archive::Entry *signature = bundle->files.find(kSignatureName);
  if (signature)
    if (Status status = bundle->checkCrc(kSignatureName); !status)
      return status.takeError();
  if (Status status = checkSignature(signature, bundle->files.manifestSha256(), trust); !status)
    return status.takeError();
  auto manifest = parseManifest(bundle->files.find("manifest.json")->data);
  if (!manifest)
    return manifest.takeError();
  bundle->parsed = std::move(*manifest);
  if (Status status = bundle->loadEntries(trust.isAsked()); !status)
    return status.takeError();
  auto graphs = parseGraphs(bundle->files.find("graph.json")->data);
  if (!graphs)
    return graphs.takeError();
  bundle->graphs = std::move(*graphs);
  if (Status status = bundle->matchGraphs(); !status)
    return status.takeError();
  if (Status status = bundle->checkLayouts(); !status)
    return status.takeError();
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

Status Bundle::verify() const {
  if (Status status = checkCrc("manifest.json"); !status)
    return status;
  for (const ManifestEntry &entry : parsed.entries) {
    Status status = checkSha256(entry, files.find(entry.name)->data);
    if (status)
      status = checkCrc(entry.name);
    if (!status)
      return status;
  }
  int32_t contracts;
  for (const TargetCode &code : parsed.targets)
    if (Status status = hasContracts(code, contracts); !status)
      return status;
  return {};
}

Status Bundle::hasContracts(const TargetCode &code, int32_t &contracts) const {
  int32_t least = INT32_MAX; // of both its entries
  for (const std::string *entry : {&code.entry, &code.common}) {
    if (entry->empty())
      continue;
    auto bytes = codeBytes(*entry);
    if (!bytes)
      return bytes.takeError();
    if (Status status = checkCode(code.target, *bytes, contracts); !status)
      return within(cat("entry '", *entry, "'"), status.takeError());
    least = std::min(least, contracts);
  }
  contracts = least;
  return {};
}

Status Bundle::requireContracts() const {
  int32_t contracts;
  for (const TargetCode &code : parsed.targets) {
    if (Status status = hasContracts(code, contracts); !status)
      return status;
    if (contracts == 0)
      return fail(DMX_STATUS_UNSUPPORTED, "entry '", code.entry,
                  "' has kernels without contracts; compile the model again, or open it without DMX_BUNDLE_CONTRACTS");
  }
  return {};
}

const Signature *Bundle::findSignature(const char *name) const {
  if (!name)
    return &functions.front();
  for (const Signature &signature : functions)
    if (signature.name == name)
      return &signature;
  return nullptr;
}

/// Of a code entry, checked and in private memory: so at open, or else now.
Result<std::span<const std::byte>> Bundle::codeBytes(const std::string &entry) const {
  const Archive::Entry &found = *files.find(entry);
  if (found.isHeld)
    return found.data;
  std::lock_guard lock(copyMutex);
  if (auto it = codeCopies.find(entry); it != codeCopies.end())
    return it->second->bytes();
  auto copy = Mapping::copyOf(found.data, entry);
  if (!copy)
    return copy.takeError();
  for (const ManifestEntry &listed : parsed.entries)
    if (listed.name == entry)
      if (Status status = checkSha256(listed, (*copy)->bytes()); !status)
        return status.takeError();
  return codeCopies.emplace(entry, *copy).first->second->bytes();
}

Result<std::shared_ptr<const CodeImage>> Bundle::code(const std::string &entry, Device &device, bool isShared) const {
  std::lock_guard lock(codeMutex);
  if (auto it = codeCache.find(entry); isShared && it != codeCache.end())
    return it->second;
  auto bytes = codeBytes(entry);
  if (!bytes)
    return bytes.takeError();
  auto image = device.loadCode(*bytes);
  if (!image)
    return within(cat("entry '", entry, "'"), image.takeError());
  if (isShared)
    codeCache.emplace(entry, *image);
  return *image;
}

} // namespace dmxrt
