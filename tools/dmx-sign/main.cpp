//===- main.cpp - dmx-sign: signs bundles and checks signatures -----------===//
#include "dmxc/Tools/CommandLine.h"
#include "dmxc/Tools/Sign.h"

#include <CLI/CLI.hpp>
#include <iostream>

using namespace dmxc;
using namespace dmxc::tools;

namespace {

HelpPage helpPage() {
  HelpPage page;
  page.usage = {"keygen KEY [--force]", "sign BUNDLE --key KEY [--detached FILE] [--force]",
                "verify BUNDLE --trusted-key KEY.pub... [--signature FILE]"};
  page.examples = {{"dmx-sign keygen release.key", "writes release.key and release.key.pub"},
                   {"dmx-sign sign m.bundle --key release.key", ""},
                   {"dmx-sign sign m.bundle --key release.key --detached m.sig", ""},
                   {"dmx-sign verify m.bundle --trusted-key release.key.pub --signature m.sig", ""},
                   {"dmx-run m.bundle --trusted-key release.key.pub --inputs data", ""}};
  page.commands = {{"keygen", "Make a pair of keys"},
                   {"sign", "Sign a bundle"},
                   {"verify", "Check a bundle's signature, and every byte"}};
  return page;
}

void addFlags(CLI::App &app, SignOptions &options) {
  app.add_option("command", options.command, "keygen, sign or verify")->required();
  app.add_option("path", options.path, "The key to make, or the bundle: a file or a directory")->required();
  app.add_option("--key", options.keyFile, "The secret key; nobody but its owner may have access to the file")
      ->group("sign")
      ->type_name("KEY");
  app.add_option("--detached", options.detachedFile, "Write the signature to a file and leave the bundle as it is")
      ->group("sign")
      ->type_name("FILE");
  app.add_option("--trusted-key", options.trustedKeys, "A public key whose signature is accepted (repeatable)")
      ->group("verify")
      ->type_name("KEY.pub")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--signature", options.signatureFile, "A detached signature, instead of the one in the bundle")
      ->group("verify")
      ->type_name("FILE");
  app.add_flag("--force", options.force, "Replace key files, or the signature of another key in the bundle")
      ->group("General");
}

} // namespace

static int run(int argc, char **argv) {
  CLI::App app("Makes keys, signs bundles (Ed25519) and checks their signatures. Exit code 5 when a bundle is refused.",
               "dmx-sign");
  SignOptions options;
  addFlags(app, options);
  prepareApp(app, helpPage()); // last, so that its flags end the help
  if (std::optional<int> code = parseCommandLine(app, argc, argv))
    return *code;
  Status done = runSign(options, std::cout);
  std::cout.flush();
  return done ? 0 : reportError("dmx-sign", done.error());
}

int main(int argc, char **argv) {
  return runTool("dmx-sign", [&] { return run(argc, argv); });
}
