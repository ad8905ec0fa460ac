//===- BundleOutput.cpp - the compiled model becomes a bundle -------------===//
#include "../reports/Formats.h"
#include "../reports/PassTimes.h"
#include "../reports/Reports.h"
#include "../reports/Sparsity.h"
#include "Work.h"

#include "dmxc/Bundle/Weights.h"
#include "dmxc/Bundle/Writer.h"
#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"
#include "dmxc/Support/WorkCount.h"
#include "dmxc/Tools/Check.h"

#include "llvm/Support/Path.h"
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <set>

namespace dmxc::driver {

namespace {

/// Constants are filled one at a time, while the last ones are hashed and written, so that memory use does not grow
/// with the model.
bundle::Producer producerOf(const ConstantPayload &constant) {
  return [&constant](bundle::ByteSink &sink) -> Status {
    Tensor bytes(DType::U8, {static_cast<int64_t>(constant.size)}); // 64-byte aligned, which packing may rely on
    std::span<std::byte> out(bytes.mutableData(), constant.size);
    noteWork("packing '" + constant.name + "'");
    {
      WorkTimer timer("write", "packing");
      if (Status filled = constant.fill(out); !filled)
        return filled;
    }
    noteWork("");
    return sink.take(bytes);
  };
}

Status addConstants(const CompiledModel &model, bundle::WeightsWriter &weights) {
  for (const ConstantPayload &constant : model.constants) {
    bool plain = constant.form.empty() && constant.size == dtypeBytes(constant.dtype, elementCount(constant.shape));
    Status added = plain ? weights.add(constant.name, constant.dtype, constant.shape, producerOf(constant))
                         : weights.addBytes(constant.name, constant.size, producerOf(constant),
                                            constant.form.empty() ? "padded" : constant.form);
    if (!added)
      return added;
  }
  return Status::ok();
}

/// debug/kernels.json: which model nodes each kernel computes.
std::string kernelNodes(const bundle::GraphFile &file) {
  nlohmann::json kernels = nlohmann::json::object(); // sorted by name
  for (const bundle::GraphDesc &graph : file.graphs)
    for (const bundle::TaskDesc &task : graph.tasks)
      if (task.kind == bundle::TaskKind::Dispatch)
        kernels[task.kernel].push_back({{"graph", graph.name}, {"task", task.name}, {"nodes", task.nodes}});
  return nlohmann::json{{"kernels", kernels}}.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// What was written, as whoever deploys it will read it. Of a changed text this is the last of its checks (`fromText`):
/// how much a kernel does is known in its code alone, and what says otherwise is the text's.
Status checkWritten(const std::string &path, bool fromText) {
  auto written = bundle::Bundle::open(path);
  if (!written) {
    Error error = written.takeError();
    // The path is that of a descriptor, which says nothing to a user.
    std::string quoted = "'" + path + "'";
    if (size_t at = error.message.find(quoted); at != std::string::npos)
      error.message.replace(at, quoted.size(), "it");
    return Error{error.kind == ErrorKind::IO ? ErrorKind::IO : ErrorKind::Internal,
                 "the bundle just written cannot be read: " + error.message};
  }
  auto problems = tools::checkBundle(*written, /*everything=*/false);
  if (!problems)
    return problems.takeError();
  if (problems->empty())
    return Status::ok();
  const bundle::Problem &first = problems->front();
  std::string more = problems->size() > 1 ? " (and " + std::to_string(problems->size() - 1) + " more)" : "";
  if (fromText)
    return modelError("this text describes no bundle that could run: " + first.where + ": " + first.message + more);
  if (!written->manifest().userCode.empty()) // as texts, read here for the first time
    return modelError("with the kernels that users wrote this is no bundle that could run: " + first.where + ": " +
                      first.message + more);
  return Error{ErrorKind::Internal,
               "the bundle just written is not sound: " + first.where + ": " + first.message + more};
}

Status fillWriter(bundle::Writer &writer, CompiledModel &model, bundle::WeightsWriter &weights,
                  bundle::Manifest manifest, mlir::ModuleOp module, bool fromText, std::vector<TimeRow> &times) {
  if (Status added = addConstants(model, weights); !added)
    return added;
  for (bundle::GraphDesc &graph : model.graph.graphs)
    for (bundle::BufferDesc &buffer : graph.buffers)
      if (buffer.kind == bundle::BufferKind::Const)
        buffer.offset = static_cast<int64_t>(weights.offsetOf(buffer.tensor));
  if (Status added = writer.addEntry("graph.json", bundle::toJson(model.graph)); !added)
    return added;
  if (!model.constants.empty())
    if (Status added = writer.addStream(kWeightsEntry, weights.size(), weights.producer()); !added)
      return added;
  for (const CodeEntry &code : model.code)
    if (Status added = writer.addEntry(code.entry, std::string(code.bytes.begin(), code.bytes.end())); !added)
      return added;
  if (Status added = writer.addEntry("debug/kernels.json", kernelNodes(model.graph)); !added)
    return added;
  for (const auto &[name, text] :
       {std::pair("debug/masks.json", keptMasks(module)), {"debug/formats.json", keptFormats(module)}})
    if (!text.empty())
      if (Status added = writer.addEntry(name, text); !added)
        return added;
  writer.setManifest(std::move(manifest));
  writer.setCheck([&times, fromText](const std::string &path) {
    Clock::time_point start = Clock::now();
    Status sound = checkWritten(path, fromText);
    times.push_back({"write", "check", secondsSince(start)});
    return sound;
  });
  return writer.finish();
}

/// Each body once, in the order of the kernels.
void addUserCode(mlir::ModuleOp module, bundle::Manifest &manifest) {
  std::set<std::vector<std::string>> seen;
  for (mlir::Operation &op : module.getOps()) {
    auto kernel = mlir::dyn_cast<dlir::KernelOp>(op);
    auto program = mlir::dyn_cast<dlir::DeviceProgramOpInterface>(op);
    auto notes = kernel || program ? op.getAttrOfType<mlir::ArrayAttr>(dmir::kUserCodeAttr) : mlir::ArrayAttr();
    for (mlir::Attribute attr : notes ? notes.getValue() : llvm::ArrayRef<mlir::Attribute>()) {
      auto note = mlir::cast<mlir::DictionaryAttr>(attr);
      auto text = [&](llvm::StringRef key) { return note.getAs<mlir::StringAttr>(key).str(); };
      llvm::StringRef device = kernel ? kernel.getDevice() : program.getDevice();
      bundle::UserCodeDesc code{text("kernel"), device.str(),   text("arch"),
                                text("file"),   text("symbol"), text("sha256")};
      if (seen.insert({code.kernel, code.target, code.arch, code.symbol, code.sha256}).second)
        manifest.userCode.push_back(std::move(code));
    }
  }
}

} // namespace

void Compilation::beginDigest() {
  auto hash = [path = options.model]() -> Result<std::string> {
    auto file = MappedFile::open(path);
    return file ? Result<std::string>(Sha256::hexOf((*file)->bytes())) : file.takeError();
  };
  constexpr uintmax_t worthAThread = 16 << 20;
  std::error_code code;
  const uintmax_t size = std::filesystem::file_size(options.model, code);
  const bool beside = options.jobs > 1 && !code && size >= worthAThread;
  // Where there are no more threads it is deferred.
  digest = std::async(beside ? std::launch::async | std::launch::deferred : std::launch::deferred, hash);
}

Result<bundle::Manifest> Compilation::manifest() {
  bundle::Manifest manifest;
  mlir::ModuleOp module = *theModule;
  if (auto name = module->getAttrOfType<mlir::StringAttr>(dmir::kModelNameAttr))
    manifest.modelName = name.getValue().str();
  if (manifest.modelName.empty())
    manifest.modelName = llvm::sys::path::stem(options.model).str();
  noteWork("hashing the model");
  if (!digest.valid())
    beginDigest();
  Result<std::string> modelSha256 = digest.get();
  if (!modelSha256)
    return modelSha256.takeError();
  manifest.modelSha256 = std::move(*modelSha256);
  manifest.modelSource = sourceFormat;
  if (auto metadata = module->getAttrOfType<mlir::DictionaryAttr>(dmir::kMetadataAttr))
    for (mlir::NamedAttribute entry : metadata)
      if (auto text = mlir::dyn_cast<mlir::StringAttr>(entry.getValue()))
        manifest.modelMetadata.emplace_back(entry.getName().str(), text.str());
  manifest.options = {{"opt", static_cast<int64_t>(options.optLevel)},
                      {"numerics", options.numerics.empty() ? "default" : options.numerics}};
  if (!options.stateType.empty())
    manifest.options.push_back({"state_type", options.stateType});
  if (RoundingTotals totals = roundingOf(*compiled); totals.weights) {
    manifest.options.push_back({"rounded_weights", totals.weights});
    manifest.options.push_back({"rounding_error", totals.errorText()});
  }
  if (std::string masks = keptSummary(module); !masks.empty()) {
    manifest.options.push_back({"sparsity", module->hasAttr(dmir::kSparsityAttr) ? "off" : "on"});
    manifest.options.push_back({"masks", masks});
  }
  for (const bundle::TargetDesc &target : compiled->targets)
    manifest.targets.push_back(target);
  manifest.entryPoints = compiled->entryPoints;
  if (auto shares = module->getAttrOfType<mlir::ArrayAttr>(dmir::kPlacementAttr))
    for (auto share : shares.getAsRange<mlir::DictionaryAttr>()) {
      auto target = share.getAs<mlir::StringAttr>("target"), reason = share.getAs<mlir::StringAttr>("reason");
      if (auto nodes = share.getAs<mlir::IntegerAttr>("nodes"); target && reason && nodes)
        manifest.placement.push_back({target.str(), nodes.getInt(), reason.str()});
    }
  addUserCode(module, manifest);
  bundle::requireFeaturesOf(compiled->graph, manifest);
  return manifest;
}

bool Compilation::writeBundle(const std::string &path) {
  return guarded("write", ErrorKind::Internal, [&] {
    auto format = options.bundleDirectory ? bundle::BundleFormat::Directory : bundle::BundleFormat::Zip;
    Result<std::unique_ptr<bundle::Writer>> writer = bundle::Writer::create(path, format);
    if (!writer) {
      diagnostics.report(writer.error(), "io", path);
      return false;
    }
    bundle::WeightsWriter weights;
    Result<bundle::Manifest> described = manifest();
    Status written = described ? fillWriter(**writer, *compiled, weights, std::move(*described), *theModule,
                                            phaseCtx.checkStrategies, timeRows)
                               : Status(described.takeError());
    if (!written) {
      diagnostics.report(written.error(),
                         written.error().kind == ErrorKind::IO      ? "io"
                         : written.error().kind == ErrorKind::Model ? "constants"
                                                                    : "internal",
                         written.error().kind == ErrorKind::Model ? options.model : path);
      return false;
    }
    bytes = (*writer)->bytesWritten();
    return true;
  });
}

} // namespace dmxc::driver
