//===- OpTable.cpp - DMIR ops x {verifier, interpreter, targets} ----------===//
#include "OpTable.h"
#include "OpSamples.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/Registry.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/Parser/Parser.h"
#include <nlohmann/json.hpp>

using namespace mlir;

namespace dmxc::driver {

/// Structure, not computation: they have no row.
static bool isStructural(llvm::StringRef name) {
  return name == "dmir.region" || name == "dmir.extern" || name == "dmir.yield" || name == "dmir.constant" ||
         name == "dmir.undef";
}

static Result<std::vector<std::unique_ptr<TargetBackend>>> createTargets(const Options &options) {
  std::vector<std::unique_ptr<TargetBackend>> targets;
  for (const TargetInfo &info : registeredTargets()) {
    auto chosen = llvm::find_if(options.targets, [&](const TargetChoice &choice) { return choice.name == info.name; });
    if (!options.targets.empty() && chosen == options.targets.end())
      continue;
    TargetOptions targetOptions;
    if (chosen != options.targets.end())
      targetOptions.levels = chosen->levels;
    Result<std::unique_ptr<TargetBackend>> target = info.create(targetOptions);
    if (!target)
      return target.takeError();
    targets.push_back(std::move(*target));
  }
  return targets;
}

Result<OpTable> makeOpTable(const Options &options) {
  Result<std::vector<std::unique_ptr<TargetBackend>>> targets = createTargets(options);
  if (!targets)
    return targets.takeError();
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> samples = parseSourceString<ModuleOp>(opSamples, ParserConfig(&context));
  if (!samples)
    return Error{ErrorKind::Internal, "the samples of DMIR's ops do not parse"};
  std::map<std::string, Operation *> sampleOf;
  samples->walk([&](Operation *op) { sampleOf.try_emplace(op->getName().getStringRef().str(), op); });
  OpTable table;
  for (const auto &target : *targets)
    table.targets.push_back(target->name().str());
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("dmir")) {
    if (isStructural(name.getStringRef()))
      continue;
    OpRow row{name.getStringRef().str()};
    auto sample = sampleOf.find(row.name);
    row.verifier = sample != sampleOf.end(); // the parser verified it
    row.control = row.name == dmir::IfOp::getOperationName() || row.name == dmir::LoopOp::getOperationName();
    row.interpreter = row.control || reference::canEvaluate(name);
    for (const auto &target : *targets)
      row.refusals.push_back(row.control    ? std::nullopt
                             : row.verifier ? target->refuses(sample->second)
                                            : std::optional<std::string>("no sample to ask with"));
    table.rows.push_back(std::move(row));
  }
  llvm::sort(table.rows, [](const OpRow &a, const OpRow &b) { return a.name < b.name; });
  return table;
}

std::string toMarkdown(const OpTable &table) {
  std::string text = "| op | verifier | interpreter |", rule = "|---|---|---|";
  for (const std::string &target : table.targets) {
    text += " " + target + " |";
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  // A sentence stands under the table once, however many ops it is said of.
  std::vector<std::string> sentences;
  auto numberOf = [&](std::string sentence, const std::string &op) {
    if (size_t place = sentence.find("'" + op + "'"); place != std::string::npos)
      sentence.replace(place, op.size() + 2, "the op");
    auto known = llvm::find(sentences, sentence);
    if (known == sentences.end())
      known = sentences.insert(known, sentence);
    return std::to_string(known - sentences.begin() + 1);
  };
  for (const OpRow &row : table.rows) {
    text += "| " + row.name + " | " + (row.verifier ? "yes" : "no") + " | " + (row.interpreter ? "yes" : "no") + " |";
    for (const std::optional<std::string> &refusal : row.refusals)
      text += " " +
              (refusal       ? "no (" + numberOf(*refusal, row.name) + ")"
               : row.control ? "by the runtime"
                             : "yes") +
              " |";
    text += "\n";
  }
  if (!sentences.empty())
    text += "\n";
  for (auto [number, sentence] : llvm::enumerate(sentences))
    text += std::to_string(number + 1) + ". " + sentence + "\n";
  return text;
}

std::string toJson(const OpTable &table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OpRow &row : table.rows) {
    nlohmann::ordered_json json{{"op", row.name}, {"verifier", row.verifier}, {"interpreter", row.interpreter}};
    if (row.control)
      json["control"] = true;
    for (size_t i = 0; i < table.targets.size(); ++i)
      json["targets"][table.targets[i]] =
          row.refusals[i] ? nlohmann::ordered_json(*row.refusals[i]) : nlohmann::ordered_json(true);
    rows.push_back(std::move(json));
  }
  return rows.dump(1) + "\n";
}

} // namespace dmxc::driver
