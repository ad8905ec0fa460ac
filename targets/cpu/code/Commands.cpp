//===- Commands.cpp - what tools would do of a level's code ---------------===//

#include "Commands.h"
#include "Link.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace dmxc;
using namespace dmxc::cpu;

/// For a shell.
static std::string word(const std::string &text) {
  if (llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || llvm::StringRef("_./=:+,@%-").contains(c); }))
    return text;
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// As addCodeGenPasses in Lowering.cpp has it.
static std::string compileCommand(const std::string &stem, unsigned optLevel) {
  return std::string(DMXC_LLVM_TOOLS) + "/llc -O" + (optLevel == 0 ? "0" : "3") +
         " -relocation-model=pic -code-model=small -enable-misched=false -filetype=obj " + word(stem + ".ll") + " -o " +
         word(stem + ".o") + "\n";
}

std::string dmxc::cpu::levelCommands(std::span<const KernelObject> objects, const std::string &result,
                                     unsigned optLevel) {
  std::string lines = compileCommand(result + ".table", 2), inputs = " " + word(result + ".table.o");
  llvm::StringSet<> linked;
  std::string bodies;
  for (const KernelObject &object : objects) {
    lines += compileCommand(object.temps + "/" + object.name, optLevel);
    inputs += " " + word(object.temps + "/" + object.name + ".o");
    for (const UserCode &code : object.user)
      if (!code.bitcode && linked.insert(code.linked).second)
        bodies += " " + word(object.temps + "/" + code.linked + ".o");
  }
  return lines + DMXC_LLVM_TOOLS + "/" + llvm::join(linkerArguments(), " ") + " -o " + word(result) + inputs + bodies +
         "\n";
}
