//===- Manifest.cpp - manifest.json as plain structs ----------------------===//

#include "Manifest.h"
#include "Archive.h"
#include "DType.h"
#include "Json.h"
#include "schemas/BundleFormat.h"

#include <algorithm>
#include <array>
#include <set>

namespace dmxrt {
namespace {

/// What a bundle may require.
constexpr std::array<std::string_view, 8> kFeatures = {"broadcast",     "caller-caches", "common-code",
                                                       "constraints",   "control-flow",  "narrow-types",
                                                       "returned-dims", "state-lengths"};

/// "dmxc 0.3.0", for messages about skew.
std::string producerText(JsonCursor root) {
  JsonCursor producer = root.optional("producer");
  std::string name = producer.optional("name").string(), version = producer.optional("version").string();
  return name.empty() ? "an unnamed producer" : cat(name, " ", version);
}

/// Refuses what this runtime cannot read, saying who wrote it and what to do.
Status checkVersions(JsonDocument &document, JsonCursor root) {
  JsonCursor format = root["format"];
  int64_t major = format["major"].integer(0, INT32_MAX), minor = format["minor"].integer(0, INT32_MAX);
  std::string minimum = root["min_runtime"].string(), producer = producerText(root);
  if (document.failed())
    return document.takeError();
  if (major != kFormatMajor || minor > kFormatMinor)
    return fail(DMX_STATUS_UNSUPPORTED, "the bundle has format ", major, ".", minor, " (written by ", producer,
                "); runtime ", dmx_version_string(), " reads format ", kFormatMajor, ".0 to ", kFormatMajor, ".",
                kFormatMinor, major < kFormatMajor ? "; compile the model again" : "; install a newer runtime");
  std::optional<std::array<unsigned, 3>> needed = dmx::format::parseVersion(minimum);
  if (!needed)
    return badBundle("entry 'manifest.json': min_runtime '", minimum, "' is not a version like 0.1.0");
  if (*needed > std::array<unsigned, 3>{DMX_VERSION_MAJOR, DMX_VERSION_MINOR, DMX_VERSION_PATCH})
    return fail(DMX_STATUS_UNSUPPORTED, "the bundle (written by ", producer, ") needs runtime ", minimum,
                " or newer; this is ", dmx_version_string(), "; install a newer runtime");
  JsonCursor required = root["required"];
  for (size_t i = 0; i < required.size(); ++i)
    if (std::find(kFeatures.begin(), kFeatures.end(), required.at(i).string()) == kFeatures.end())
      return fail(DMX_STATUS_UNSUPPORTED, "the bundle (written by ", producer, ") requires feature '",
                  required.at(i).string(), "', which runtime ", dmx_version_string(),
                  " does not know; install a newer runtime");
  return {};
}

ManifestTensor parseTensor(JsonCursor cursor) {
  ManifestTensor tensor;
  tensor.name = cursor["name"].string();
  JsonCursor dtype = cursor["dtype"];
  std::string dtypeText = dtype.string();
  tensor.dtype = dtypeFromName(dtypeText);
  if (!tensor.dtype)
    dtype.fail(cat("unknown dtype '", dtypeText, "'"));
  JsonCursor shape = cursor["shape"];
  if (shape.size() > DMX_MAX_RANK)
    shape.fail(cat("rank ", shape.size(), " is above the highest, ", DMX_MAX_RANK));
  for (size_t i = 0; i < shape.size(); ++i) {
    JsonCursor dim = shape.at(i);
    tensor.shape.push_back(dim.isInteger() ? std::optional(dim.integer(0, INT64_MAX)) : std::nullopt);
  }
  tensor.description = cursor.optional("description").string();
  return tensor;
}

std::vector<ManifestTensor> parseTensors(JsonCursor list) {
  std::vector<ManifestTensor> tensors;
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    tensors.push_back(parseTensor(list.at(i)));
    if (!names.insert(tensors.back().name).second)
      list.at(i).fail(cat("the name '", tensors.back().name, "' is used twice"));
  }
  return tensors;
}

TargetCode parseTarget(JsonCursor cursor) {
  TargetCode code;
  code.target = cursor["target"].string();
  code.arch = cursor["arch"].string();
  code.entry = cursor["entry"].string();
  JsonCursor features = cursor["features"];
  for (size_t i = 0; i < features.size(); ++i)
    code.features.push_back(features.at(i).string());
  code.common = cursor.optional("common").string();
  return code;
}

ManifestEntry parseEntry(JsonCursor cursor) {
  ManifestEntry entry;
  entry.name = cursor["name"].string();
  entry.size = static_cast<uint64_t>(cursor["size"].integer(0, INT64_MAX));
  entry.sha256 = cursor["sha256"].string();
  if (entry.sha256.size() != 64)
    cursor.fail("sha256 does not have 64 hex digits");
  return entry;
}

/// Checks across lists: names unique, every code entry listed.
void checkManifest(const Manifest &manifest, JsonCursor root) {
  std::set<std::string> names{"manifest.json", std::string(kSignatureName)};
  for (const ManifestEntry &entry : manifest.entries)
    if (!names.insert(entry.name).second)
      root.fail(cat("entries lists '", entry.name, "' twice or lists the manifest itself or its signature"));
  if (!names.count("graph.json"))
    root.fail("entries does not list 'graph.json'");
  for (const TargetCode &code : manifest.targets)
    for (const std::string *entry : {&code.entry, &code.common})
      if (!names.count(*entry) && (entry == &code.entry || !entry->empty()))
        root.fail(cat("targets names code '", *entry, "', which entries does not list"));
  std::set<std::string> functions;
  for (const ManifestEntryPoint &entry : manifest.entryPoints)
    if (!functions.insert(entry.name).second)
      root.fail(cat("two entry points are named '", entry.name, "'"));
  if (manifest.entryPoints.empty())
    root.fail("there is no entry point");
}

} // namespace

Result<Manifest> parseManifest(std::span<const std::byte> text) {
  JsonDocument document(text, "manifest.json");
  JsonCursor root = document.root();
  if (Status status = checkVersions(document, root); !status)
    return status.takeError();
  Manifest manifest;
  JsonCursor targets = root["targets"], entryPoints = root["entry_points"], entries = root["entries"];
  for (size_t i = 0; i < targets.size(); ++i)
    manifest.targets.push_back(parseTarget(targets.at(i)));
  for (size_t i = 0; i < entryPoints.size(); ++i) {
    JsonCursor cursor = entryPoints.at(i);
    manifest.entryPoints.push_back(
        {cursor["name"].string(), parseTensors(cursor["inputs"]), parseTensors(cursor["outputs"])});
  }
  JsonCursor userCode = root.optional("user_code");
  for (size_t i = 0; i < userCode.size(); ++i)
    manifest.userCode.push_back(userCode.at(i)["kernel"].string());
  for (size_t i = 0; i < entries.size(); ++i)
    manifest.entries.push_back(parseEntry(entries.at(i)));
  root.optional("model").optional("metadata").forEachMember([&](std::string_view key, JsonCursor text) {
    manifest.metadata.emplace_back(key, text.string());
  });
  if (!document.failed())
    checkManifest(manifest, root);
  if (document.failed())
    return document.takeError();
  return manifest;
}

} // namespace dmxrt
