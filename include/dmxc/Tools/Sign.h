//===- Sign.h - what dmx-sign does ------------------------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <iosfwd>
#include <string>
#include <vector>

namespace dmxc::tools {

/// The command line of dmx-sign, one field a flag.
struct SignOptions {
  std::string command; ///< one of signCommands()
  std::string path;    ///< of the key pair for keygen, else of the bundle
  std::string keyFile;
  std::string detachedFile; ///< sign: where the signature goes instead of into the bundle
  std::vector<std::string> trustedKeys;
  std::string signatureFile; ///< verify: a detached signature
  bool force = false;
};

const std::vector<std::string> &signCommands();

/// Does the command and says in a line what was done. ErrorKind::Usage for flags that the command does not have,
/// Mismatch when verify refuses the bundle, Model when what is to be signed is no sound bundle.
Status runSign(const SignOptions &options, std::ostream &out);

} // namespace dmxc::tools
