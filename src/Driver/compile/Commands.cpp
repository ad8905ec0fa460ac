//===- Commands.cpp - what tools would do of a compile --------------------===//
#include "Commands.h"
#include "../options/OptionValues.h"

#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Support/MappedFile.h"

#include <filesystem>

namespace dmxc::driver {

/// --target and what else of the options dmx-opt takes, of the targets in the order that they are asked in.
static std::string targetFlags(const Options &options, const PhaseContext &context) {
  std::string flags;
  for (const TargetBackend *target : context.targets) {
    std::string levels;
    for (const TargetChoice &choice : options.targets)
      if (target->name() == choice.name)
        for (const std::string &level : choice.levels)
          levels += (levels.empty() ? ":" : "+") + level;
    flags += " " + shellWord("--target=" + target->name().str() + levels);
  }
  if (options.optLevel != Options().optLevel)
    flags += " --opt-level=" + std::to_string(options.optLevel);
  if (!options.numerics.empty())
    flags += " --numerics=" + shellWord(options.numerics);
  for (const std::string &file : options.kernelFiles)
    flags += " " + shellWord("--kernels=" + file);
  for (const auto &[name, use] : options.ukernels)
    flags += " --ukernels=" + name + "=" + use;
  return flags;
}

Result<std::string> invokedCommands(const Options &options, const PhaseContext &context) {
  std::string lines, before;
  const std::string flags = targetFlags(options, context);
  for (const Stop &stop : stops(context)) {
    const std::string text = options.dumpPhases + "/" + stop.file;
    if (!stop.phase->makesIR() || !std::filesystem::exists(text))
      continue;
    if (!before.empty())
      lines += "dmx-opt " + shellWord(before) + flags + " --dmxc-" + stop.name + " --mlir-print-debuginfo -o " +
               shellWord(text) + "\n";
    before = text;
  }
  for (const TargetBackend *target : context.targets) {
    const std::string path = options.saveTemps + "/commands." + target->name().str();
    if (!std::filesystem::exists(path))
      continue;
    auto file = MappedFile::open(path);
    if (!file)
      return file.takeError();
    lines.append(reinterpret_cast<const char *>((*file)->bytes().data()), (*file)->bytes().size());
  }
  return lines;
}

} // namespace dmxc::driver
