//===- Trust.cpp - signatures of bundles ----------------------------------===//
//
// A signature names one manifest by its sha256, and the manifest names every other byte by theirs. Without libsodium
// (DMXC_SIGNATURES) the form is read all the same, but keys are refused.
//
//===----------------------------------------------------------------------===//

#include "Trust.h"

#include <algorithm>
#include <array>
#include <cstring>

#if DMXC_SIGNATURES
#include <sodium.h>
#endif

namespace dmxrt {
namespace {

constexpr std::string_view kMagic = "dmx-bundle-signature ";
constexpr size_t kMaxVersionDigits = 9;

/// The lines after the first one, in order: a word and hex digits.
struct Field {
  std::string_view word;
  size_t digits;
};
constexpr std::array<Field, 3> kFields{{{"manifest-sha256 ", 64}, {"key ", 64}, {"signature ", 128}}};

/// A signature of version 1, as views of its text. Of another version nothing but the number is known.
struct Signed {
  std::string_view version;
  std::string_view manifest, key, value; // hex digits
  std::string_view message;              // what the signature is of: the lines before its own
};

bool isHex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == std::string_view::npos; }

bool readSigned(std::string_view text, Signed &out) {
  std::string_view rest = text;
  if (!rest.starts_with(kMagic))
    return false;
  rest.remove_prefix(kMagic.size());
  size_t digits = std::min(rest.find('\n'), rest.size());
  out.version = rest.substr(0, digits);
  if (digits == 0 || digits == rest.size() || digits > kMaxVersionDigits || out.version[0] == '0' ||
      out.version.find_first_not_of("0123456789") != std::string_view::npos)
    return false;
  if (out.version != "1")
    return true;
  rest.remove_prefix(digits + 1);
  std::string_view *values[] = {&out.manifest, &out.key, &out.value};
  for (size_t i = 0; i < kFields.size(); ++i) {
    const auto &[word, count] = kFields[i];
    if (i + 1 == kFields.size())
      out.message = text.substr(0, text.size() - rest.size());
    if (rest.size() < word.size() + count + 1 || !rest.starts_with(word) || rest[word.size() + count] != '\n')
      return false;
    *values[i] = rest.substr(word.size(), count);
    if (!isHex(*values[i]))
      return false;
    rest.remove_prefix(word.size() + count + 1);
  }
  return rest.empty();
}

/// How messages name a key: its first 16 digits.
std::string_view idOf(std::string_view key) { return key.substr(0, 16); }

/// Form and manifest, of whichever signature counts.
Status readFor(std::string_view manifestSha256, std::string_view what, std::span<const std::byte> bytes,
               dmx_status refusal, Signed &out) {
  if (!readSigned({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, out))
    return fail(refusal, what, " is truncated, damaged or none (", bytes.size(),
                " bytes that are not of the form 'dmx-bundle-signature 1'); sign the bundle again");
  if (out.version == "1" && out.manifest != manifestSha256)
    return fail(refusal, what, " is of another bundle: it names a manifest of sha256 ", idOf(out.manifest),
                "..., this one has ", idOf(manifestSha256), "...");
  return {};
}

#if DMXC_SIGNATURES
template <size_t N> std::array<unsigned char, N> fromHex(std::string_view hex) {
  std::array<unsigned char, N> bytes;
  auto digit = [](char c) { return static_cast<unsigned char>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i < N; ++i)
    bytes[i] = static_cast<unsigned char>(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
  return bytes;
}

/// That one of the trusted keys made the signature.
Status checkKey(const Signed &found, std::span<const std::byte> keys) {
  static_assert(crypto_sign_PUBLICKEYBYTES == DMX_PUBLIC_KEY_BYTES && crypto_sign_BYTES == 64);
  auto key = fromHex<crypto_sign_PUBLICKEYBYTES>(found.key);
  bool trusted = false;
  for (size_t at = 0; at < keys.size(); at += key.size())
    trusted |= std::memcmp(keys.data() + at, key.data(), key.size()) == 0;
  if (!trusted)
    return fail(DMX_STATUS_UNTRUSTED, "it is signed by key ", idOf(found.key), "..., which is not ",
                keys.size() == key.size() ? "the trusted key" : "one of the trusted keys",
                "; trust it if you know whose it is");
  if (sodium_init() < 0)
    return fail(DMX_STATUS_UNSUPPORTED, "signatures cannot be checked: libsodium does not start on this system");
  auto value = fromHex<crypto_sign_BYTES>(found.value);
  if (crypto_sign_verify_detached(value.data(), reinterpret_cast<const unsigned char *>(found.message.data()),
                                  found.message.size(), key.data()) != 0)
    return fail(DMX_STATUS_UNTRUSTED, "the signature is not by key ", idOf(found.key),
                "..., which it names: it was forged or changed after signing");
  return {};
}
#endif

} // namespace

Status readTrust(const dmx_bundle_options &options, Trust &trust) {
  auto wrong = [](std::string_view what) { return fail(DMX_STATUS_INVALID_ARGUMENT, "options->", what); };
  if (!options.trusted_keys && options.trusted_key_count)
    return wrong("trusted_keys is NULL, but trusted_key_count is not 0");
  // "Nobody is trusted" must not mean "no signature is asked for".
  if (options.trusted_keys && !options.trusted_key_count)
    return wrong("trusted_key_count is 0, but trusted_keys is not NULL; give a key to trust, or NULL to trust anybody");
  if (!options.signature && options.signature_size)
    return wrong("signature is NULL, but signature_size is not 0");
  if (options.signature && !options.trusted_keys)
    return wrong("signature is given without trusted keys, and would prove nothing");
#if !DMXC_SIGNATURES
  if (options.trusted_keys)
    return fail(DMX_STATUS_UNSUPPORTED, "trusted keys were given, but this libdmxrt was built without signatures; "
                                        "build it with -DDMXC_SIGNATURES=ON and libsodium");
#endif
  trust.keys = {reinterpret_cast<const std::byte *>(options.trusted_keys),
                size_t(options.trusted_key_count) * DMX_PUBLIC_KEY_BYTES};
  trust.detached = {static_cast<const std::byte *>(options.signature), options.signature_size};
  trust.hasDetached = options.signature != nullptr;
  return {};
}

Status checkSignature(const Archive::Entry *inside, std::string_view manifestSha256, const Trust &trust) {
  Signed found;
  if (inside)
    if (Status status = readFor(manifestSha256, "the signature in the bundle", inside->data,
                                trust.isAsked() ? DMX_STATUS_UNTRUSTED : DMX_STATUS_INVALID_BUNDLE, found);
        !status)
      return status;
  if (!trust.isAsked())
    return {};
#if DMXC_SIGNATURES
  if (trust.hasDetached) {
    if (Status status = readFor(manifestSha256, "the detached signature", trust.detached, DMX_STATUS_UNTRUSTED, found);
        !status)
      return status;
  } else if (!inside) {
    return fail(DMX_STATUS_UNTRUSTED, "the bundle is not signed, and only bundles signed by a trusted key may be "
                                      "opened here; sign it with dmx-sign or give its detached signature");
  }
  if (found.version != "1")
    return fail(DMX_STATUS_UNSUPPORTED, "the signature has version ", found.version, "; runtime ", dmx_version_string(),
                " checks version 1; install a newer runtime");
  return checkKey(found, trust.keys);
#else
  return fail(DMX_STATUS_INTERNAL, "keys where signatures are not built");
#endif
}

} // namespace dmxrt
