//===- Sign.cpp - what dmx-sign does --------------------------------------===//
#include "dmxc/Tools/Sign.h"

#include "dmxc/Bundle/Reader.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Sha256.h"
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Keys.h"
#include "dmxc/Tools/Runtime.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <sodium.h>

namespace dmxc::tools {

namespace {

struct CloseBundle {
  void operator()(dmx_bundle *bundle) const { dmx_bundle_close(bundle); }
};
using OpenedBundle = std::unique_ptr<dmx_bundle, CloseBundle>;

std::string_view entryText(const dmx_bundle *bundle, std::string_view name) {
  const void *data = nullptr;
  size_t size = 0;
  if (dmx_bundle_entry(bundle, std::string(name).c_str(), &data, &size, nullptr) != DMX_OK)
    return {};
  return {static_cast<const char *>(data), size};
}

Status startSodium() {
  return sodium_init() < 0 ? Status(Error{ErrorKind::Internal, "libsodium does not start on this system"})
                           : Status::ok();
}

Status keygen(const SignOptions &options, std::ostream &out) {
  SecretKey pair;
  unsigned char secret[crypto_sign_SECRETKEYBYTES];
  randombytes_buf(pair.seed.data(), pair.seed.size());
  crypto_sign_seed_keypair(pair.key.data(), secret, pair.seed.data());
  sodium_memzero(secret, sizeof secret);
  if (Status done = writeKeyPair(options.path, pair, options.force); !done)
    return done;
  out << options.path << ": secret key, for signing; keep it to yourself\n"
      << options.path << ".pub: public key " << hexText(pair.key.data(), pair.key.size()) << ", for those who check\n";
  return Status::ok();
}

/// A bundle whose every byte is right: nothing else is worth a signature.
Result<OpenedBundle> openSound(const std::string &path) {
  OpenSettings settings;
  settings.copyBundle = true;
  dmx_bundle *opened = nullptr;
  if (Status done = openBundle(path, settings, opened); !done)
    return done.takeError();
  OpenedBundle bundle(opened);
  dmx_error error = DMX_ERROR_INIT;
  if (dmx_status status = dmx_bundle_verify(opened, &error)) {
    Error failure = runtimeError(status, error);
    failure.message.insert(0, path + ": ");
    return failure;
  }
  return bundle;
}

Result<std::string> signatureText(const dmx_bundle *bundle, const SecretKey &pair) {
  bundle::Signature signature;
  std::string_view manifest = entryText(bundle, "manifest.json");
  signature.manifestSha256 = Sha256::hexOf(std::as_bytes(std::span(manifest.data(), manifest.size())));
  signature.key = hexText(pair.key.data(), pair.key.size());
  unsigned char secret[crypto_sign_SECRETKEYBYTES], value[crypto_sign_BYTES];
  KeyBytes key;
  crypto_sign_seed_keypair(key.data(), secret, pair.seed.data());
  std::string text = bundle::signedText(signature);
  crypto_sign_detached(value, nullptr, reinterpret_cast<const unsigned char *>(text.data()), text.size(), secret);
  sodium_memzero(secret, sizeof secret);
  if (key != pair.key)
    return ioError("the secret key's file is damaged: its public key is not that of its seed");
  signature.value = hexText(value, sizeof value);
  return bundle::toText(signature);
}

Status sign(const SignOptions &options, std::ostream &out) {
  auto pair = readSecretKey(options.keyFile);
  if (!pair)
    return pair.takeError();
  auto opened = openSound(options.path);
  if (!opened)
    return opened.takeError();
  auto text = signatureText(opened->get(), *pair);
  if (!text)
    return text.takeError();
  std::string key = hexText(pair->key.data(), pair->key.size()), target = options.detachedFile;
  if (target.empty()) {
    auto old = bundle::parseSignature(entryText(opened->get(), bundle::signatureName));
    if (old && old->key != key && !options.force)
      return usageError("'" + options.path + "' is signed by key " + old->key +
                        "; --force replaces that signature, "
                        "--detached leaves it");
    // Through a link to the file itself, which would else be replaced by one.
    std::error_code error;
    target = std::filesystem::canonical(options.path, error).string();
    opened->reset();
  }
  Status done = options.detachedFile.empty() ? bundle::attachSignature(target, *text)
                                             : writeFile(target, *text, Durability::Disk);
  if (done)
    out << options.path << ": signed by key " << key
        << (options.detachedFile.empty() ? "" : ", signature in " + options.detachedFile) << "\n";
  return done;
}

/// Files that nobody would read, since the manifest does not list them, but that were not there when it was signed.
Status checkUnlisted(const std::string &path) {
  auto bundle = bundle::Bundle::open(path);
  if (!bundle)
    return bundle.takeError();
  if (bundle->unlisted().empty())
    return Status::ok();
  return modelError(path + ": file '" + bundle->unlisted().front() + "' was added; the manifest does not list it");
}

Status verify(const SignOptions &options, std::ostream &out) {
  OpenSettings settings;
  settings.trustedKeys = options.trustedKeys;
  settings.signatureFile = options.signatureFile;
  dmx_bundle *opened = nullptr;
  Status done = openBundle(options.path, settings, opened);
  OpenedBundle bundle(opened);
  if (done)
    done = checkUnlisted(options.path);
  // Whatever is wrong with the bundle is the answer, and no failure of the tool's.
  if (!done && done.error().kind == ErrorKind::Model)
    return Error{ErrorKind::Mismatch, done.error().message};
  if (done)
    out << options.path << ": every byte is as a trusted key signed it\n";
  return done;
}

/// What a command needs and what it does not have.
Status checkFlags(const SignOptions &options) {
  bool signs = options.command == "sign", verifies = options.command == "verify";
  auto stray = [&](bool given, bool allowed, const char *flag) {
    return given && !allowed ? std::string(flag) : std::string();
  };
  for (const std::string &flag :
       {stray(!options.keyFile.empty(), signs, "--key"), stray(!options.detachedFile.empty(), signs, "--detached"),
        stray(!options.trustedKeys.empty(), verifies, "--trusted-key"),
        stray(!options.signatureFile.empty(), verifies, "--signature"), stray(options.force, !verifies, "--force")})
    if (!flag.empty())
      return usageError("dmx-sign " + options.command + " has no flag " + flag);
  if (signs && options.keyFile.empty())
    return usageError("dmx-sign sign needs --key KEY, the secret key to sign with");
  if (verifies && options.trustedKeys.empty())
    return usageError("dmx-sign verify needs --trusted-key KEY.pub: a signature proves nothing without a key to trust");
  return Status::ok();
}

} // namespace

const std::vector<std::string> &signCommands() {
  static const std::vector<std::string> commands = {"keygen", "sign", "verify"};
  return commands;
}

Status runSign(const SignOptions &options, std::ostream &out) {
  const auto &commands = signCommands();
  if (std::find(commands.begin(), commands.end(), options.command) == commands.end())
    return usageError("unknown command '" + options.command + "'" + didYouMean(options.command, commands) +
                      "; known are keygen, sign and verify");
  if (Status done = checkFlags(options); !done)
    return done;
  if (Status done = startSodium(); !done)
    return done;
  return options.command == "keygen" ? keygen(options, out)
         : options.command == "sign" ? sign(options, out)
                                     : verify(options, out);
}

} // namespace dmxc::tools
