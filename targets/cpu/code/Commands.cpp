//===- Commands.cpp - what tools would do of a level's code ---------------===//

#include "Commands.h"
#include "Link.h"

#include "dmxc/Support/ShellWord.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace dmxc;
using namespace dmxc::cpu;

/// As optimize in Lowering.cpp has it. What no tool does is said where there is something of it.
static std::string optimiseCommand(const KernelObject &object) {
  const std::string stem = object.temps + "/" + object.name;
  if (object.patched)
    return "# " + shellWord(stem + ".bc") + ": no tool makes it of " + shellWord(stem + ".in.bc") +
           ", as stores of single lanes were rewritten behind opt\n";
  return std::string(DMXC_LLVM_TOOLS) + "/opt -preserve-bc-uselistorder '-passes=" + object.pipeline +
         "' -disable-loop-unrolling -vectorize-loops=false -interleave-loops=false -vectorize-slp=false " +
         shellWord(stem + ".in.bc") + " -o " + shellWord(stem + ".bc") + "\n";
}

/// As addCodeGenPasses in Lowering.cpp has it.
static std::string compileCommand(const std::string &stem, const char *form, unsigned optLevel) {
  return std::string(DMXC_LLVM_TOOLS) + "/llc -O" + (optLevel == 0 ? "0" : "3") +
         " -relocation-model=pic -code-model=small -enable-misched=false -filetype=obj " + shellWord(stem + form) +
         " -o " + shellWord(stem + ".o") + "\n";
}

std::string dmxc::cpu::levelCommands(std::span<const KernelObject> objects, const std::string &result,
                                     unsigned optLevel) {
  std::string lines = compileCommand(result + ".table", ".ll", 2), inputs = " " + shellWord(result + ".table.o");
  llvm::StringSet<> linked;
  std::string bodies;
  for (const KernelObject &object : objects) {
    lines += optimiseCommand(object);
    lines += compileCommand(object.temps + "/" + object.name, ".bc", optLevel);
    inputs += " " + shellWord(object.temps + "/" + object.name + ".o");
    for (const UserCode &code : object.user)
      if (!code.bitcode && linked.insert(code.linked).second)
        bodies += " " + shellWord(object.temps + "/" + code.linked + ".o");
  }
  return lines + DMXC_LLVM_TOOLS + "/" + llvm::join(linkerArguments(), " ") + " -o " + shellWord(result) + inputs +
         bodies + "\n";
}
