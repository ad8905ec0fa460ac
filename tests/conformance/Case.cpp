//===- Case.cpp - one ONNX test case --------------------------------------===//
#include "Case.h"

#include "dmxc/Driver/Driver.h"
#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/Runtime.h"
#include "dmxc/Tools/TensorDirectory.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace dmxc::conformance {

const char *outcomeName(Outcome outcome) {
  switch (outcome) {
  case Outcome::Pass:
    return "pass";
  case Outcome::Refused:
    return "refused";
  case Outcome::Wrong:
    return "wrong";
  case Outcome::Crash:
    break;
  }
  return "crash";
}

std::vector<Case> findCases(const std::string &folder) {
  std::vector<Case> cases;
  std::error_code error;
  for (const auto &entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.path().filename() != "model.onnx")
      continue;
    Case found{entry.path().parent_path().filename().string(), entry.path().parent_path().string(), {}};
    for (const auto &set : fs::directory_iterator(found.folder)) {
      std::string name = set.path().filename().string();
      if (set.is_directory() && (name.rfind("test_data_set_", 0) == 0 || name.rfind("set", 0) == 0))
        found.sets.push_back(set.path().string());
    }
    std::sort(found.sets.begin(), found.sets.end());
    cases.push_back(std::move(found));
  }
  std::sort(cases.begin(), cases.end(), [](const Case &a, const Case &b) { return a.folder < b.folder; });
  return cases;
}

std::string opOf(const Case &testCase) {
  std::ifstream file(testCase.folder + "/model.onnx", std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file))
    return "(unreadable)";
  std::string op;
  for (const auto &node : model.graph().node()) {
    if (node.op_type() == "Constant")
      continue;
    if (!op.empty())
      return "(several ops)";
    op = node.op_type();
  }
  return op.empty() ? "(no op)" : op;
}

namespace {

Verdict verdict(Outcome outcome, std::string reason, std::string node = "") {
  return {outcome, std::move(node), std::move(reason)};
}

/// The shapes that a data set's files have, for models whose dims are symbolic.
void addShapesOf(const std::string &set, driver::Options &options) {
  for (const auto &entry : fs::directory_iterator(set)) {
    std::string name = entry.path().filename().string();
    bool zoo = name.rfind("in_", 0) == 0, onnxLayout = name.rfind("input_", 0) == 0;
    if (!zoo && !onnxLayout)
      continue;
    if (entry.path().extension() == ".pb") {
      if (auto tensors = tools::readTensorsProto(entry.path().string()))
        for (const tools::NamedTensor &tensor : *tensors)
          if (!tensor.name.empty())
            options.shapes[tensor.name] = tensor.tensor.shape();
      continue;
    }
    Result<tools::NamedTensor> tensor = tools::readTensorFile(entry.path().string());
    std::string input = zoo ? entry.path().stem().string().substr(3) : "";
    if (tensor && !input.empty())
      options.shapes[input] = tensor->tensor.shape();
  }
}

/// The same of sequences and optionals, by what the model declares: a sequence of one tensor needs a number in its
/// name, and what is empty must be said to be.
void addContainersOf(const std::string &model, driver::Options &options) {
  std::ifstream file(model, std::ios::binary);
  onnx::ModelProto proto;
  if (!proto.ParseFromIstream(&file))
    return;
  for (const auto &input : proto.graph().input()) {
    const onnx::TypeProto &type = input.type();
    if (type.has_tensor_type())
      continue;
    const bool sequence = type.has_sequence_type() || type.optional_type().elem_type().has_sequence_type();
    if (auto one = options.shapes.find(input.name()); sequence && one != options.shapes.end()) {
      options.shapes[input.name() + ".0"] = one->second;
      options.shapes.erase(one);
    } else if (one == options.shapes.end() && !options.shapes.count(input.name() + ".0")) {
      options.absent.insert(input.name());
    }
  }
}

/// What a failed compile comes to: a refusal when it is the model's (exit 1)
/// and says why, else a crash.
Verdict refusalOf(int code, const Diagnostics &diagnostics) {
  std::string text, node;
  for (const Diagnostic &message : diagnostics.all())
    if (message.severity == Severity::Error && text.empty()) {
      text = message.text + " [" + message.id + "]";
      node = message.node;
    }
  if (code == 4) // some op would run elsewhere
    return verdict(Outcome::Refused, text, node);
  if (code != 1 || text.empty())
    return verdict(Outcome::Crash, "exit code " + std::to_string(code) + ": " + (text.empty() ? "no message" : text));
  // A refusal that names neither a node nor a tensor tells the user nothing.
  if (node.empty() && text.find('\'') == std::string::npos)
    return verdict(Outcome::Crash, "the refusal names nothing: " + text);
  return verdict(Outcome::Refused, text, node);
}

/// What a case is compiled from and to.
struct CompileJob {
  std::string model, bundle;
  bool mayFixShapes; ///< not where dims are meant to stay unknown
};

/// Compiles; with symbolic dims that nobody fixed, again with the data set's
/// shapes.
std::optional<Verdict> compileCase(const Case &testCase, const std::string &set, const CompileJob &job,
                                   const CheckOptions &check, bool &shaped) {
  driver::Options options;
  options.model = job.model;
  options.output = job.bundle;
  options.externalDataDirs = {testCase.folder};
  options.quiet = true;
  // One level unless others are asked for: thousands of cases are compiled.
  options.targets = {{"cpu", check.levels.empty() ? std::vector<std::string>{"x86-64-v3"} : check.levels}};
  if (!check.target.empty()) {
    options.targets = {{check.target, {}}};
    options.require = {{check.target, 100}};
  }
  for (bool useShapes : {false, true}) {
    if (useShapes) {
      addShapesOf(set, options);
      addContainersOf(job.model, options);
    }
    Diagnostics diagnostics;
    int code = driver::compile(options, diagnostics);
    shaped = useShapes;
    if (code == 0)
      return std::nullopt;
    bool dimUnknown = std::any_of(diagnostics.all().begin(), diagnostics.all().end(), [](const Diagnostic &d) {
      return d.id == "onnx-dim" || d.id == "op-dynamic-shape" || d.id == "op-operand-not-constant";
    });
    if (useShapes || !dimUnknown || !job.mayFixShapes)
      return refusalOf(code, diagnostics);
  }
  return std::nullopt;
}

/// Changes the first element so that no tolerance hides it.
Tensor perturbed(const Tensor &tensor) {
  if (tensor.numElements() == 0)
    return Tensor(tensor.dtype(), {1});
  Tensor copy(tensor.dtype(), tensor.shape());
  std::copy(tensor.raw().begin(), tensor.raw().end(), copy.mutableData());
  if (isFloat(tensor.dtype())) {
    double value = copy.asDouble(0);
    copy.setDouble(0, std::isfinite(value) ? (std::abs(value) < 1 ? value + 1 : value / 2) : 0);
  } else {
    copy.setInt(0, copy.asInt(0) ^ 1);
  }
  return copy;
}

/// ONNX 1.12 wrote its bf16 test data with the element type UINT16: the bits
/// are right, the name is not.
Tensor withBfloatBits(const Tensor &tensor, DType want) {
  bool mislabelled = want == DType::BF16 && tensor.dtype() == DType::U16;
  return mislabelled ? Tensor(DType::BF16, tensor.shape(), tensor.data(), tensor.owner()) : tensor;
}

std::vector<tools::WantedTensor> wanted(const std::vector<tools::IoTensor> &tensors) {
  std::vector<tools::WantedTensor> list;
  for (const tools::IoTensor &tensor : tensors)
    list.push_back({tensor.name, tensor.dtype});
  return list;
}

Verdict compareOutputs(const tools::ModelSession &session, const std::string &set, const CheckOptions &options) {
  Result<std::vector<Tensor>> expected =
      tools::readTensorDirectory(set, tools::TensorRole::Output, wanted(session.outputs()));
  if (!expected)
    return verdict(Outcome::Wrong, "expected outputs: " + expected.error().message);
  size_t compared = 0;
  for (size_t i = 0; i < expected->size(); ++i) {
    if ((*expected)[i].empty())
      continue;
    ++compared;
    Tensor want = withBfloatBits((*expected)[i], session.outputs()[i].dtype);
    if (options.perturb)
      want = perturbed(want);
    tools::Comparison result = tools::compareTensors(session.output(i), want, {options.rtol, options.atol});
    if (!result.pass)
      return verdict(Outcome::Wrong,
                     "output '" + session.outputs()[i].name + "': " + tools::describe(result, session.output(i), want));
  }
  if (!compared && !session.outputs().empty())
    return verdict(Outcome::Wrong, "no expected output found in " + set);
  return verdict(Outcome::Pass, "");
}

Verdict runSet(const std::string &bundle, const std::string &set, const CheckOptions &options,
               const tools::SessionSettings &settings) {
  Result<std::unique_ptr<tools::ModelSession>> session = tools::ModelSession::open(bundle, settings);
  if (!session)
    return verdict(Outcome::Wrong, "the runtime refuses the bundle: " + session.error().message);
  std::vector<tools::WantedTensor> names = wanted((*session)->inputs());
  if (!names.empty()) {
    Result<std::vector<Tensor>> inputs = tools::readTensorDirectory(set, tools::TensorRole::Input, names);
    if (!inputs)
      return verdict(Outcome::Wrong, "inputs: " + inputs.error().message);
    for (size_t i = 0; i < inputs->size(); ++i) {
      if ((*inputs)[i].empty())
        return verdict(Outcome::Wrong, "no data for input '" + names[i].name + "'");
      if (Status bound = (*session)->bindInput(i, withBfloatBits((*inputs)[i], names[i].dtype)); !bound)
        return verdict(Outcome::Wrong, "bind: " + bound.error().message);
    }
  }
  if (Status allocated = (*session)->allocateOutputs(); !allocated)
    return verdict(Outcome::Wrong, "outputs: " + allocated.error().message);
  if (Status ran = (*session)->run(); !ran)
    return verdict(Outcome::Wrong, "run: " + ran.error().message);
  return compareOutputs(**session, set, options);
}

/// The data set on one thread, and if asked for beside inaccessible pages: each side, level and cut of the work.
Verdict runSetInAllWays(const std::string &bundle, const std::string &set, const CheckOptions &options) {
  tools::SessionSettings settings;
  settings.threads = 1;
  Verdict result = runSet(bundle, set, options, settings);
  if (!options.guard)
    return result;
  for (const std::string &level : options.levels.empty() ? std::vector<std::string>{""} : options.levels)
    for (const char *side : {"end", "start"})
      for (uint32_t threads : {1, 2}) {
        if (result.outcome != Outcome::Pass)
          return result;
        settings.threads = threads;
        settings.isa = level;
        settings.deviceOptions = {std::string("cpu.guard=") + side};
        result = runSet(bundle, set, options, settings);
        if (result.outcome != Outcome::Pass)
          result.reason =
              settings.deviceOptions[0] + " " + level + " threads=" + std::to_string(threads) + ": " + result.reason;
      }
  return result;
}

} // namespace

Verdict checkCase(const Case &testCase, const CheckOptions &options) {
  const std::string stem = options.scratch + "/" + std::to_string(getpid());
  const bool transformed = options.transform != Transform::None;
  CompileJob job{transformed ? stem + ".onnx" : testCase.folder + "/model.onnx", stem + ".bundle",
                 options.dims == OpenDims::Fixed &&
                     (options.transform == Transform::None || options.transform == Transform::Constant)};
  Verdict result = verdict(Outcome::Wrong, "the case has no data set");
  bool shaped = true;
  for (const std::string &set : testCase.sets) {
    if (transformed && set == testCase.sets.front())
      if (Status made = transformFile(testCase.folder + "/model.onnx", options.transform, set, job.model); !made) {
        // Data that no tensor holds (strings, types that are not known) cannot become a constant: that is refused, as
        // the compiler would.
        const std::string &why = made.error().message;
        bool refused =
            why.find("it holds strings") != std::string::npos || why.find("its data type") != std::string::npos;
        result = verdict(refused ? Outcome::Refused : Outcome::Wrong, "the transform: " + made.error().message);
        break;
      }
    // A bundle for symbolic dims fixed by one data set does not fit the next.
    if (shaped)
      if (std::optional<Verdict> failed = compileCase(testCase, set, job, options, shaped)) {
        result = *failed;
        break;
      }
    result = runSetInAllWays(job.bundle, set, options);
    if (result.outcome != Outcome::Pass) {
      result.reason = fs::path(set).filename().string() + ": " + result.reason;
      break;
    }
    if (options.transform == Transform::Constant)
      break; // the values of the other sets are not in the model
  }
  std::error_code ignored;
  fs::remove(job.bundle, ignored);
  if (transformed)
    fs::remove(job.model, ignored);
  return result;
}

} // namespace dmxc::conformance
