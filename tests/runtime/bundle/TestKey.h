//===- TestKey.h - keys and signatures made by tests ------------*- C++ -*-===//
//
// Independent of dmx-sign: the text of FORMAT.md ("Signature") written out again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../BundleBuilder.h"

#include <array>
#include <sodium.h>

namespace dmxtest {

/// The key pair whose seed is 32 times the same byte.
class TestKey {
public:
  explicit TestKey(unsigned char fill) {
    std::array<unsigned char, 32> seed;
    seed.fill(fill);
    crypto_sign_seed_keypair(key.data(), secret.data(), seed.data());
  }

  std::string hex() const { return hexOf(key.data(), key.size()); }
  /// The text of a signature of this manifest. `named` is the key that it says it is by.
  std::string sign(const std::string &manifestSha256, std::string named = "") const {
    std::string text =
        "dmx-bundle-signature 1\nmanifest-sha256 " + manifestSha256 + "\nkey " + (named.empty() ? hex() : named) + "\n";
    unsigned char value[crypto_sign_BYTES];
    crypto_sign_detached(value, nullptr, reinterpret_cast<const unsigned char *>(text.data()), text.size(),
                         secret.data());
    return text + "signature " + hexOf(value, sizeof value) + "\n";
  }
  std::string sign(const TestBundle &bundle) const { return sign(bundle.manifestSha256()); }

  std::array<unsigned char, 32> key;

private:
  static std::string hexOf(const unsigned char *bytes, size_t size) {
    std::string text(2 * size + 1, '\0');
    sodium_bin2hex(text.data(), text.size(), bytes, size);
    text.pop_back();
    return text;
  }
  std::array<unsigned char, 64> secret;
};

} // namespace dmxtest
