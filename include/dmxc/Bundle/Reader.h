//===- Reader.h - opens a bundle for tools ----------------------*- C++ -*-===//
//
// The reader of dmx-inspect, dmx-run's front end and the tests. (The runtime
// has a reader of its own; both follow schemas/FORMAT.md.) Bundles are data
// from outside: every offset and size is checked before it is used.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Manifest.h"
#include "dmxc/Bundle/Signature.h"
#include "dmxc/Bundle/Weights.h"
#include "dmxc/Support/MappedFile.h"

#include <memory>
#include <span>

namespace dmxc::bundle {

struct BundleEntry {
  std::string name;
  std::span<const std::byte> bytes; ///< mapped, lives as long as the Bundle
  uint64_t offset = 0;              ///< of the data in the file; 0 in a directory
  uint32_t crc = 0;                 ///< as recorded; 0 in a directory

  std::string_view text() const { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }
};

/// An open bundle: its entries mapped, manifest and graph parsed. Immutable
/// and thread-safe after open. The file must not change while it is open.
class Bundle {
public:
  /// Opens a bundle file or directory. Checks the archive's structure, the
  /// manifest's sha256, the format version, and size and sha256 of graph.json.
  /// What else can be wrong is found by `validate`. Errors: ErrorKind::IO when
  /// the file cannot be read, ErrorKind::Model when it is not a sound bundle.
  static Result<Bundle> open(const std::string &path);

  const std::string &path() const { return where; }
  bool isDirectory() const { return directory; }
  /// Bytes of the archive file, or of all files of the directory.
  uint64_t fileSize() const { return size; }

  const Manifest &manifest() const { return contents; }
  const GraphFile &graphs() const { return graphFile; }
  /// sha256 of manifest.json: the identity of the bundle.
  const std::string &manifestSha256() const { return manifestSha; }

  /// What the bundle is signed with. Its form is sound and it names this
  /// manifest; who signed, and whether, is for the runtime to check.
  const std::optional<Signature> &signature() const { return signedBy; }

  /// All entries in archive order, manifest.json first, without the signature.
  /// (In a directory: those the manifest lists; `unlisted` has the other files.)
  const std::vector<BundleEntry> &entries() const { return all; }
  const BundleEntry *find(std::string_view name) const;
  const std::vector<std::string> &unlisted() const { return strangers; }

private:
  Status openZip();
  Status openDirectory();
  Status readManifest(const std::string &recordedSha);
  Status readSignature(const BundleEntry &entry);
  Status readGraph();

  std::string where;
  bool directory = false;
  uint64_t size = 0;
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<BundleEntry> all;
  std::vector<std::string> strangers;
  Manifest contents;
  GraphFile graphFile;
  std::string manifestSha;
  std::optional<Signature> signedBy;
};

} // namespace dmxc::bundle
