//===- Keys.h - files with keys for signatures ------------------*- C++ -*-===//
//
// Text of fixed form, so that keys can be looked at, mailed and compared:
//
//   dmx-public-key 1            dmx-secret-key 1
//   key <64 hex digits>         key <64 hex digits>
//                               seed <64 hex digits>
//
// Lines may end with CRLF, the last one's end may be missing, and empty lines may follow, as editors leave them.
// `key` is the Ed25519 public key, `seed` what RFC 8032 calls the private key.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace dmxc::tools {

using KeyBytes = std::array<unsigned char, 32>;

struct SecretKey {
  KeyBytes key{};  ///< the public half
  KeyBytes seed{}; ///< wiped by the destructor; never printed
  SecretKey() = default;
  SecretKey(SecretKey &&other) noexcept;
  SecretKey &operator=(SecretKey &&) = delete;
  ~SecretKey();
};

/// Lower-case hex digits.
std::string hexText(const unsigned char *bytes, size_t size);

/// Errors are ErrorKind::IO: the file cannot be read or is none of that form.
Result<KeyBytes> readPublicKey(const std::string &path);
/// Refuses a file that others than its owner may read or write, too.
Result<SecretKey> readSecretKey(const std::string &path);

/// Writes the secret key to `path` with mode 0600 and the public one to
/// `path`.pub. Files that are there are replaced only with `force`.
Status writeKeyPair(const std::string &path, const SecretKey &key, bool force);

} // namespace dmxc::tools
