//===- Bundle.h - an open bundle --------------------------------*- C++ -*-===//
#pragma once

#include "Archive.h"
#include "Graph.h"
#include "Manifest.h"
#include "Trust.h"
#include "runtime/Error.h"
#include "runtime/devices/Device.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dmxrt {

/// Names, dtypes and bounds of one entry point's inputs and outputs, in the
/// form the C API hands out.
struct Signature {
  struct Tensor {
    std::string name;
    dmx_dtype dtype = 0;
    std::string description;
    std::vector<std::string> dimTexts; // storage behind dims[].name
    std::vector<dmx_dim> dims;
  };
  std::string name;
  std::vector<Tensor> inputs, outputs;
  uint32_t graph = 0; // index into Bundle::graphs
};

/// Immutable after open, apart from caches of code and its bytes, which have their own
/// locks. Thread-safe.
class Bundle {
public:
  /// Opens and checks everything but the bytes of weights, debug and tests, and of code that sessions take only where
  /// they ask for it, which is checked then; with keys to trust, all. What is checked is moved into private memory
  /// first, so that it cannot differ from what is used. With keys, nothing is parsed before the manifest's signature
  /// was found to be by one of them.
  static Result<std::shared_ptr<const Bundle>> open(Archive archive, const Trust &trust = {});
  /// The checks that need the manifest alone.
  static Result<Manifest> checkHeader(const Archive &archive);

  /// sha256 and CRC of every entry, and that all code objects can be loaded.
  Status verify() const;

  /// Whether a code object says what its kernels rely on: 1, 0, or -1 for targets that this runtime knows nothing of.
  Status hasContracts(const TargetCode &code, int32_t &contracts) const;
  /// Refuses a bundle with code that does not say it.
  Status requireContracts() const;

  const Manifest &manifest() const { return parsed; }
  const Archive &archive() const { return files; }
  const char *manifestText() const { return text.c_str(); }
  const std::vector<Signature> &signatures() const { return functions; }
  const Graph &graph(uint32_t index) const { return graphs[index]; }
  /// Null when there is no such entry point; NULL `name` is the first.
  const Signature *findSignature(const char *name) const;

  /// A code entry, loaded; shared by all sessions that use it, but for what a rehearsal loads, which cannot run.
  Result<std::shared_ptr<const CodeImage>> code(const std::string &entry, Device &device, bool isShared) const;

private:
  Bundle(Archive archive) : files(std::move(archive)) {}
  Archive files;
  Manifest parsed;
  std::string text; // of the manifest, NUL-terminated
  std::vector<Graph> graphs;
  std::vector<Signature> functions;
  mutable std::mutex copyMutex, codeMutex;
  mutable std::map<std::string, std::shared_ptr<const Mapping>> codeCopies;  // of entries that open left alone
  mutable std::map<std::string, std::shared_ptr<const CodeImage>> codeCache; // by entry name

  static Status checkManifest(const Archive &archive);
  static Status checkSha256(const ManifestEntry &entry, std::span<const std::byte> bytes);
  Status checkCrc(std::string_view name) const;
  Status loadEntries(bool checkAll);
  Result<std::span<const std::byte>> codeBytes(const std::string &entry) const;
  Status matchGraphs();
  Status checkLayouts() const;
};

} // namespace dmxrt
