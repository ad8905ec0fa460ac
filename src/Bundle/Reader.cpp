//===- Reader.cpp - opens a bundle for tools ------------------------------===//
#include "dmxc/Bundle/Reader.h"

#include "EntryName.h"
#include "WriterImpl.h"
#include "Zip.h"
#include "ZipReader.h"
#include "dmxc/Support/Sha256.h"

#include <algorithm>
#include <filesystem>

namespace dmxc::bundle {

namespace fs = std::filesystem;

namespace {
bool isSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
} // namespace

const BundleEntry *Bundle::find(std::string_view name) const {
  for (const BundleEntry &entry : all)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

Result<Bundle> Bundle::open(const std::string &path) {
  Bundle bundle;
  bundle.where = path;
  std::error_code error;
  bundle.directory = fs::is_directory(path, error);
  Status done = bundle.directory ? bundle.openDirectory() : bundle.openZip();
  if (done)
    done = bundle.readGraph();
  if (!done) {
    Error failure = done.takeError();
    if (failure.kind == ErrorKind::Model)
      failure.message = "'" + path + "': " + failure.message;
    return failure;
  }
  return bundle;
}

Status Bundle::openZip() {
  auto file = MappedFile::open(where);
  if (!file)
    return file.takeError();
  files.push_back(*file);
  size = (*file)->bytes().size();
  auto contents = readZip((*file)->bytes());
  if (!contents)
    return contents.takeError();
  all = std::move(contents->entries);
  if (contents->signature && updateCrc32(0, contents->signature->bytes) != contents->signature->crc)
    return modelError("the signature is damaged: its CRC-32 differs from the archive's");
  std::string_view comment = contents->comment;
  if (!comment.starts_with(zip::commentPrefix) || !isSha256(comment.substr(zip::commentPrefix.size())))
    return modelError("the archive's comment does not hold the manifest's "
                      "checksum; it was not written by dmxc, or was repacked");
  if (all.empty() || all[0].name != "manifest.json")
    return modelError("the first entry is not manifest.json");
  if (Status done = readManifest(std::string(comment.substr(zip::commentPrefix.size()))); !done)
    return done;
  return contents->signature ? readSignature(*contents->signature) : Status::ok();
}

/// A file that cannot be looked at is not one that is not there.
static Result<bool> exists(const std::string &path) {
  std::error_code error;
  bool there = fs::exists(path, error);
  if (error)
    return ioError("cannot look at '" + path + "': " + error.message());
  return there;
}

Status Bundle::openDirectory() {
  auto map = [&](const std::string &name) -> Result<BundleEntry> {
    auto file = MappedFile::open(where + "/" + name);
    if (!file)
      return file.takeError();
    files.push_back(*file);
    size += (*file)->bytes().size();
    return BundleEntry{name, (*file)->bytes(), 0, 0};
  };
  Result<bool> isBundle = exists(where + "/manifest.json");
  if (!isBundle)
    return isBundle.takeError();
  if (!*isBundle)
    return modelError("the directory is not a bundle: it has no manifest.json");
  auto sha = map("manifest.sha256");
  if (!sha)
    return sha.takeError();
  std::string recorded(sha->text().substr(0, 64));
  if (!isSha256(recorded) || sha->text().substr(64) != "\n")
    return modelError("manifest.sha256 does not hold 64 hex digits and a newline");
  auto manifest = map("manifest.json");
  if (!manifest)
    return manifest.takeError();
  all.push_back(*manifest);
  if (Status done = readManifest(recorded); !done)
    return done;
  Result<bool> isSigned = exists(where + "/" + std::string(signatureName));
  if (!isSigned)
    return isSigned.takeError();
  if (*isSigned) {
    auto signature = map(std::string(signatureName));
    if (!signature)
      return signature.takeError();
    if (Status done = readSignature(*signature); !done)
      return done;
  }
  for (const EntryDesc &row : contents.entries) {
    if (std::string problem = entryNameProblem(row.name); !problem.empty())
      return modelError("manifest.json: entry '" + row.name + "': " + problem);
    auto entry = map(row.name);
    if (!entry)
      return entry.takeError();
    all.push_back(*entry);
  }
  std::error_code error;
  fs::recursive_directory_iterator walk(where, error), end;
  for (; !error && walk != end; walk.increment(error)) {
    std::string name = walk->path().lexically_relative(where).string();
    std::error_code ignored;
    if (!walk->is_directory(ignored) && name != "manifest.sha256" && name != signatureName && !find(name))
      strangers.push_back(name);
  }
  std::sort(strangers.begin(), strangers.end());
  return Status::ok();
}

Status Bundle::readManifest(const std::string &recordedSha) {
  manifestSha = Sha256::hexOf(all[0].bytes);
  if (manifestSha != recordedSha)
    return modelError("manifest.json is damaged: its sha256 is " + manifestSha + ", recorded is " + recordedSha);
  auto parsed = parseManifest(all[0].text());
  if (!parsed)
    return parsed.takeError();
  contents = std::move(*parsed);
  return Status::ok();
}

Status Bundle::readSignature(const BundleEntry &entry) {
  signedBy = parseSignature(entry.text());
  if (!signedBy)
    return modelError("the signature is truncated, damaged or none (" + std::to_string(entry.bytes.size()) +
                      " bytes that are not of the form 'dmx-bundle-signature 1'); sign the bundle again");
  if (signedBy->version == signatureVersion && signedBy->manifestSha256 != manifestSha)
    return modelError("the signature is of another bundle: it names a manifest of sha256 " + signedBy->manifestSha256 +
                      ", this one has " + manifestSha);
  return Status::ok();
}

Status Bundle::readGraph() {
  const EntryDesc *row = contents.findEntry("graph.json");
  const BundleEntry *entry = find("graph.json");
  if (!row || !entry)
    return modelError("graph.json is missing");
  if (row->size != entry->bytes.size() || row->sha256 != Sha256::hexOf(entry->bytes))
    return modelError("graph.json is damaged: size or sha256 differ from the "
                      "manifest's");
  auto parsed = parseGraph(entry->text());
  if (!parsed)
    return parsed.takeError();
  graphFile = std::move(*parsed);
  return Status::ok();
}

} // namespace dmxc::bundle
