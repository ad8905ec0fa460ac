//===- Signature.h - signatures of bundles ----------------------*- C++ -*-===//
//
// The text of a signature and its place in a bundle, without any cryptography:
// dmx-sign makes signatures, the runtime checks them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <optional>
#include <string>
#include <string_view>

namespace dmxc::bundle {

/// The last entry (or the file) of a signed bundle. The manifest does not list
/// it, since it is a signature of the manifest.
inline constexpr std::string_view signatureName = "manifest.sig";

/// The version that is written, and the only one whose fields are known.
inline constexpr int64_t signatureVersion = 1;

/// Hex digits, lower-case; empty when `version` is an unknown one.
struct Signature {
  int64_t version = signatureVersion;
  std::string manifestSha256; ///< of the manifest that is signed, 64 digits
  std::string key;            ///< the signer's Ed25519 public key, 64 digits
  std::string value;          ///< 128 digits
};

/// What `value` is a signature of: the text's lines before its own.
std::string signedText(const Signature &signature);
std::string toText(const Signature &signature);

/// Nothing when the text is not one that FORMAT.md ("Signature") allows.
std::optional<Signature> parseSignature(std::string_view text);

/// Puts a signature's text into the bundle at `path`, in place of one that is
/// there. A file is written anew beside itself and renamed, with its mode kept;
/// all other entries keep their places. Errors: ErrorKind::IO, or Model when
/// `path` is no sound bundle. On failure the bundle is as it was.
Status attachSignature(const std::string &path, const std::string &text);

} // namespace dmxc::bundle
