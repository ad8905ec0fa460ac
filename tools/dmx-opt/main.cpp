//===- main.cpp - dmx-opt, mlir-opt with our dialects and passes ----------===//
#include "Evaluate.h"
#include "Interpret.h"
#include "Transforms.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/Transform/Passes.h"
#include "dmxc/Dialect/Transform/Transform.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/KernelFile.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Support/DataFile.h"

#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

/// What the dialect of each context is told, by a function that can hold nothing.
static std::vector<std::string> &dataFolders() {
  static std::vector<std::string> folders;
  return folders;
}

using Targets = std::vector<std::unique_ptr<dmxc::TargetBackend>>;

namespace {

/// What is ours of the arguments, which is taken out of them.
struct Flags {
  std::vector<dmxc::driver::TargetChoice> targets; ///< each name once
  std::vector<std::pair<std::string, std::string>> states;
  std::vector<std::string> dataFolders, kernelFiles;
  std::map<std::string, std::string> ukernels;
  int optLevel = dmxc::PhaseContext().optLevel;
  std::string numerics;
  bool printsTransforms = false;

  /// Of the same target the last choice counts.
  void choose(dmxc::driver::TargetChoice choice) {
    llvm::erase_if(targets, [&](const auto &other) { return other.name == choice.name; });
    targets.push_back(std::move(choice));
  }
};

} // namespace

/// `--opt-level=N`, `--numerics=MODE`, `--kernels=FILE` and `--ukernels=NAME=on|off|auto` are dmxc's options.
static bool takeModes(llvm::StringRef argument, Flags &flags, dmxc::Status &wrong) {
  if (argument.consume_front("--kernels=")) {
    flags.kernelFiles.push_back(argument.str());
  } else if (argument.consume_front("--numerics=")) {
    flags.numerics = argument.str();
  } else if (argument.consume_front("--ukernels=")) {
    if (auto use = dmxc::driver::parseUkernel(argument.str()))
      flags.ukernels.insert(*use);
    else
      wrong = use.takeError();
  } else if (argument.consume_front("--opt-level=")) {
    if (argument.getAsInteger(10, flags.optLevel) || flags.optLevel < 0 || flags.optLevel > 3)
      wrong = dmxc::usageError("--opt-level is 0 to 3");
  } else {
    return false;
  }
  return true;
}

/// The kernels of users; a context's dialect is told by a function that can hold nothing.
static dmxc::Status readKernels(const Flags &flags, mlir::DialectRegistry &registry) {
  static mlir::MLIRContext declared(registry);
  static dmxc::dmir::KernelSet *kernels = &dmxc::dmir::KernelSet::of(&declared);
  std::vector<std::string> files;
  for (const std::string &file : flags.kernelFiles)
    if (dmxc::Status read = dmxc::driver::readKernelFile(file, *kernels, files); !read)
      return read;
  registry.addExtension(+[](mlir::MLIRContext *, dmxc::dmir::DMIRDialect *dialect) {
    auto *known = dialect->getRegisteredInterface<dmxc::dmir::KernelSet>();
    for (const dmxc::dmir::KernelDecl &decl : kernels->all())
      static_cast<void>(known->add(decl)); // as it was before
    for (const dmxc::dmir::MicroDecl &decl : kernels->micros())
      static_cast<void>(known->add(decl));
  });
  return dmxc::driver::applyUses(flags.ukernels, *kernels);
}

/// `--target=NAME:LEVEL+..` gives a target its levels, and the first one named is asked first; `--state=INPUT=OUTPUT`
/// is what dmir-bind-states reads,
/// `--allow-external-data=DIR` names a folder that constants' files may lie in besides the text's own,
/// `--print-transforms=json` prints the ops that scripts may have (Transforms.h) and reads nothing.
static dmxc::Result<Flags> takeFlags(std::vector<char *> &arguments) {
  Flags flags;
  dmxc::Status wrong = dmxc::Status::ok();
  llvm::erase_if(arguments, [&](llvm::StringRef argument) {
    if (argument.consume_front("--target=")) {
      if (auto choice = dmxc::driver::parseTarget(argument.str()))
        flags.choose(std::move(*choice));
      else
        wrong = choice.takeError();
      return true;
    }
    if (argument.consume_front("--allow-external-data=")) {
      flags.dataFolders.push_back(argument.str());
      return true;
    }
    if (takeModes(argument, flags, wrong))
      return true;
    if (argument == "--print-transforms=json") {
      flags.printsTransforms = true;
      return true;
    }
    if (!argument.consume_front("--state="))
      return false;
    if (auto state = dmxc::driver::parseState(argument.str()))
      flags.states.push_back(std::move(*state));
    else
      wrong = state.takeError();
    return true;
  });
  if (!wrong)
    return wrong.takeError();
  for (size_t i = 1; i < arguments.size(); ++i) // the text is what is no flag, and no flag's value
    if (*arguments[i] != '-' && llvm::StringRef(arguments[i - 1]) != "-o")
      flags.dataFolders.push_back(dmxc::folderOf(arguments[i]));
  return flags;
}

/// Every target of this build, those that were named first.
static dmxc::Result<Targets> createTargets(Flags flags) {
  const size_t named = flags.targets.size(); // those that a mode of numbers is for
  for (const dmxc::TargetInfo &info : dmxc::registeredTargets())
    if (llvm::none_of(flags.targets, [&](const auto &choice) { return choice.name == info.name; }))
      flags.targets.push_back({info.name, {}});
  Targets targets;
  for (const dmxc::driver::TargetChoice &choice : flags.targets) {
    dmxc::TargetOptions options;
    options.levels = choice.levels;
    options.optLevel = flags.optLevel;
    options.numerics = targets.size() < named ? flags.numerics : "";
    auto target = dmxc::findTarget(choice.name)->create(options);
    if (!target)
      return dmxc::Error{target.error().kind, "target '" + choice.name + "': " + target.error().message};
    targets.push_back(std::move(*target));
  }
  return targets;
}

static int failWith(const dmxc::Error &error) {
  llvm::errs() << "dmx-opt: error: " << error.message << "\n";
  return dmxc::exitCodeOf(error.kind);
}

int main(int argc, char **argv) {
  std::vector<char *> arguments(argv, argv + argc);
  dmxc::Result<Flags> flags = takeFlags(arguments);
  if (!flags)
    return failWith(flags.error());
  dmxc::Result<Targets> targets = createTargets(*flags);
  if (!targets)
    return failWith(targets.error());
  mlir::DialectRegistry registry;
  dmxc::driver::registerDialects(registry);
  dmxc::transform::registerTransformExtension(registry);
  registry.addExtension(+[](mlir::MLIRContext *, dmxc::dmir::DMIRDialect *dialect) {
    dialect->getRegisteredInterface<dmxc::dmir::DataFiles>()->admitBelow(dataFolders());
  });
  dataFolders() = flags->dataFolders;
  if (dmxc::Status read = readKernels(*flags, registry); !read)
    return failWith(read.error());
  if (flags->printsTransforms) {
    mlir::MLIRContext transforms(registry);
    transforms.getOrLoadDialect<mlir::transform::TransformDialect>();
    return dmxc::printTransforms(transforms) ? 0 : 1;
  }
  dmxc::PhaseContext context;
  context.checkStrategies = true;
  context.states = flags->states;
  context.optLevel = flags->optLevel;
  for (const auto &target : *targets) {
    context.targets.push_back(target.get());
    target->registerDialects(registry);
  }
  dmxc::registerAllPasses(context);
  dmxc::transform::registerAffinePasses();
  dmxc::registerEvaluatePass(context);
  mlir::registerTransformsPasses();
  mlir::transform::registerPreloadLibraryPass();
  dmxc::registerInterpreterPass(); // in the place of MLIR's
  for (const dmxc::TargetInfo &info : dmxc::registeredTargets())
    if (info.registerPasses)
      info.registerPasses(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(static_cast<int>(arguments.size()), arguments.data(),
                        "dmx-opt: passes over DMIR and DLIR\n\n"
                        "--target=NAME:LEVEL+..       a target with its levels, asked before others\n"
                        "--state=INPUT=OUTPUT         what dmir-bind-states binds\n"
                        "--opt-level=N --numerics=MODE --kernels=FILE --ukernels=NAME=on|off|auto    as dmxc's\n"
                        "--allow-external-data=DIR    a folder that constants' files may lie in\n"
                        "--print-transforms=json      the ops of schedules and their forms, a line each\n",
                        registry));
}
