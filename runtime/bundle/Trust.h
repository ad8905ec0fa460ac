//===- Trust.h - signatures of bundles --------------------------*- C++ -*-===//
#pragma once

#include "Archive.h"
#include "runtime/Error.h"

#include <span>
#include <string_view>

namespace dmxrt {

/// Whom the opener of a bundle trusts. Refers to the caller's memory.
struct Trust {
  std::span<const std::byte> keys;     // 32 bytes each; empty: anybody, signed or not
  std::span<const std::byte> detached; // a signature file's bytes, which count instead of the entry
  bool hasDetached = false;
  bool isAsked() const { return !keys.empty(); }
};

/// The options' keys and detached signature. Refuses halves of them, and keys where signatures are not built.
Status readTrust(const dmx_bundle_options &options, Trust &trust);

/// Checks what a bundle is signed with. `inside` is the bundle's own signature (null: it has none), whose form and
/// manifest are checked always; with keys, one of them must have signed the manifest of that sha256 (64 hex digits).
Status checkSignature(const Archive::Entry *inside, std::string_view manifestSha256, const Trust &trust);

} // namespace dmxrt
