//===- RegionHarness.cpp - regions against the interpreter --------------------===//

#include "RegionHarness.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Reference/Interpreter.h"
#include "dmxc/Support/Half.h"
#include "tests/Sample.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include "llvm/ADT/StringSwitch.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace dmxc::kernels::test;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

RegionModule::RegionModule(const std::string &text, uint64_t share) {
  context.loadDialect<dmir::DMIRDialect, dlir::DLIRDialect, func::FuncDialect>();
  context.allowUnregisteredDialects();
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    error = "parse error: " + diagnostics;
    return;
  }
  target = makeRegionTarget();
  DialectRegistry registry;
  target.backend->registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  SmallVector<func::FuncOp> functions(module->getOps<func::FuncOp>());
  sampling::Sample sample(share);
  for (func::FuncOp function : functions)
    if (sample.takesNext())
      build(function);
  if (!error.empty())
    return;
  SmallVector<dlir::KernelOp> kernels;
  for (auto &[name, cases] : entries)
    kernels.push_back(cases.front().kernel);
  auto code = target.compile(kernels);
  if (code)
    find = *code;
  else
    error = code.error().message + "\n" + diagnostics;
}

/// Puts numbers in the place of a function's open dims.
static void setSizes(func::FuncOp function, llvm::function_ref<int64_t(Dim)> valueOf) {
  auto set = [&](Value value) {
    SmallVector<Dim> dims = dmir::dimsOf(value);
    for (Dim &dim : dims)
      dim = valueOf(dim);
    value.setType(dmir::tensorOf(dims, cast<RankedTensorType>(value.getType()).getElementType(),
                                 dmir::layoutOf(value.getType())));
  };
  Block &body = function.getBody().front();
  llvm::for_each(body.getArguments(), set);
  for (Operation &op : body)
    llvm::for_each(op.getResults(), set);
  function.setType(
      FunctionType::get(function.getContext(), body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
}

/// Whether an argument's element is zero by its "test.zeros".
static bool isZero(StringRef zeros, Type type, int64_t element) {
  if (zeros.empty()) // of any rank
    return false;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  const int64_t rows = shape[shape.size() - 2], columns = shape.back(), row = element / columns % rows,
                column = element % columns;
  return llvm::StringSwitch<bool>(zeros)
      .Case("lower", column * rows > (row + 1) * columns)
      .Case("upper", row * columns > (column + 1) * rows)
      .Case("diagonal", row * 5 / rows != column * 5 / columns)
      .Case("blocks", (row / 11 * 7 + column / 37 * 5) % 3 != 0)
      .Case("rows", row % 24 < 13)
      .Case("columns", column % 96 < 70)
      .Case("last", element + 1 < rows * columns)
      .Case("all", true)
      .Default(false);
}

static StringRef zerosOf(func::FuncOp function, unsigned argument) {
  auto zeros = function.getArgAttrOfType<StringAttr>(argument, "test.zeros");
  return zeros ? zeros.getValue() : "";
}

/// A constant in an argument's place: ones, and its zeros.
static TypedAttr onesOf(func::FuncOp function, unsigned argument) {
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[argument]);
  Tensor tensor(*dmir::dtypeOf(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end()));
  for (int64_t e = 0; e < tensor.numElements(); ++e)
    tensor.setDouble(e, isZero(zerosOf(function, argument), type, e) ? 0 : 1);
  return dmir::constantAttr(tensor, type);
}

/// Moves the function's ops into a region for the strategy, and from there into a kernel.
void RegionModule::build(func::FuncOp function) {
  const TargetBackend &backend = *target.backend;
  std::string name = function.getSymName().str();
  Block &body = function.getBody().front();
  for (Operation &op : body)
    if (auto reason = !mlir::isa<func::ReturnOp>(op) ? backend.refuses(&op) : std::nullopt) {
      error += name + ": refused: " + *reason + "\n";
      return;
    }
  OpBuilder b(&context);
  Location loc = NameLoc::get(b.getStringAttr(name));
  b.setInsertionPointToEnd(module->getBody());
  auto scratch = func::FuncOp::create(b, loc, name + ".region", function.getFunctionType());
  Block *entry = scratch.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  SmallVector<Value> inputs(entry->args_begin(), entry->args_end());
  for (unsigned i = 0; i < inputs.size(); ++i)
    if (function.getArgAttr(i, "test.packed")) // strategies depend on what is zero alone
      inputs[i] = dmir::ConstantOp::create(b, loc, onesOf(function, i));
  auto region = dmir::RegionOp::create(b, loc, function.getResultTypes(), inputs, b.getStringAttr(backend.name()),
                                       DictionaryAttr(), ArrayAttr());
  Block *block = b.createBlock(&region.getBody());
  IRMapping mapping;
  for (BlockArgument argument : body.getArguments())
    mapping.map(argument, block->addArgument(argument.getType(), loc));
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  SmallVector<Value> results;
  for (Value v : body.getTerminator()->getOperands())
    results.push_back(mapping.lookup(v));
  dmir::YieldOp::create(b, loc, results);
  auto strategy = backend.chooseStrategy(region);
  if (!strategy) {
    error += name + ": " + strategy.error().message + "\n";
    return;
  }
  b.setInsertionPointToEnd(module->getBody());
  auto kernel = dlir::KernelOp::create(b, loc, name + "_kernel", backend.name(), *strategy);
  IRMapping clone;
  region.getBody().cloneInto(&kernel.getBody(), clone);
  scratch.erase();
  auto sizes = function->getAttrOfType<ArrayAttr>("sizes");
  std::vector<Entry> &cases = entries[name];
  if (!sizes)
    cases.push_back({function, kernel, {}});
  for (Attribute each : sizes ? sizes.getValue() : ArrayRef<Attribute>()) {
    Entry &entry = cases.emplace_back(Entry{function.clone(), kernel, {}});
    for (NamedAttribute size : cast<DictionaryAttr>(each))
      entry.sizes[size.getName().str()] = cast<IntegerAttr>(size.getValue()).getInt();
    module->push_back(entry.function);
    entry.function.setSymName(name + "." + std::to_string(cases.size()));
    setSizes(entry.function, [&](Dim dim) { return entry.valueOf(dim); });
  }
}

int64_t RegionModule::Entry::valueOf(Dim dim) const {
  return dim
      .evaluate([&](std::string_view name) -> std::optional<int64_t> {
        auto at = sizes.find(std::string(name));
        return at == sizes.end() ? std::nullopt : std::optional(at->second);
      })
      .value();
}

std::vector<std::string> RegionModule::names() const {
  std::vector<std::string> all;
  for (auto &[name, cases] : entries)
    all.push_back(name);
  return all;
}

std::string RegionModule::strategy(const std::string &name) {
  std::string text;
  llvm::raw_string_ostream(text) << entries.at(name).front().kernel.getStrategy();
  return text;
}

dmx_kernel_fn RegionModule::kernel(const std::string &name, const std::string &level) {
  return find(level, entries.at(name).front().kernel.getSymName().str());
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

static Shape sizesOf(Type type) {
  auto shape = cast<RankedTensorType>(type).getShape();
  return Shape(shape.begin(), shape.end());
}

static double specialFloat(std::mt19937_64 &rng) {
  constexpr double values[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 65504.0, 0.5, 2.5};
  return values[rng() % std::size(values)];
}

std::vector<Tensor> RegionModule::makeInputs(Entry &entry, unsigned seed) {
  std::mt19937_64 rng(seed * 1000003 + std::hash<std::string>()(entry.function.getSymName().str()));
  std::normal_distribution<double> normal(0, 2);
  bool specials = entry.function->hasAttr("specials");
  std::vector<Tensor> inputs;
  for (unsigned i = 0; i < entry.function.getNumArguments(); ++i) {
    Type type = entry.function.getArgument(i).getType();
    Tensor tensor(*dmir::dtypeOf(cast<RankedTensorType>(type).getElementType()), sizesOf(type));
    auto lo = entry.function.getArgAttrOfType<IntegerAttr>(i, "test.lo");
    auto hi = entry.function.getArgAttrOfType<IntegerAttr>(i, "test.hi");
    for (int64_t e = 0; e < tensor.numElements(); ++e) {
      if (isZero(zerosOf(entry.function, i), type, e))
        tensor.setDouble(e, e % 3 ? 0.0 : -0.0);
      else if (tensor.dtype() == DType::Bool)
        tensor.setInt(e, rng() & 1);
      else if (lo && hi && isFloat(tensor.dtype()))
        tensor.setDouble(e, lo.getInt() + (hi.getInt() - lo.getInt()) * std::uniform_real_distribution<>()(rng));
      else if (lo && hi)
        tensor.setInt(e, lo.getInt() + static_cast<int64_t>(rng() % (hi.getInt() - lo.getInt() + 1)));
      else if (isFloat(tensor.dtype()))
        tensor.setDouble(e, specials && rng() % 6 == 0 ? specialFloat(rng) : normal(rng));
      else
        tensor.setInt(e, rng() % 3 ? static_cast<int64_t>(rng() % 21) - 10 : static_cast<int64_t>(rng()));
    }
    inputs.push_back(tensor);
  }
  return inputs;
}

/// Position in memory of each logical element, and the number of elements in memory.
static std::vector<int64_t> memoryOrder(RankedTensorType type, int64_t &count) {
  auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(type.getEncoding());
  ArrayRef<int64_t> shape = type.getShape();
  int64_t elements = type.getNumElements();
  std::vector<int64_t> order(elements);
  count = elements;
  if (blocked)
    count = elements / std::max<int64_t>(shape[blocked.getAxis()], 1) *
            llvm::alignTo(shape[blocked.getAxis()], blocked.getBlock());
  for (int64_t e = 0; e < elements; ++e) {
    int64_t rest = e, stride = blocked ? blocked.getBlock() : 1, at = 0;
    for (int64_t axis = shape.size() - 1; axis >= 0; --axis) {
      int64_t index = rest % shape[axis], size = shape[axis];
      rest /= shape[axis];
      if (blocked && axis == blocked.getAxis()) {
        at += index % blocked.getBlock();
        index /= blocked.getBlock();
        size = llvm::divideCeil(size, blocked.getBlock());
      }
      at += index * stride;
      stride *= size;
    }
    order[e] = at;
  }
  return order;
}

/// Bytes as a kernel sees them; padding is filled with garbage.
struct Storage : std::vector<std::byte> {
  explicit Storage(size_t size) : vector(size, std::byte(0xA5)) {}
};

static Storage toMemory(const Tensor &tensor, RankedTensorType type) {
  int64_t count;
  std::vector<int64_t> order = memoryOrder(type, count);
  if (isPacked(tensor.dtype())) { // several a byte, in no layout but their order
    Storage storage(tensor.byteSize());
    std::memcpy(storage.data(), tensor.data(), tensor.byteSize());
    return storage;
  }
  unsigned bytes = dtypeBits(tensor.dtype()) / 8;
  Storage storage(count * bytes);
  for (size_t e = 0; e < order.size(); ++e)
    std::memcpy(storage.data() + order[e] * bytes, tensor.data() + e * bytes, bytes);
  return storage;
}

static Tensor fromMemory(const Storage &storage, RankedTensorType type) {
  int64_t count;
  std::vector<int64_t> order = memoryOrder(type, count);
  Tensor tensor(*dmir::dtypeOf(type.getElementType()), sizesOf(type));
  if (isPacked(tensor.dtype())) {
    std::memcpy(tensor.mutableData(), storage.data(), tensor.byteSize());
    return tensor;
  }
  unsigned bytes = dtypeBits(tensor.dtype()) / 8;
  for (size_t e = 0; e < order.size(); ++e)
    std::memcpy(tensor.mutableData() + e * bytes, storage.data() + order[e] * bytes, bytes);
  return tensor;
}

//===----------------------------------------------------------------------===//
// Running and comparing
//===----------------------------------------------------------------------===//

std::string RegionModule::run(Entry &entry, const std::string &level, const std::vector<Tensor> &inputs,
                              std::vector<Tensor> &results, int64_t step, dmxrt::GuardSide side, int32_t &code) {
  DictionaryAttr strategy = entry.kernel.getStrategy();
  auto number = [&](StringRef key) { return entry.valueOf(dmir::dimOfAttr(strategy.get(key))); };
  auto packed = strategy.getAs<DictionaryAttr>(strategy::kPacked);
  dmx_kernel_fn fn = find(level, entry.kernel.getSymName().str());
  if (!fn)
    return "no kernel in the library";
  std::vector<Storage> storage;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto form = packed ? packed.getAs<DictionaryAttr>(std::to_string(i)) : DictionaryAttr();
    if (!form) {
      storage.push_back(toMemory(input, cast<RankedTensorType>(entry.function.getArgument(i).getType())));
      continue;
    }
    Storage bytes(form.getAs<IntegerAttr>("size").getInt());
    if (Status s = target.backend->pack(form, input, bytes); !s)
      return s.error().message;
    storage.push_back(std::move(bytes));
  }
  for (Type type : entry.function.getResultTypes())
    storage.push_back(toMemory(Tensor(*dmir::dtypeOf(cast<RankedTensorType>(type).getElementType()), sizesOf(type)),
                               cast<RankedTensorType>(type)));
  std::vector<Operand> operands(storage.begin(), storage.end());
  int64_t work = number(strategy::kWork);
  int64_t scratch = target.scratch ? entry.valueOf(target.scratch(level, entry.kernel)) : number(strategy::kScratch);
  std::vector<int64_t> dims;
  for (StringAttr symbol : dmir::symbolsOf(entry.kernel.getBlock()))
    dims.push_back(entry.sizes.at(symbol.str()));
  KernelTask made(fn, operands, storage.size() - inputs.size(), scratch, dims);
  made.task.updates = false;
  code = 0;
  if (work < (entry.sizes.empty() ? 1 : 0)) // of open sizes there may be nothing to do
    return "work must be at least 1";
  dmxrt::GuardedTask guarded(made.task, side, 1);
  std::optional<dmxrt::GuardedTask::Thread> thread;
  // Ranges in descending order, as no order may be relied on.
  int64_t calls = llvm::divideCeil(work, step);
  for (int64_t i = 0; i < calls; ++i) {
    if (i % 3 == 0) // the thread did something else, or it is another one
      thread.emplace(guarded.makeThread());
    int64_t begin = (calls - 1 - i) * step;
    int32_t status = guarded.call(*thread, begin, std::min(begin + step, work));
    code = code ? code : status;
    if (code == dmxrt::kDeviceFault || ((i % 3 == 2 || i + 1 == calls) && guarded.check(*thread) != 0))
      return std::string(guarded.problem());
  }
  guarded.copyOut();
  for (auto [i, type] : llvm::enumerate(entry.function.getResultTypes()))
    results.push_back(fromMemory(storage[inputs.size() + i], cast<RankedTensorType>(type)));
  return "";
}

static double ulpOf(DType type, double value) {
  int digits = type == DType::F64    ? 52
               : type == DType::F32  ? 23
               : type == DType::F16  ? 10
               : type == DType::BF16 ? 7
                                     : 2;
  int lowest = type == DType::F64    ? -1074
               : type == DType::F32  ? -149
               : type == DType::F16  ? -24
               : type == DType::BF16 ? -133
                                     : -16;
  int exponent = value == 0 || !std::isfinite(value) ? lowest : std::ilogb(value) - digits;
  return std::ldexp(1.0, std::max(exponent, lowest));
}

/// "" when equal within the tolerance.
static std::string compare(const Tensor &want, const Tensor &got, double ulp, double absolute) {
  for (int64_t i = 0; i < want.numElements(); ++i) {
    if (!isFloat(want.dtype())) {
      if (want.asInt(i) != got.asInt(i))
        return "element " + std::to_string(i) + ": want " + std::to_string(want.asInt(i)) + ", got " +
               std::to_string(got.asInt(i));
      continue;
    }
    double w = want.asDouble(i), g = got.asDouble(i);
    bool same = std::isnan(w) || std::isnan(g)         ? std::isnan(w) && std::isnan(g)
                : ulp == 0 && absolute == 0            ? w == g && std::signbit(w) == std::signbit(g)
                : std::isfinite(w) && std::isfinite(g) ? std::fabs(w - g) <= ulp * ulpOf(want.dtype(), w) + absolute
                                                       : w == g;
    if (!same) {
      char text[160];
      snprintf(text, sizeof text, "element %ld: want %.17g, got %.17g (%.3g ulp)", static_cast<long>(i), w, g,
               std::fabs(w - g) / ulpOf(want.dtype(), w));
      return text;
    }
  }
  return "";
}

std::string RegionModule::check(const std::string &name, const std::string &level, unsigned seed) {
  for (Entry &entry : entries.at(name))
    if (std::string problem = checkOne(entry, level, seed); !problem.empty()) {
      for (auto [symbol, size] : entry.sizes)
        problem += ", " + symbol + " = " + std::to_string(size);
      return problem;
    }
  return "";
}

std::string RegionModule::checkOne(Entry &entry, const std::string &level, unsigned seed) {
  if (target.lacks && target.lacks(level, entry.kernel.getStrategy()))
    return "";
  std::vector<Tensor> inputs = makeInputs(entry, seed);
  auto floatAttr = [&](StringRef key) {
    auto attr = entry.function->getAttrOfType<FloatAttr>(key);
    return attr ? attr.getValueAsDouble() : 0.0;
  };
  auto fails = entry.function->getAttrOfType<IntegerAttr>("fails");
  auto want = reference::evaluateFunction(entry.function, inputs);
  if (!want && !fails)
    return "interpreter: " + want.error().message;
  if (want && fails)
    return "the interpreter was expected to fail";
  int64_t work = std::max<int64_t>(1, entry.valueOf(dmir::dimOfAttr(entry.kernel.getStrategy().get(strategy::kWork))));
  using dmxrt::GuardSide;
  for (auto [step, side] : {std::pair(work, GuardSide::End),
                            {work, GuardSide::Start},
                            {int64_t(1), GuardSide::End},
                            {(work + 2) / 3, GuardSide::Start}}) {
    std::vector<Tensor> got;
    int32_t code;
    if (std::string problem = run(entry, level, inputs, got, step, side, code); !problem.empty())
      return problem;
    if (fails ? code != fails.getInt() : code != 0)
      return "the kernel returned " + std::to_string(code);
    for (size_t i = 0; !fails && i < want->size(); ++i)
      if (std::string difference = compare((*want)[i], got[i], floatAttr("ulp"), floatAttr("abs")); !difference.empty())
        return "result " + std::to_string(i) + ", " + std::to_string(step) + " items a call of " +
               std::to_string(work) + ": " + difference;
  }
  return "";
}

void dmxc::kernels::test::expectAgree(const std::string &text, unsigned seeds, uint64_t share) {
  RegionModule regions(text, share);
  ASSERT_EQ(regions.error, "");
  ASSERT_FALSE(regions.names().empty());
  for (const std::string &level : regions.levels())
    for (const std::string &name : regions.names())
      for (unsigned seed = 1; seed <= seeds; ++seed)
        EXPECT_EQ(regions.check(name, level, seed), "") << name << " at " << level << ", " << regions.strategy(name);
}

std::string dmxc::kernels::test::substitute(std::string text, const std::map<std::string, std::string> &values) {
  // Backwards, so that a name comes before those it starts with.
  for (auto &[name, value] : llvm::reverse(values))
    for (size_t at = text.find("$" + name); at != std::string::npos; at = text.find("$" + name, at + value.size()))
      text.replace(at, name.size() + 1, value);
  return text;
}
