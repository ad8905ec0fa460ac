//===- BindStates.cpp - inputs that are outputs of the run before ---------===//
//
// `input=output` makes both one state of the session. A state that grows, present = concat(past, new row), becomes a
// cache with room for all rows: a run writes its row behind the ones that are there, and the rows that are not there
// yet are masked before every softmax that reaches over them. One of open rows has a length (StateLengths).
//
//===----------------------------------------------------------------------===//
#include "StateLengths.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

namespace dmxc {
#define GEN_PASS_DEF_BINDSTATES
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// A state that grows by one row a run.
struct Cache {
  BlockArgument past;
  dmir::ConcatOp concat; ///< until `present` takes its place
  int64_t axis, rows;
  Value present;
};

class Binder {
public:
  Binder(func::FuncOp function, const PhaseContext &context)
      : function(function), context(context), lengths(function, context) {}

  LogicalResult run() {
    FailureOr<std::vector<std::pair<std::string, std::string>>> pairs = statePairs(function, context.states);
    if (failed(pairs))
      return failure();
    states = std::move(*pairs);
    if (std::optional<std::string> why = context.statesMayStay ? misfit() : std::nullopt) {
      function.emitRemark() << "caches stay inputs and outputs of a run: " << *why << " [caches-stay]";
      return success();
    }
    bool binds = llvm::all_of(states, [&](const auto &pair) { return succeeded(bind(pair.first, pair.second)); });
    lengths.finish();
    if (!binds)
      return failure();
    if (failed(checkExchanges()))
      return failure();
    return caches.empty() ? success() : makeCaches();
  }

private:
  //--- pairs
  int find(bool isInput, StringRef name) {
    int count = isInput ? function.getNumArguments() : function.getNumResults();
    for (int i = 0; i < count; ++i)
      if (auto attr = isInput ? function.getArgAttrOfType<StringAttr>(i, dmir::kNameAttr)
                              : function.getResultAttrOfType<StringAttr>(i, dmir::kNameAttr);
          attr && attr.getValue() == name)
        return i;
    return -1;
  }

  /// Why not all pairs are states with a length.
  std::optional<std::string> misfit() {
    StateLengths trial(function, context);
    for (const auto &[input, output] : states) {
      int argument = find(true, input), result = find(false, output);
      if (argument < 0 || result < 0)
        return "'" + input + "' or '" + output + "' is not there";
      auto past = cast<BlockArgument>(function.getArgument(argument));
      dmir::ConcatOp concat = StateLengths::growthOf(past, returned()->getOperand(result));
      if (!concat)
        return "'" + output + "' is not '" + input + "' and rows behind it";
      if (std::optional<std::string> why = trial.refusal(past, concat))
        return "'" + input + "': " + *why;
    }
    return std::nullopt;
  }

  LogicalResult bind(const std::string &input, const std::string &output) {
    int argument = find(true, input), result = find(false, output);
    if (argument < 0 || result < 0)
      return function.emitError() << "--state " << input << "=" << output << ": the model has no "
                                  << (argument < 0 ? "input '" + input : "output '" + output) << "' [state-pair]";
    auto name = StringAttr::get(function.getContext(), input);
    if (function.getArgAttr(argument, dmir::kStateAttr) || function.getResultAttr(result, dmir::kStateAttr))
      return function.emitError() << "--state " << input << "=" << output
                                  << ": one of them is a state already [state-pair]";
    function.setArgAttr(argument, dmir::kStateAttr, name);
    function.setResultAttr(result, dmir::kStateAttr, name);
    Value past = function.getArgument(argument), present = returned()->getOperand(result);
    if (StateLengths::growthOf(past, present))
      return lengths.bind(cast<BlockArgument>(past), static_cast<unsigned>(result), "--state " + input + "=" + output);
    if (failed(checkSizes(input, output, past)))
      return failure();
    if (past.getType() == present.getType())
      return success();
    auto concat = present.getDefiningOp<dmir::ConcatOp>();
    bool grows = concat && concat.getInputs().size() == 2 && concat.getInputs().front() == past && past.hasOneUse() &&
                 shapeOf(concat.getInputs()[1])[concat.getAxis()] == 1;
    if (!grows)
      return function.emitError() << "--state " << input << "=" << output << ": the output is " << present.getType()
                                  << " and the input " << past.getType()
                                  << "; they must be equal, or the output the input and one row behind it [state-pair]";
    int64_t axis = concat.getAxis();
    caches.push_back({cast<BlockArgument>(past), concat, axis, shapeOf(present)[axis], Value()});
    return success();
  }

  /// A session holds its states from its first run on, which needs their sizes.
  LogicalResult checkSizes(const std::string &input, const std::string &output, Value past) {
    llvm::SetVector<StringRef> open;
    for (Dim dim : dmir::dimsOf(past))
      dim.forEachSymbol([&](std::string_view name) { open.insert(StringRef(name)); });
    if (open.empty())
      return success();
    InFlightDiagnostic error = function.emitError()
                               << "--state " << input << "=" << output << ": the input is " << past.getType()
                               << ", and a session holds states of fixed sizes; fix";
    for (StringRef name : open)
      error << " --dim " << name << "=N";
    return error << " (of DMIR text: the sizes in it; a cache has room for one row more) [state-pair]";
  }

  /// The next value of each state is written in its own place, so that states cannot hand values round in a circle.
  LogicalResult checkExchanges() {
    for (const auto &[input, output] : states) {
      StringRef state = input;
      for (size_t steps = 0; steps < states.size(); ++steps) {
        auto source = dyn_cast<BlockArgument>(viewedBy(nextOf(state)));
        auto from =
            source ? function.getArgAttrOfType<StringAttr>(source.getArgNumber(), dmir::kStateAttr) : StringAttr();
        if (!from || from.getValue() == state)
          break;
        state = from.getValue();
        if (state == input)
          return function.emitError() << "--state " << input << "=" << output << ": the state '" << input
                                      << "' gets the old value of another one, which gets its old value; leave out one "
                                         "of the two [state-pair]";
      }
    }
    return success();
  }

  /// The value that a state has after a run.
  Value nextOf(StringRef state) {
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto name = function.getResultAttrOfType<StringAttr>(i, dmir::kStateAttr); name && name.getValue() == state)
        return returned()->getOperand(i);
    return {};
  }

  static Value viewedBy(Value value) {
    while (auto reshape = value.getDefiningOp<dmir::ReshapeOp>())
      value = reshape.getInput();
    return value;
  }

  Operation *returned() { return function.getBody().front().getTerminator(); }

  //--- caches
  LogicalResult makeCaches() {
    OpBuilder builder(&function.getBody().front(), function.getBody().front().begin());
    Location loc = NameLoc::get(StringAttr::get(function.getContext(), "rows"));
    Value count = addCounter(builder, loc);
    for (Cache &cache : caches) {
      auto type = typeOf(cache.concat.getResult());
      cache.past.setType(type);
      builder.setInsertionPoint(cache.concat);
      Value row = cache.concat.getInputs()[1];
      auto indexType = RankedTensorType::get(shapeOf(row), builder.getI64Type());
      Value index = dmir::BroadcastOp::create(builder, loc, indexType, count);
      cache.present = dmir::ScatterElementsOp::create(builder, cache.concat.getLoc(), type, cache.past, index, row,
                                                      cache.axis, dmir::ScatterMode::replace);
      cache.concat.getResult().replaceAllUsesWith(cache.present);
      cache.concat.erase();
    }
    SmallVector<Type> inputs(function.getBody().getArgumentTypes());
    function.setType(builder.getFunctionType(inputs, returned()->getOperandTypes()));
    return maskRows(builder, count);
  }

  /// How many rows there are: a state that every run adds one to.
  Value addCounter(OpBuilder &builder, Location loc) {
    auto type = RankedTensorType::get({1}, builder.getI64Type());
    std::string free = "rows"; // of no input or output of the model
    for (int i = 1; find(true, free) >= 0 || find(false, free) >= 0; ++i)
      free = "rows." + std::to_string(i);
    auto name = builder.getStringAttr(free);
    unsigned number = function.getNumArguments();
    (void)function.insertArgument(number, type, builder.getDictionaryAttr({}), loc);
    function.setArgAttr(number, dmir::kNameAttr, name);
    function.setArgAttr(number, dmir::kStateAttr, name);
    Value count = function.getArgument(number);
    Value one = dmir::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<int64_t>{1}));
    Value next = dmir::AddOp::create(builder, loc, type, count, one);
    unsigned result = function.getNumResults();
    (void)function.insertResult(result, type, builder.getDictionaryAttr({}));
    function.setResultAttr(result, dmir::kNameAttr, name);
    function.setResultAttr(result, dmir::kStateAttr, name);
    returned()->insertOperands(result, next);
    return count;
  }

  /// Softmaxes over a cache's rows see only those that are there. What reads a cache must be a product, whose other
  /// rows are then multiplied by zero.
  LogicalResult maskRows(OpBuilder &builder, Value count) {
    llvm::SetVector<Operation *> masked;
    for (Cache &cache : caches) {
      llvm::SetVector<Operation *> reached;
      getForwardSlice(cache.present, &reached);
      for (Operation *op : reached) {
        auto softmax = dyn_cast<dmir::SoftmaxOp>(op);
        if (softmax && shapeOf(softmax.getInput())[softmax.getAxis()] == cache.rows && masked.insert(op))
          mask(builder, softmax, count, cache.rows);
      }
    }
    for (Cache &cache : caches)
      if (failed(checkReaders(cache.present, cache, masked)))
        return failure();
    return success();
  }

  void mask(OpBuilder &builder, dmir::SoftmaxOp softmax, Value count, int64_t rows) {
    builder.setInsertionPoint(softmax);
    Location loc = softmax.getLoc();
    auto input = typeOf(softmax.getInput());
    SmallVector<int64_t> shape(input.getRank(), 1), numbers(rows);
    shape[softmax.getAxis()] = rows;
    std::iota(numbers.begin(), numbers.end(), 0);
    auto places = RankedTensorType::get(shape, builder.getI64Type());
    Value place = dmir::ConstantOp::create(builder, loc, DenseElementsAttr::get(places, ArrayRef<int64_t>(numbers)));
    Value there = dmir::CompareOp::create(builder, loc, RankedTensorType::get(shape, builder.getI1Type()),
                                          dmir::Compare::le, place, count);
    auto scalar = RankedTensorType::get({}, input.getElementType());
    Value lowest = dmir::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(scalar, cast<Attribute>(builder.getFloatAttr(input.getElementType(), -1e30))));
    Value kept = dmir::SelectOp::create(builder, loc, input, there, softmax.getInput(), lowest);
    softmax.getInputMutable().set(kept);
  }

  /// Follows views to the products that read a cache.
  LogicalResult checkReaders(Value value, Cache &cache, const llvm::SetVector<Operation *> &masked) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<func::ReturnOp>(user))
        continue;
      if (isa<dmir::TransposeOp, dmir::ReshapeOp, dmir::BroadcastOp>(user)) {
        if (failed(checkReaders(user->getResult(0), cache, masked)))
          return failure();
        continue;
      }
      auto matmul = dyn_cast<dmir::MatMulOp>(user);
      if (!matmul || use.getOperandNumber() != 1)
        return user->emitError() << "reads the state '" << nameOf(cache)
                                 << "', of which rows may not be there yet, and is no product by it; leave out its "
                                    "--state [state-pair]";
    }
    return success();
  }

  StringRef nameOf(Cache &cache) {
    return function.getArgAttrOfType<StringAttr>(cache.past.getArgNumber(), dmir::kNameAttr).getValue();
  }

  func::FuncOp function;
  const PhaseContext &context;
  StateLengths lengths;
  std::vector<std::pair<std::string, std::string>> states;
  std::vector<Cache> caches;
};

struct BindStates : dmxc::impl::BindStatesBase<BindStates> {
  explicit BindStates(const PhaseContext &context) : context(context) {}
  void runOnOperation() override {
    if (!getOperation().isPublic())
      return;
    if (!context.states.empty() && failed(Binder(getOperation(), context).run()))
      return signalPassFailure();
    if (!context.stateType.empty() && !getOperation()->hasAttr(dmir::kLengthsAttr)) {
      getOperation().emitError()
          << "--state-type " << context.stateType
          << " is for states with a length, and there are none; give --state of inputs that grow "
             "and --dim of their rows, or leave it out [state-type]";
      return signalPassFailure();
    }
    keepCallerCaches(getOperation(), context);
  }
  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createBindStatesPass(const PhaseContext &context) {
  return std::make_unique<BindStates>(context);
}
} // namespace dmxc
