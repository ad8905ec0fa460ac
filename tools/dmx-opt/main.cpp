//===- main.cpp - dmx-opt, mlir-opt with our dialects and passes ----------===//
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/Registry.h"

#include "mlir/Dialect/Transform/IR/TransformDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

using Targets = std::vector<std::unique_ptr<dmxc::TargetBackend>>;

/// Every target of this build; `--target=NAME:LEVEL+..`, which is taken out of the arguments, gives one its levels.
static dmxc::Result<Targets> createTargets(std::vector<char *> &arguments) {
  constexpr llvm::StringLiteral kFlag = "--target=";
  std::map<std::string, std::vector<std::string>> levels;
  dmxc::Status wrong = dmxc::Status::ok();
  llvm::erase_if(arguments, [&](llvm::StringRef argument) {
    if (!argument.consume_front(kFlag))
      return false;
    if (auto choice = dmxc::driver::parseTarget(argument.str()))
      levels[choice->name] = choice->levels;
    else
      wrong = choice.takeError();
    return true;
  });
  if (!wrong)
    return wrong.takeError();
  Targets targets;
  for (const dmxc::TargetInfo &info : dmxc::registeredTargets()) {
    dmxc::TargetOptions options;
    options.levels = levels[info.name];
    auto target = info.create(options);
    if (!target)
      return dmxc::Error{target.error().kind, "target '" + info.name + "': " + target.error().message};
    targets.push_back(std::move(*target));
  }
  return targets;
}

int main(int argc, char **argv) {
  std::vector<char *> arguments(argv, argv + argc);
  dmxc::Result<Targets> targets = createTargets(arguments);
  if (!targets) {
    llvm::errs() << "dmx-opt: error: " << targets.error().message << "\n";
    return dmxc::exitCodeOf(targets.error().kind);
  }
  mlir::DialectRegistry registry;
  dmxc::driver::registerDialects(registry);
  registry.insert<mlir::transform::TransformDialect>();
  dmxc::PhaseContext context;
  context.checkStrategies = true;
  for (const auto &target : *targets) {
    context.targets.push_back(target.get());
    target->registerDialects(registry);
  }
  dmxc::registerAllPasses(context);
  mlir::registerTransformsPasses();
  for (const dmxc::TargetInfo &info : dmxc::registeredTargets())
    if (info.registerPasses)
      info.registerPasses(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(static_cast<int>(arguments.size()), arguments.data(),
                                                  "dmx-opt: passes over DMIR and DLIR\n", registry));
}
