//===- Manifest.cpp - a bundle's manifest.json ----------------------------===//
#include "dmxc/Bundle/Manifest.h"

#include "Json.h"
#include "schemas/BundleFormat.h"

#include <algorithm>

namespace dmxc::bundle {

using json::Reader;
using json::Value;

const char *versionOfThisBuild() { return DMXC_VERSION; }

const EntryPoint *Manifest::findEntryPoint(std::string_view name) const {
  for (const EntryPoint &entry : entryPoints)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

const std::vector<std::string> &knownFeatures() {
  static const std::vector<std::string> names = {"broadcast",    "caller-caches", "common-code",   "constraints",
                                                 "control-flow", "narrow-types",  "returned-dims", "state-lengths"};
  return names;
}

std::vector<std::string> featuresOf(const Manifest &manifest) {
  for (const TargetDesc &target : manifest.targets)
    if (!target.common.empty())
      return {"common-code"};
  return {};
}

int64_t minorOf(std::string_view feature) {
  return feature == "caller-caches" ? 5 : feature == "state-lengths" ? 4 : feature == "common-code" ? 2 : 1;
}

int64_t minorOfDescriptions(const Manifest &manifest) {
  for (const EntryPoint &entry : manifest.entryPoints)
    for (const std::vector<TensorDesc> *tensors : {&entry.inputs, &entry.outputs})
      for (const TensorDesc &tensor : *tensors)
        if (!tensor.description.empty())
          return 3;
  return 0;
}

void requireFeaturesOf(const GraphFile &graphs, Manifest &manifest) {
  manifest.required = featuresOf(graphs);
  for (const std::string &feature : featuresOf(manifest))
    manifest.required.push_back(feature);
  std::sort(manifest.required.begin(), manifest.required.end());
  manifest.minor = std::max<int64_t>(minorOfDescriptions(manifest), manifest.userCode.empty() ? 0 : 6);
  for (const std::string &feature : manifest.required)
    manifest.minor = std::max(manifest.minor, minorOf(feature));
}

const EntryDesc *Manifest::findEntry(std::string_view name) const {
  for (const EntryDesc &entry : entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

Value tensorsValue(const std::vector<TensorDesc> &tensors) {
  Value array = Value::array();
  for (const TensorDesc &tensor : tensors) {
    array.push_back({{"name", tensor.name},
                     {"dtype", std::string(dtypeName(tensor.dtype))},
                     {"shape", json::toValue(tensor.shape)}});
    if (!tensor.description.empty())
      array.back()["description"] = tensor.description;
  }
  return array;
}

Value entryPointsValue(const std::vector<EntryPoint> &entryPoints) {
  Value array = Value::array();
  for (const EntryPoint &entry : entryPoints) {
    Value dims = Value::array();
    for (const SymbolicDim &dim : entry.dims)
      dims.push_back({{"name", dim.name}, {"min", dim.min}, {"max", dim.max}});
    array.push_back({{"name", entry.name},
                     {"inputs", tensorsValue(entry.inputs)},
                     {"outputs", tensorsValue(entry.outputs)},
                     {"dims", std::move(dims)}});
  }
  return array;
}

Value modelValue(const Manifest &m) {
  Value metadata = Value::object();
  for (const auto &[key, text] : m.modelMetadata)
    metadata[key] = text;
  return {
      {"name", m.modelName}, {"sha256", m.modelSha256}, {"source", m.modelSource}, {"metadata", std::move(metadata)}};
}

Value optionsValue(const Manifest &m) {
  Value options = Value::object();
  for (const auto &[key, option] : m.options)
    std::visit([&, &name = key](const auto &v) { options[name] = v; }, option);
  return options;
}

Value targetsValue(const Manifest &m) {
  Value array = Value::array();
  for (const TargetDesc &target : m.targets) {
    array.push_back(
        {{"target", target.target}, {"arch", target.arch}, {"entry", target.entry}, {"features", target.features}});
    if (!target.common.empty())
      array.back()["common"] = target.common;
  }
  return array;
}

Value placementValue(const Manifest &m) {
  Value placement = Value::object();
  for (const PlacementDesc &place : m.placement)
    placement[place.target] = {{"ops", place.ops}, {"reason", place.reason}};
  return placement;
}

Value userCodeValue(const Manifest &m) {
  Value array = Value::array();
  for (const UserCodeDesc &code : m.userCode)
    array.push_back({{"kernel", code.kernel},
                     {"target", code.target},
                     {"arch", code.arch},
                     {"file", code.file},
                     {"symbol", code.symbol},
                     {"sha256", code.sha256}});
  return array;
}

Value entriesValue(const Manifest &m) {
  Value array = Value::array();
  for (const EntryDesc &entry : m.entries)
    array.push_back({{"name", entry.name}, {"size", entry.size}, {"sha256", entry.sha256}});
  return array;
}

} // namespace

std::string toJson(const Manifest &m) {
  Value root = Value::object();
  root["format"] = {{"major", m.major}, {"minor", m.minor}};
  root["min_runtime"] = m.minRuntime;
  root["producer"] = {{"name", m.producerName}, {"version", m.producerVersion}};
  root["model"] = modelValue(m);
  root["options"] = optionsValue(m);
  root["targets"] = targetsValue(m);
  root["entry_points"] = entryPointsValue(m.entryPoints);
  root["placement"] = placementValue(m);
  if (!m.userCode.empty())
    root["user_code"] = userCodeValue(m);
  root["required"] = m.required;
  root["entries"] = entriesValue(m);
  return json::dump(root, 5);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

std::vector<TensorDesc> readTensors(const Reader &r, const char *key) {
  std::vector<TensorDesc> all;
  r.forEach(key, true, [&](const Reader &t) {
    TensorDesc tensor;
    tensor.name = t.string("name");
    std::string dtype = t.string("dtype");
    if (std::optional<DType> type = dtypeFromName(dtype))
      tensor.dtype = *type;
    else
      t.fail("unknown dtype '" + dtype + "'");
    tensor.shape = t.exprs("shape", true);
    tensor.description = t.string("description", "");
    all.push_back(std::move(tensor));
  });
  return all;
}

EntryPoint readEntryPoint(const Reader &r) {
  EntryPoint entry;
  entry.name = r.string("name");
  entry.inputs = readTensors(r, "inputs");
  entry.outputs = readTensors(r, "outputs");
  r.forEach("dims", false, [&](const Reader &d) {
    entry.dims.push_back({d.string("name"), d.integer("min", 0), d.integer("max", INT64_MAX)});
  });
  return entry;
}

void readModel(const Reader &root, Manifest &m) {
  if (!root.has("model"))
    return;
  Reader model = root.at("model");
  m.modelName = model.string("name", "");
  m.modelSha256 = model.string("sha256", "");
  m.modelSource = model.string("source", "");
  model.forEachField("metadata",
                     [&](const std::string &key, const Reader &v) { m.modelMetadata.emplace_back(key, v.asString()); });
}

OptionValue readOption(const Reader &r) {
  if (r.raw().is_boolean())
    return r.raw().get<bool>();
  if (r.raw().is_string())
    return r.asString();
  return r.asInteger();
}

EntryDesc readEntry(const Reader &r) {
  EntryDesc entry;
  entry.name = r.string("name");
  int64_t size = r.integer("size");
  if (size < 0)
    r.fail("the size is negative");
  entry.size = static_cast<uint64_t>(size);
  entry.sha256 = r.string("sha256");
  if (entry.sha256.size() != 64 || entry.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    r.fail("'sha256' must be 64 lower-case hex digits");
  return entry;
}

void checkMinRuntime(const Reader &root, const std::string &text) {
  if (!dmx::format::parseVersion(text))
    root.fail("min_runtime '" + text + "' is not a version like 0.1.0");
}

void readBody(const Reader &root, Manifest &m) {
  m.minRuntime = root.string("min_runtime");
  checkMinRuntime(root, m.minRuntime);
  readModel(root, m);
  root.forEachField("options",
                    [&](const std::string &key, const Reader &v) { m.options.emplace_back(key, readOption(v)); });
  root.forEach("targets", true, [&](const Reader &t) {
    m.targets.push_back({t.string("target"), t.string("arch"), t.string("entry", ""), t.strings("features", true),
                         t.string("common", "")});
  });
  root.forEach("entry_points", true, [&](const Reader &e) { m.entryPoints.push_back(readEntryPoint(e)); });
  root.forEachField("placement", [&](const std::string &key, const Reader &p) {
    m.placement.push_back({key, p.integer("ops", 0), p.string("reason", "")});
  });
  root.forEach("user_code", false, [&](const Reader &u) {
    m.userCode.push_back({u.string("kernel"), u.string("target"), u.string("arch", ""), u.string("file", ""),
                          u.string("symbol", ""), u.string("sha256", "")});
  });
  m.required = root.strings("required", true);
  root.forEach("entries", true, [&](const Reader &e) { m.entries.push_back(readEntry(e)); });
}

/// The version rule of COMPATIBILITY.md; 1 is the first major, so there is no
/// previous one to read yet.
void checkVersion(const Reader &root, const Manifest &m) {
  if (m.major == formatMajor && m.minor >= 0 && m.minor <= formatMinor)
    return;
  root.fail("the bundle has format " + std::to_string(m.major) + "." + std::to_string(m.minor) + " (written by " +
            m.producerName + " " + m.producerVersion + "); this version reads up to " + std::to_string(formatMajor) +
            "." + std::to_string(formatMinor) + ". " +
            (m.major < formatMajor ? "Compile the model again" : "Use a newer version, or compile the model again"));
}

} // namespace

Result<Manifest> parseManifest(std::string_view text) {
  Reader::Sink sink;
  Value value = json::parse(text, "manifest.json", sink);
  Manifest m;
  if (!sink.failed) {
    Reader root(value, "manifest.json", sink);
    if (!root.raw().is_object())
      root.fail("expected an object");
    // The version comes first: a newer major may have changed anything else.
    if (root.has("producer")) {
      Reader producer = root.at("producer");
      m.producerName = producer.string("name", "?");
      m.producerVersion = producer.string("version", "?");
    }
    m.major = root.at("format").integer("major");
    m.minor = root.at("format").integer("minor");
    if (!sink.failed)
      checkVersion(root, m);
    if (!sink.failed)
      readBody(root, m);
  }
  if (sink.failed)
    return modelError(sink.message);
  return m;
}

} // namespace dmxc::bundle
