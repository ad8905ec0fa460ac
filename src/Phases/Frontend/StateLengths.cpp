//===- StateLengths.cpp - states that grow by rows of a run ---------------===//
//
// The state is a tensor with room for all rows. A run's rows are put behind those that are there, and what read the
// model's concatenation reads a slice of it: a kernel that appends in place writes these rows alone, and one that takes
// slices as they lie reads no others.
//
//===----------------------------------------------------------------------===//
#include "StateLengths.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"
#include "dmxc/Support/Stars.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace dmxc {

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

FailureOr<std::vector<std::pair<std::string, std::string>>>
statePairs(func::FuncOp function, const std::vector<std::pair<std::string, std::string>> &given) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto &[input, output] : given) {
    auto stars = llvm::count(input, '*');
    if (stars == 0) {
      pairs.emplace_back(input, output);
      continue;
    }
    std::string flag = "--state " + input + "=" + output;
    if (llvm::count(output, '*') != stars)
      return function.emitError() << flag
                                  << ": both names need as many '*', as what one stands for in the input "
                                     "stands in the output [state-pair]";
    size_t before = pairs.size();
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(i, dmir::kNameAttr))
        if (auto found = starsOf(input, name.getValue()))
          pairs.emplace_back(name.getValue().str(), *withStars(output, *found));
    if (pairs.size() == before)
      return function.emitError() << flag << ": the model has no input '" << input << "' [state-pair]";
  }
  return pairs;
}

//===----------------------------------------------------------------------===//
// Growth
//===----------------------------------------------------------------------===//

/// The argument itself, or with sizes for its open dims, which what is made of it asks for.
static bool isSized(Value sized, Value past) {
  auto broadcast = sized.getDefiningOp<dmir::BroadcastOp>();
  if (!broadcast || broadcast.getInput() != past)
    return sized == past;
  SmallVector<Dim> from = dmir::dimsOf(past), to = dmir::dimsOf(sized);
  return from.size() == to.size() && llvm::all_of(llvm::zip_equal(from, to), [](auto dims) {
           return std::get<0>(dims) == std::get<1>(dims) ||
                  (!std::get<0>(dims).isStatic() && std::get<1>(dims).isStatic());
         });
}

dmir::ConcatOp StateLengths::growthOf(Value past, Value present) {
  auto concat = present.getDefiningOp<dmir::ConcatOp>();
  bool grows = concat && concat.getInputs().size() == 2 && isSized(concat.getInputs().front(), past) &&
               !dmir::dimOf(past, static_cast<int64_t>(concat.getAxis())).isStatic();
  return grows ? concat : dmir::ConcatOp();
}

std::optional<std::string> StateLengths::refusal(BlockArgument past, dmir::ConcatOp concat) {
  SmallVector<Dim> dims = dmir::dimsOf(concat.getInputs().front());
  const size_t grown = concat.getAxis();
  std::optional<std::string> name = dims[grown].symbolName();
  if (!name)
    return "the input has " + dims[grown].str() + " rows, which is no dim by itself; give the axis a name of its own";
  for (auto [axis, dim] : llvm::enumerate(dims))
    if (axis != grown && !dim.isStatic())
      return llvm::formatv("the input is '{0}', and a session holds states of fixed sizes but for their rows; fix "
                           "--dim {1}=N",
                           past.getType(), dim.str());
  if (!past.hasOneUse() || !concat.getInputs().front().hasOneUse())
    return "the input is read elsewhere than where the output is made of it, so that its rows cannot be appended to in "
           "place; leave out its --state";
  DimBounds bounds = dmir::symbolBounds(function, *name);
  if (bounds.max == INT64_MAX || bounds.min > 0)
    return "the state has '" + *name + "' rows, none at first; say for how many there is to be room: --dim " + *name +
           "=0..N";
  if (!context.stateType.empty() && !isa<FloatType>(elementOf(past)))
    return "--state-type " + context.stateType + " is for states of floats, and its elements are " +
           std::string(dtypeName(*dmir::dtypeOf(elementOf(past)))) + "; leave it out";
  for (const TargetBackend *target : context.targets)
    if (!target->runsOnHost())
      return "the target '" + target->name().str() +
             "' keeps no states with a length; compile for the host alone, or fix --dim " + *name + "=N";
  Dim next = dims[grown] + dmir::dimOf(concat.getInputs()[1], static_cast<int64_t>(grown));
  auto [known, isNew] = lengths.try_emplace(*name, next);
  if (!isNew && !(known->second == next))
    return "its rows become " + next.str() + ", and those of another state, which has '" + *name + "' too, " +
           known->second.str() + "; states that grow apart need names of their own";
  return std::nullopt;
}

/// All of a tensor but along an axis, where it takes [start, start + size).
static Value sliceOf(OpBuilder &b, Location loc, Value whole, size_t axis, Dim start, Dim size) {
  SmallVector<Dim> dims = dmir::dimsOf(whole), from(dims.size(), 0), dynamic;
  dims[axis] = size, from[axis] = start;
  SmallVector<int64_t> starts = dmir::splitDims(from, dynamic), sizes = dmir::splitDims(dims, dynamic),
                       steps(dims.size(), 1);
  return dmir::SliceOp::create(b, loc, dmir::tensorOf(dims, elementOf(whole)), whole, starts, sizes, steps,
                               dmir::dimsAttr(b.getContext(), dynamic));
}

void StateLengths::growInPlace(BlockArgument past, unsigned result, dmir::ConcatOp concat, Dim room, Type element) {
  size_t axis = concat.getAxis();
  Operation *sizes = concat.getInputs().front().getDefiningOp(); // of an op that says the past's sizes
  SmallVector<Dim> dims = dmir::dimsOf(concat.getInputs().front());
  OpBuilder b(concat);
  Location loc = concat.getLoc();
  Type read = elementOf(past);
  auto as = [&](Value value, Type type) -> Value {
    auto given = dmir::tensorOf(dmir::dimsOf(value), type);
    return elementOf(value) == type ? value : dmir::CastOp::create(b, loc, given, value).getResult();
  };
  Value rows = as(concat.getInputs()[1], element);
  Dim length = dims[axis], next = length + dmir::dimOf(rows, static_cast<int64_t>(axis));
  dims[axis] = room;
  past.setType(dmir::tensorOf(dims, element));
  Value before = sliceOf(b, loc, past, axis, 0, length), after = sliceOf(b, loc, past, axis, next, room - next);
  auto whole = dmir::ConcatOp::create(b, loc, past.getType(), ValueRange{before, rows, after}, axis);
  past.getOwner()->getTerminator()->setOperand(result, whole);
  concat.getResult().replaceAllUsesWith(as(sliceOf(b, loc, whole, axis, 0, next), read));
  concat.erase();
  if (sizes)
    sizes->erase();
}

LogicalResult StateLengths::bind(BlockArgument past, unsigned result, const std::string &flag) {
  Operation *returned = function.getBody().front().getTerminator();
  dmir::ConcatOp concat = growthOf(past, returned->getOperand(result));
  if (std::optional<std::string> why = refusal(past, concat))
    return function.emitError() << flag << ": " << *why << " [state-pair]";
  auto axis = static_cast<int64_t>(concat.getAxis());
  std::string name = *dmir::dimOf(concat.getInputs().front(), axis).symbolName();
  Type element = context.stateType.empty()
                     ? elementOf(past)
                     : dmir::elementTypeOf(*dtypeFromName(context.stateType), function.getContext());
  growInPlace(past, result, concat, dmir::symbolBounds(function, name).max, element);
  Builder b(function.getContext());
  function.setArgAttr(past.getArgNumber(), dmir::kLengthAttr,
                      b.getArrayAttr({b.getStringAttr(name), b.getI64IntegerAttr(axis)}));
  return success();
}

void StateLengths::finish() {
  if (lengths.empty())
    return;
  Builder b(function.getContext());
  SmallVector<Attribute> list;
  for (const auto &[name, next] : lengths)
    list.push_back(b.getArrayAttr({b.getStringAttr(name), dmir::dimAttr(b.getContext(), next)}));
  function->setAttr(dmir::kLengthsAttr, b.getArrayAttr(list));
  function.setType(b.getFunctionType(function.getBody().getArgumentTypes(),
                                     function.getBody().front().getTerminator()->getOperandTypes()));
}

} // namespace dmxc
