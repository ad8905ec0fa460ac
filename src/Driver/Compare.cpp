//===- Compare.cpp - the reference interpreter against a bundle -----------===//
#include "dmxc/Driver/Compare.h"
#include "StageTable.h"
#include "compile/Streams.h"
#include "reports/Reports.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/PromisedMasks.h"
#include "dmxc/Driver/StageEvaluation.h"
#include "dmxc/Reference/Interpreter.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Tools/Compare.h"
#include "dmxc/Tools/Runtime.h"
#include "dmxc/Tools/TensorDirectory.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <ostream>

using namespace mlir;

namespace dmxc::driver {

namespace {

struct Run {
  std::vector<std::string> names;
  std::vector<Tensor> reference, actual;
};

class Comparer {
public:
  Comparer(const CompareRequest &request, Diagnostics &diagnostics, std::ostream &out)
      : request(request), options(request.options), diagnostics(diagnostics), out(out),
        progress(progressForm(request.options), 0) {}

  int run() {
    int code = request.stages ? compareStages() : compare();
    progress.finish();
    return code;
  }

private:
  int compare() {
    if (!checkPromises())
      return diagnostics.exitCode();
    std::optional<Run> plain = runOnce(/*everyNode=*/false);
    if (!plain)
      return diagnostics.exitCode();
    bool good = true;
    for (size_t i = 0; i < plain->names.size(); ++i)
      good &= report("output '" + plain->names[i] + "'", *plain, i,
                     /*alsoGood=*/true);
    sayRule();
    if (!request.perNode)
      return good ? 0 : exitCodeOf(ErrorKind::Mismatch);
    return request.maxRms ? errorsByNode(good) : perNode(good);
  }

  /// A line a stop. What is compared are the stops of this compile, or what was made of their texts.
  int compareStages() {
    progress.step("import", shownModel(options));
    std::unique_ptr<Compilation> compilation = Compilation::create(options, diagnostics);
    if (!compilation)
      return diagnostics.exitCode();
    if (Status known = checkStages(compilation->phaseContext()); !known)
      return fail(known.error()), diagnostics.exitCode();
    if (!compilation->import() || (options.from.empty() && !compilation->runPhase(phases().front())))
      return diagnostics.exitCode();
    OwningOpRef<func::FuncOp> declared; // of an entry point that is a program
    func::FuncOp function = entryAtAnyStop(compilation->module(), options.entry, declared);
    if (!function)
      return fail(modelError("the model has no entry point '" + options.entry + "'")), diagnostics.exitCode();
    std::optional<std::vector<Tensor>> inputs = readInputs(function);
    if (!inputs)
      return diagnostics.exitCode();
    if (compilation->format() != "mlir" && bindDims(function, *inputs))
      return compareStages();
    if (!checkShapes(function, *inputs))
      return diagnostics.exitCode();
    const std::string name = function.getSymName().str();
    StageTable table(*compilation, name, *inputs, request.stageTexts);
    table.add(options.from.empty() ? phases().front().name : options.from);
    compilation->afterStops([&](const Stop &stop) { return table.add(stop.name), true; });
    std::vector<Tensor> ran;
    const bool good = runBundle(*compilation, *inputs, name, /*everyNode=*/false, ran);
    progress.step("stages", "the text of each stop is evaluated");
    Status compared = table.compare(good ? ran : std::vector<Tensor>(), out);
    if (!compared)
      fail(compared.error());
    return diagnostics.exitCode();
  }

  /// Whether inputs that are masks by a promise are what it says. Random ones are not.
  bool checkPromises() {
    if (options.masks.empty() || request.randomSeed)
      return true;
    Options plain = options;
    plain.masks.clear();
    std::unique_ptr<Compilation> compilation = Compilation::create(plain, diagnostics);
    func::FuncOp function = compilation && compilation->import() ? entryOf(compilation->module()) : func::FuncOp();
    if (!function)
      return false;
    std::optional<std::vector<Tensor>> inputs = readInputs(function);
    for (unsigned i = 0; inputs && i < inputs->size(); ++i)
      for (const auto &promise : options.masks)
        if (promise.first == inputName(function, i))
          if (Status kept = checkPromise(promise, (*inputs)[i]); !kept)
            return fail(kept.error());
    return inputs.has_value();
  }

  void sayRule() {
    auto hold = tools::holdProgress();
    out << "rule: "
        << (request.maxRms
                ? llvm::formatv("floats by their relative RMS error, at most {0}; integers equal", *request.maxRms)
                      .str()
                : tools::ruleText(toleranceOfRequest()))
        << "\n";
  }

  /// A line a value, in order of computation: its error has what was before it in it.
  int errorsByNode(bool outputsGood) {
    std::optional<Run> all = runOnce(/*everyNode=*/true);
    if (!all)
      return diagnostics.exitCode();
    auto hold = tools::holdProgress();
    out << "relative RMS error  largest error  value\n";
    for (size_t i = 0; i < all->names.size(); ++i) {
      tools::Comparison result = tools::compareTensors(all->actual[i], all->reference[i], {request.rtol, request.atol});
      out << llvm::formatv("{0,18:e2}  {1,13:e2}  '{2}'\n", result.relativeRms(), result.maxAbsolute,
                           visible(all->names[i]))
                 .str();
    }
    return outputsGood ? 0 : exitCodeOf(ErrorKind::Mismatch);
  }

  int perNode(bool outputsGood) {
    std::optional<Run> all = runOnce(/*everyNode=*/true);
    if (!all)
      return diagnostics.exitCode();
    for (size_t i = 0; i < all->names.size(); ++i)
      if (!report("first node that differs: '" + all->names[i] + "'", *all, i,
                  /*alsoGood=*/false))
        return exitCodeOf(ErrorKind::Mismatch);
    auto hold = tools::holdProgress();
    out << "no node differs among " << all->names.size() << " values";
    if (!outputsGood)
      out << ", though the outputs do: the difference needs the fused kernels "
             "that the outputs of all nodes prevent";
    out << "\n";
    return outputsGood ? 0 : exitCodeOf(ErrorKind::Mismatch);
  }

  tools::Tolerance toleranceOfRequest() const {
    tools::Tolerance tolerance{request.rtol, request.atol, {}};
    if (request.maxRms)
      tolerance.minSqnr = -20 * std::log10(*request.maxRms);
    return tolerance;
  }

  /// What an order of sums may change anywhere in a node's value: terms as large as its largest element may have left
  /// an element near zero. A millionth of that; 0 for integers.
  static double roundingOf(const Tensor &tensor) {
    double largest = 0;
    for (int64_t i = 0; isFloat(tensor.dtype()) && i < tensor.numElements(); ++i)
      if (double size = std::fabs(tensor.asDouble(i)); std::isfinite(size))
        largest = std::max(largest, size);
    return largest * 1e-6;
  }

  bool report(const std::string &what, const Run &run, size_t i, bool alsoGood) {
    tools::Tolerance tolerance = toleranceOfRequest();
    if (!alsoGood && (request.rtol || request.atol))
      tolerance.atol = std::max(request.atol.value_or(tools::kUsualAtol), roundingOf(run.reference[i]));
    tools::Comparison result = tools::compareTensors(run.actual[i], run.reference[i], tolerance);
    auto hold = tools::holdProgress(); // stdout may be the same terminal
    if (!result.pass || alsoGood)
      out << (result.pass ? "PASS " : "FAIL ") << visible(what) << ": " << rmsText(result)
          << tools::describe(result, run.actual[i], run.reference[i]) << "\n";
    return result.pass;
  }

  static std::string rmsText(const tools::Comparison &result) {
    return result.judgedBySqnr ? llvm::formatv("relative RMS error {0:e2}, ", result.relativeRms()).str() : "";
  }

  bool fail(const Error &error) {
    diagnostics.report(error, "compare", request.options.model);
    return false;
  }

  /// Imports, evaluates and runs; with `everyNode`, every value is an output.
  std::optional<Run> runOnce(bool everyNode) {
    progress.step("import", shownModel(options));
    std::unique_ptr<Compilation> compilation = Compilation::create(options, diagnostics);
    if (!compilation || !compilation->import() || !compilation->runPhase(phases().front()))
      return std::nullopt;
    func::FuncOp function = entryOf(compilation->module());
    if (!function)
      return fail(modelError("the model has no entry point '" + request.options.entry + "'")), std::nullopt;
    if (everyNode)
      returnEverything(function);
    Run run;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      run.names.push_back(
          everyNode && i < nodes.size() ? nodes[i] : nameOf(function.getResultAttr(i, dmir::kNameAttr), "output", i));
    std::optional<std::vector<Tensor>> inputs = readInputs(function);
    if (!inputs)
      return std::nullopt;
    bool hasDims = compilation->format() != "mlir"; // there shapes are written out
    if (hasDims && bindDims(function, *inputs))
      return runOnce(everyNode);
    if (!checkShapes(function, *inputs))
      return std::nullopt;
    progress.step("reference", "the interpreter computes every value");
    Result<std::vector<Tensor>> reference = reference::evaluateFunction(function, *inputs);
    if (!reference)
      return fail(reference.error()), std::nullopt;
    run.reference = std::move(*reference);
    std::string entry = function.getSymName().str();
    if (!runBundle(*compilation, *inputs, entry, everyNode, run.actual))
      return std::nullopt;
    return run;
  }

  func::FuncOp entryOf(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (request.options.entry.empty() || function.getSymName() == request.options.entry)
        return function;
    // A model with one entry point may call it as it likes.
    auto functions =
        llvm::make_filter_range(module.getOps<func::FuncOp>(), [](func::FuncOp f) { return f.isPublic(); });
    return llvm::hasSingleElement(functions) ? *functions.begin() : func::FuncOp();
  }

  static std::string nameOf(Attribute name, const char *prefix, unsigned i) {
    auto text = dyn_cast_or_null<StringAttr>(name);
    return text ? text.getValue().str() : prefix + std::to_string(i);
  }

  /// Fixes open dims at the extents that the inputs have, since the interpreter takes static shapes alone; true when a
  /// dim is fixed that was not before.
  bool bindDims(func::FuncOp function, ArrayRef<Tensor> inputs) {
    bool isNew = false;
    for (auto [i, tensor] : llvm::enumerate(inputs)) {
      SmallVector<Dim> dims = dmir::callersDims(function, true, static_cast<unsigned>(i));
      for (size_t axis = 0; axis < dims.size() && dims.size() == tensor.shape().size(); ++axis)
        if (std::optional<std::string> name = dims[axis].symbolName()) {
          DimBounds &bounds = options.dims[*name];
          int64_t extent = tensor.shape()[axis];
          if (bounds.min == extent && bounds.max == extent)
            continue;
          bounds = {extent, extent};
          isNew = true;
        }
    }
    return isNew;
  }

  bool checkShapes(func::FuncOp function, ArrayRef<Tensor> inputs) {
    for (auto [i, tensor] : llvm::enumerate(inputs)) {
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      DType wanted = *dmir::dtypeOf(type.getElementType());
      if (tensor.dtype() == wanted && ArrayRef<int64_t>(tensor.shape()) == type.getShape())
        continue;
      std::string shape;
      for (Dim dim : dmir::dimsOf(type))
        shape += (shape.empty() ? "" : "x") + dim.str();
      return fail(usageError("input '" + inputName(function, i) + "': the file has " +
                             std::string(dtypeName(tensor.dtype())) + " " + shapeString(tensor.shape()) +
                             ", the model wants " + std::string(dtypeName(wanted)) + " " + shape));
    }
    return true;
  }

  std::optional<std::vector<Tensor>> readInputs(func::FuncOp function) {
    std::vector<tools::WantedTensor> wanted;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      wanted.push_back({inputName(function, i), *dmir::dtypeOf(type.getElementType())});
    }
    if (wanted.empty())
      return std::vector<Tensor>();
    if (request.randomSeed)
      return randomInputs(function);
    Result<std::vector<Tensor>> inputs = tools::readTensorDirectory(request.inputs, tools::TensorRole::Input, wanted);
    if (!inputs)
      return fail(inputs.error()), std::nullopt;
    for (unsigned i = 0; i < wanted.size(); ++i)
      if ((*inputs)[i].empty())
        return fail(ioError("'" + request.inputs + "' has no tensor for input '" + wanted[i].name + "'")), std::nullopt;
    return std::move(*inputs);
  }

  std::optional<std::vector<Tensor>> randomInputs(func::FuncOp function) {
    std::vector<Tensor> inputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      Result<Tensor> tensor = randomInput(function, i, *request.randomSeed);
      if (!tensor)
        return fail(tensor.error()), std::nullopt;
      inputs.push_back(std::move(*tensor));
    }
    return inputs;
  }

  /// Makes every computed value an output, in order of computation; fills
  /// `nodes`.
  void returnEverything(func::FuncOp function) {
    nodes.clear();
    Operation *ret = function.getBody().front().getTerminator();
    SmallVector<Value> values;
    for (Operation &op : function.getOps()) {
      if (&op == ret || isa<dmir::ConstantOp>(op))
        continue;
      for (Value result : op.getResults()) {
        values.push_back(result);
        nodes.push_back(dmir::nodeName(&op) + "' (" + op.getName().getStringRef().str() + ") result '" +
                        std::to_string(cast<OpResult>(result).getResultNumber()));
      }
    }
    size_t before = function.getNumResults();
    for (size_t i = 0; i < before; ++i)
      function.removeResultAttr(i, StringAttr::get(function.getContext(), dmir::kNameAttr));
    ret->setOperands(values);
    SmallVector<Type> types(ValueRange(values).getTypes());
    function.setFunctionType(FunctionType::get(function.getContext(), function.getArgumentTypes(), types));
    function.setAllResultAttrs(SmallVector<DictionaryAttr>(values.size(), DictionaryAttr::get(function.getContext())));
    for (size_t i = 0; i < values.size(); ++i)
      function.setResultAttr(i, dmir::kNameAttr, StringAttr::get(function.getContext(), "value" + std::to_string(i)));
  }

  bool runBundle(Compilation &compilation, const std::vector<Tensor> &inputs, const std::string &entry, bool everyNode,
                 std::vector<Tensor> &outputs) {
    std::unique_ptr<TemporaryFile> temporary;
    std::string path = everyNode ? "" : request.bundle;
    if (path.empty()) {
      auto made = TemporaryFile::create("compared.bundle");
      if (!made)
        return fail(made.error());
      temporary = std::move(*made);
      path = temporary->path();
      progress.step("compile", "the model becomes a bundle");
      bool begun = false; // behind the text that was read, or the first phase
      for (const Stop &stop : stops(compilation.phaseContext())) {
        if (begun && !(stop.phase->makesIR() ? compilation.runTo(stop) : compilation.runCodegen()))
          return false;
        begun |= stop.name == (options.from.empty() ? phases().front().name : options.from);
      }
      if (!compilation.writeBundle(path))
        return false;
    }
    tools::SessionSettings settings;
    settings.entryPoint = entry;
    settings.threads = request.threads;
    Result<std::unique_ptr<tools::ModelSession>> session = tools::ModelSession::open(path, settings);
    if (!session)
      return fail(session.error());
    if (!options.quiet)
      if (Status noted = tools::noteMachine(**session); !noted)
        return fail(noted.error());
    if ((*session)->inputs().size() != inputs.size())
      return fail(usageError("the bundle has " + std::to_string((*session)->inputs().size()) + " inputs, the model " +
                             std::to_string(inputs.size()) + "; is '" + path + "' of this model?"));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (Status bound = (*session)->bindInput(i, inputs[i]); !bound)
        return fail(bound.error());
    if (Status allocated = (*session)->allocateOutputs(); !allocated)
      return fail(allocated.error());
    progress.step("run", "the bundle computes its outputs");
    if (Status ran = (*session)->run(); !ran)
      return fail(ran.error());
    for (size_t i = 0; i < (*session)->outputs().size(); ++i)
      outputs.push_back((*session)->output(i));
    return true;
  }

  const CompareRequest &request;
  Options options; ///< the request's, and the dims that the inputs have
  Diagnostics &diagnostics;
  std::ostream &out;
  std::vector<std::string> nodes;
  tools::Progress progress;
};

} // namespace

int compareWithReference(const CompareRequest &request, Diagnostics &diagnostics, std::ostream &out) {
  return Comparer(request, diagnostics, out).run();
}

} // namespace dmxc::driver
