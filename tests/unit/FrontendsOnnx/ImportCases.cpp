//===- ImportCases.cpp - the official ONNX node cases through the importer ===//
//
// Imports each case, runs it with the reference interpreter and compares with
// the expected outputs. A case ends as pass, refused (with an error that names
// the node), wrong or crash; each runs in a child process. A case that is
// refused because a shape-like operand is a graph input runs again with its
// inputs as initializers: "frozen".
//
// DMXC_CASES_DIR      folder of cases (default: libonnx-testdata's)
// DMXC_CASES_FILTER   only cases whose name contains this
// DMXC_CASES_VERBOSE  1: a line for each case that does not pass
//
//===----------------------------------------------------------------------===//
#include "onnx/OnnxFrontend.h"
#include "onnx/reader/TensorReader.h"

#include "dmxc/Reference/Interpreter.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace dmxc;
namespace fs = std::filesystem;

namespace {

const char *kDebianCases = "/usr/include/onnx/backend/test/data/node";
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
constexpr unsigned kSecondsACase = 240;

struct Outcome {
  char status; // p(ass), f(rozen), r(efused), w(rong), c(rash)
  std::string text;
};

template <typename Proto> bool parseFile(const fs::path &path, Proto &proto) {
  std::ifstream stream(path, std::ios::binary);
  return stream && proto.ParseFromIstream(&stream);
}

std::optional<Tensor> readTensor(const fs::path &path) {
  onnx::TensorProto proto;
  if (!parseFile(path, proto))
    return std::nullopt;
  onnxfe::TensorReader reader(nullptr, path.string(), {});
  Result<onnxfe::StoredTensor> stored = reader.read(proto);
  if (!stored)
    return std::nullopt;
  return stored->tensor;
}

/// libonnx-testdata stores bf16 as the u16 bit patterns, and says so in the
/// data files only.
Tensor asDeclared(Tensor tensor, DType declared) {
  if (declared == DType::BF16 && tensor.dtype() == DType::U16)
    return Tensor(DType::BF16, tensor.shape(), tensor.data(), tensor.owner());
  return tensor;
}

std::string compare(const Tensor &got, const Tensor &stored) {
  Tensor want = asDeclared(stored, got.dtype());
  if (got.dtype() != want.dtype())
    return "dtype " + std::string(dtypeName(got.dtype())) + ", expected " + std::string(dtypeName(want.dtype()));
  if (got.shape() != want.shape())
    return "shape " + shapeString(got.shape()) + ", expected " + shapeString(want.shape());
  for (int64_t i = 0; i < got.numElements(); ++i) {
    double a = got.asDouble(i), b = want.asDouble(i);
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    // Its bf16 was cut off, not rounded to nearest: the next pattern is right
    // too.
    if (stored.dtype() == DType::U16 && got.dtype() == DType::BF16 &&
        got.as<uint16_t>()[i] == want.as<uint16_t>()[i] + 1)
      continue;
    if (!(std::abs(a - b) <= kAbsolute + kRelative * std::abs(b)))
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return "";
}

FoldFunction foldWithReference() {
  return
      [](mlir::Operation *op, llvm::ArrayRef<Tensor> operands, std::string &why) -> std::optional<std::vector<Tensor>> {
        Result<std::vector<Tensor>> results = reference::evaluateOp(op, operands);
        if (results)
          return std::move(*results);
        why = results.error().message;
        return std::nullopt;
      };
}

/// Runs one data set of an imported model.
Outcome runSet(mlir::func::FuncOp function, const std::vector<Tensor> &inputs, const fs::path &folder) {
  Result<std::vector<Tensor>> results = reference::evaluateFunction(function, inputs);
  if (!results)
    return {'w', "interpreter: " + results.error().message};
  for (size_t i = 0; i < results->size(); ++i) {
    std::optional<Tensor> want = readTensor(folder / ("output_" + std::to_string(i) + ".pb"));
    if (!want) // conformance compares sequences
      return {'r', "output " + std::to_string(i) + " is no tensor"};
    if (std::string difference = compare((*results)[i], *want); !difference.empty())
      return {'w', "output " + std::to_string(i) + ": " + difference};
  }
  return {'p', ""};
}

/// Imports and runs the model file with the data of `set`.
Outcome runModel(const fs::path &file, const onnx::ModelProto &model, const fs::path &set, std::string &errorId) {
  ImportOptions options;
  options.path = file.string();
  options.fold = foldWithReference();
  std::set<std::string> initializers;
  for (const auto &tensor : model.graph().initializer())
    initializers.insert(tensor.name());
  std::vector<Tensor> inputs;
  int index = 0;
  for (const auto &input : model.graph().input()) {
    std::optional<Tensor> tensor = readTensor(set / ("input_" + std::to_string(index++) + ".pb"));
    if (!tensor || initializers.count(input.name()))
      continue; // strings and sequences: the importer refuses the input
    bool fixed = true;
    for (const auto &dim : input.type().tensor_type().shape().dim())
      fixed &= dim.has_dim_value();
    if (!fixed || !input.type().tensor_type().has_shape())
      options.shapes[input.name()] = tensor->shape();
    std::optional<DType> declared = onnxfe::dtypeOfOnnx(input.type().tensor_type().elem_type());
    inputs.push_back(asDeclared(*tensor, declared.value_or(tensor->dtype())));
    // libonnx-testdata gives one element for CastLike's second operand, of
    // which the type alone counts.
    Shape shape;
    for (const auto &dim : input.type().tensor_type().shape().dim())
      shape.push_back(dim.dim_value());
    if (fixed && shape != tensor->shape() && input.name() == "like")
      inputs.back() = Tensor(inputs.back().dtype(), shape);
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  Diagnostics diagnostics;
  std::optional<ImportedModel> imported = onnxFrontend().import(context, options, diagnostics);
  if (!imported) {
    for (const Diagnostic &diagnostic : diagnostics.all())
      if (diagnostic.severity == Severity::Error) {
        errorId = diagnostic.id;
        return {diagnostic.kind == ErrorKind::Internal ? 'w' : 'r', renderText(diagnostic, false)};
      }
    return {'w', "refused without an error"};
  }
  bool late = false;
  imported->module->walk([&](mlir::Operation *op) {
    late |= mlir::isa<dmir::DefineDimsOp>(op) || llvm::any_of(op->getResultTypes(), [](mlir::Type type) {
              return !mlir::cast<mlir::RankedTensorType>(type).hasStaticShape();
            });
  });
  if (late) { // the interpreter knows static shapes only: see with frozen inputs
    errorId = "op-dynamic-shape";
    return {'r', "a run makes dims"};
  }
  return runSet(*imported->module->getOps<mlir::func::FuncOp>().begin(), inputs, set);
}

/// The model with graph inputs from `first` on turned into initializers with
/// the data of `set`.
bool freeze(onnx::ModelProto &model, const fs::path &set, int first) {
  for (int i = first; i < model.graph().input_size(); ++i) {
    onnx::TensorProto proto;
    if (!parseFile(set / ("input_" + std::to_string(i) + ".pb"), proto) ||
        proto.data_type() == onnx::TensorProto::STRING)
      return false;
    proto.set_name(model.graph().input(i).name());
    *model.mutable_graph()->add_initializer() = proto;
  }
  return true;
}

Outcome runCase(const fs::path &folder) {
  onnx::ModelProto model;
  parseFile(folder / "model.onnx", model);
  fs::path set = folder / "test_data_set_0";
  std::string errorId;
  Outcome outcome = runModel(folder / "model.onnx", model, set, errorId);
  for (int first : {1, 0}) { // first what looks like data stays an input, then nothing
    bool shapeLike =
        errorId == "op-operand-not-constant" || errorId == "op-dynamic-shape" || errorId == "op-unsupported";
    if (outcome.status != 'r' || !shapeLike)
      break;
    onnx::ModelProto frozen = model;
    if (!freeze(frozen, set, first))
      break;
    fs::path file = fs::temp_directory_path() / ("dmxc-frozen-" + std::to_string(getpid()) + ".onnx");
    {
      std::ofstream stream(file, std::ios::binary);
      frozen.SerializeToOstream(&stream);
    }
    Outcome again = runModel(file, frozen, set, errorId);
    fs::remove(file);
    if (again.status != 'r')
      return {again.status == 'p' ? 'f' : again.status, "frozen: " + again.text};
  }
  return outcome;
}

/// Runs `body` in a child process, so that a crash is an outcome.
template <typename Body> Outcome isolated(Body body) {
  int channel[2];
  if (pipe(channel))
    return {'c', "no pipe"};
  pid_t child = fork();
  if (child == 0) {
    alarm(kSecondsACase);
    Outcome outcome = body();
    std::string line = outcome.status + outcome.text.substr(0, 4000);
    [[maybe_unused]] ssize_t written = write(channel[1], line.data(), line.size());
    _exit(0);
  }
  close(channel[1]);
  std::string line;
  char buffer[4096];
  for (ssize_t n; (n = read(channel[0], buffer, sizeof(buffer))) > 0;)
    line.append(buffer, n);
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (line.empty())
    return {'c', WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                     : "exit " + std::to_string(WEXITSTATUS(status))};
  return {line[0], line.substr(1)};
}

TEST(ImportCases, NodeCases) {
  const char *given = std::getenv("DMXC_CASES_DIR"), *filter = std::getenv("DMXC_CASES_FILTER");
  bool verbose = std::getenv("DMXC_CASES_VERBOSE") != nullptr;
  fs::path root = given ? given : kDebianCases;
  if (!fs::is_directory(root))
    GTEST_SKIP() << "no node cases at " << root << "; install the package libonnx-testdata";
  std::vector<fs::path> cases;
  for (const auto &entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "model.onnx") &&
        (!filter || entry.path().filename().string().find(filter) != std::string::npos))
      cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  std::map<char, int> count;
  for (const fs::path &folder : cases) {
    Outcome outcome = isolated([&] { return runCase(folder); });
    ++count[outcome.status];
    bool bad = outcome.status == 'w' || outcome.status == 'c';
    if (bad || (verbose && outcome.status == 'r'))
      std::cout << outcome.status << " " << folder.filename().string() << ": " << outcome.text << "\n";
  }
  std::cout << "node cases: " << cases.size() << " in all, " << count['p'] << " pass, " << count['f']
            << " pass with frozen inputs, " << count['r'] << " refused, " << count['w'] << " wrong, " << count['c']
            << " crash\n";
  EXPECT_EQ(count['w'], 0);
  EXPECT_EQ(count['c'], 0);
  if (!filter) {
    EXPECT_GE(count['p'] * 100, static_cast<int>(cases.size()) * 75);
  }
}

/// Models of the acceptance list that lie beside the checkout: imported with
/// the shapes of each data set, and run when the interpreter is fast enough for
/// them.
TEST(ImportCases, RealModels) {
  const char *given = std::getenv("DMXC_SHARED");
  fs::path root = given ? fs::path(given) : fs::path(DMXC_SOURCE_DIR).parent_path() / "shared";
  const char *run[] = {
      "real-models/mnist_cntk",           "real-models/mnist_torch_dynamo", "real-models/bert_toy",
      "real-models/magika_standard_v3_3", "real-models/dtln_model_1",       "real-models/dtln_model_2",
      "real-models/gtcrn_stream_simple",  "real-models/gpt2_past_tiny",     "real-models/byte_sb_bidi_lstm",
      "real-models/ultraface_rfb_320"};
  if (!fs::is_directory(root / "data"))
    GTEST_SKIP() << "no model collection at " << root / "data";
  for (const char *name : run) {
    fs::path folder = root / "data" / name;
    for (const auto &set : fs::directory_iterator(folder)) {
      if (set.path().filename().string().rfind("test_data_set_", 0) != 0)
        continue;
      Outcome outcome = isolated([&] {
        onnx::ModelProto model;
        parseFile(folder / "model.onnx", model);
        std::string errorId;
        return runModel(folder / "model.onnx", model, set.path(), errorId);
      });
      EXPECT_EQ(outcome.status, 'p') << name << " " << set.path().filename() << ": " << outcome.text;
    }
  }
}

} // namespace
