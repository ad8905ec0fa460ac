//===- PromisedMasks.cpp - inputs that are masks by a promise -------------===//
#include "dmxc/Driver/PromisedMasks.h"

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Driver/MaskText.h"
#include "dmxc/Support/Visible.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dmxc::driver {

namespace {

Error wrongRank(const std::string &input, size_t axes, size_t rank) {
  return {ErrorKind::Usage, "--mask " + visible(input) + ": the rule has " + std::to_string(axes) +
                                " axes, and the input " + std::to_string(rank) + "; name each of them"};
}

/// Computes a rule for all indices of a tensor.
class Lowering {
public:
  Lowering(OpBuilder &b, Location loc, ArrayRef<Dim> dims) : b(b), loc(loc), dims(dims) {}

  Value lower(const MaskTerm &term) {
    if (term.kind == MaskTerm::Number)
      return dmir::ConstantOp::create(b, loc,
                                      DenseElementsAttr::get(RankedTensorType::get({}, b.getI64Type()), term.number));
    if (term.kind == MaskTerm::Axis) {
      SmallVector<Dim> own(dims.size(), Dim(1));
      own[term.number] = dims[term.number];
      return dmir::IotaOp::create(b, loc, dmir::tensorOf(own, b.getI64Type()), term.number);
    }
    SmallVector<Value> values;
    for (const MaskTerm &operand : term.operands)
      values.push_back(lower(operand));
    return of(term.kind, values);
  }

private:
  template <typename Op> Value op(ArrayRef<Value> values, Type element) {
    return Op::create(b, loc, dmir::tensorOf(joined(values), element), values[0], values[1]);
  }
  template <typename Op> Value number(ArrayRef<Value> values) { return op<Op>(values, b.getI64Type()); }
  Value compared(dmir::Compare kind, ArrayRef<Value> values) {
    return dmir::CompareOp::create(b, loc, dmir::tensorOf(joined(values), b.getI1Type()), kind, values[0], values[1]);
  }
  static SmallVector<Dim> joined(ArrayRef<Value> values) {
    return *dmir::broadcastDims(dmir::dimsOf(values[0]), dmir::dimsOf(values[1]));
  }

  Value of(MaskTerm::Kind kind, ArrayRef<Value> values) {
    switch (kind) {
    case MaskTerm::Add:
      return number<dmir::AddOp>(values);
    case MaskTerm::Sub:
      return number<dmir::SubOp>(values);
    case MaskTerm::Mul:
      return number<dmir::MulOp>(values);
    case MaskTerm::FloorDiv:
      return number<dmir::DivOp>(values);
    case MaskTerm::Mod:
      return number<dmir::ModOp>(values);
    case MaskTerm::Abs:
      return dmir::AbsOp::create(b, loc, values[0].getType(), values[0]);
    case MaskTerm::Less:
      return compared(dmir::Compare::lt, values);
    case MaskTerm::LessEqual:
      return compared(dmir::Compare::le, values);
    case MaskTerm::Equal:
      return compared(dmir::Compare::eq, values);
    case MaskTerm::NotEqual:
      return compared(dmir::Compare::ne, values);
    case MaskTerm::And:
      return op<dmir::AndOp>(values, b.getI1Type());
    case MaskTerm::Or:
      return op<dmir::OrOp>(values, b.getI1Type());
    case MaskTerm::Not:
      return dmir::NotOp::create(b, loc, values[0].getType(), values[0]);
    case MaskTerm::Number:
    case MaskTerm::Axis:
      break;
    }
    llvm_unreachable("lowered before");
  }

  OpBuilder &b;
  Location loc;
  ArrayRef<Dim> dims;
};

/// The same for one index.
int64_t valueAt(const MaskTerm &term, ArrayRef<int64_t> index) {
  auto at = [&](size_t operand) { return valueAt(term.operands[operand], index); };
  switch (term.kind) {
  case MaskTerm::Number:
    return term.number;
  case MaskTerm::Axis:
    return index[term.number];
  case MaskTerm::Add:
    return at(0) + at(1);
  case MaskTerm::Sub:
    return at(0) - at(1);
  case MaskTerm::Mul:
    return at(0) * at(1);
  case MaskTerm::FloorDiv:
    return llvm::divideFloorSigned(at(0), at(1));
  case MaskTerm::Mod:
    return at(0) - llvm::divideFloorSigned(at(0), at(1)) * at(1);
  case MaskTerm::Abs:
    return std::abs(at(0));
  case MaskTerm::Less:
    return at(0) < at(1);
  case MaskTerm::LessEqual:
    return at(0) <= at(1);
  case MaskTerm::Equal:
    return at(0) == at(1);
  case MaskTerm::NotEqual:
    return at(0) != at(1);
  case MaskTerm::And:
    return at(0) && at(1);
  case MaskTerm::Or:
    return at(0) || at(1);
  case MaskTerm::Not:
    return !at(0);
  }
  llvm_unreachable("no other kind");
}

/// What the bools of a rule are as elements of a type; null where they are none.
Value asElements(OpBuilder &b, Location loc, Value bools, Type element) {
  if (element.isInteger(1))
    return bools;
  RankedTensorType type = dmir::tensorOf(dmir::dimsOf(bools), element);
  if (element.isInteger())
    return dmir::CastOp::create(b, loc, type, bools);
  auto number = [&](double value) -> Value {
    auto scalar = RankedTensorType::get({}, element);
    return dmir::ConstantOp::create(b, loc, DenseElementsAttr::get(scalar, b.getFloatAttr(element, value)));
  };
  return dmir::SelectOp::create(b, loc, type, bools, number(0), number(-std::numeric_limits<double>::infinity()));
}

/// A dim that no other input says.
std::optional<std::string> onlyHere(func::FuncOp function, unsigned argument) {
  auto symbolsOf = [&](unsigned of) {
    std::vector<std::string> names;
    for (Dim dim : dmir::dimsOf(function.getArgument(of)))
      dim.forEachSymbol([&](std::string_view name) { names.emplace_back(name); });
    return names;
  };
  for (const std::string &name : symbolsOf(argument)) {
    bool isSaid = false;
    for (unsigned other = 0; other < function.getNumArguments(); ++other)
      isSaid |= other != argument && isa<RankedTensorType>(function.getArgument(other).getType()) &&
                llvm::is_contained(symbolsOf(other), name);
    if (!isSaid)
      return name;
  }
  return std::nullopt;
}

Status replaceInput(func::FuncOp function, unsigned at, const std::string &input, const MaskText &rule) {
  std::string flag = "--mask " + visible(input) + ": ";
  auto type = dyn_cast<RankedTensorType>(function.getArgument(at).getType());
  Type element = type ? type.getElementType() : Type();
  if (!element ||
      !(element.isSignlessInteger() || element.isF32() || element.isF16() || element.isBF16() || element.isF64()))
    return Error{ErrorKind::Usage, flag + "the input is no tensor of bools, integers or floats"};
  if (static_cast<size_t>(type.getRank()) != rule.axes.size())
    return wrongRank(input, rule.axes.size(), type.getRank());
  if (std::optional<std::string> name = onlyHere(function, at))
    return Error{ErrorKind::Usage, flag + "no other input says the dim '" + visible(*name) + "'; fix it: --dim " +
                                       visible(*name) + "=SIZE"};
  OpBuilder b = OpBuilder::atBlockBegin(&function.getBody().front());
  Location loc = NameLoc::get(b.getStringAttr("--mask " + input));
  SmallVector<Dim> dims = dmir::dimsOf(function.getArgument(at));
  Value bools = Lowering(b, loc, dims).lower(rule.rule);
  if (dmir::dimsOf(bools) != dims)
    bools = dmir::BroadcastOp::create(b, loc, dmir::tensorOf(dims, b.getI1Type()), bools);
  function.getArgument(at).replaceAllUsesWith(asElements(b, loc, bools, element));
  if (failed(function.eraseArgument(at)))
    return Error{ErrorKind::Internal, flag + "the input cannot be taken away"};
  return Status::ok();
}

} // namespace

Status promiseMasks(ModuleOp module, const Promises &promises) {
  for (const auto &[input, text] : promises) {
    Result<MaskText> rule = parseMaskText(text);
    if (!rule)
      return rule.takeError();
    bool isThere = false;
    std::string names;
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      for (unsigned at = 0; function.isPublic() && at < function.getNumArguments(); ++at) {
        auto name = function.getArgAttrOfType<StringAttr>(at, dmir::kNameAttr);
        if (!name)
          continue;
        names += (names.empty() ? "'" : ", '") + visible(name.getValue()) + "'";
        if (name.getValue() != input)
          continue;
        isThere = true;
        if (Status done = replaceInput(function, at, input, *rule); !done)
          return done;
        break;
      }
    if (!isThere)
      return Error{ErrorKind::Usage, "--mask " + visible(input) + ": the model has no such input; it has " + names};
  }
  return Status::ok();
}

Status checkPromise(const std::pair<std::string, std::string> &promise, const Tensor &given) {
  Result<MaskText> rule = parseMaskText(promise.second);
  if (!rule)
    return rule.takeError();
  const Shape &shape = given.shape();
  if (shape.size() != rule->axes.size())
    return wrongRank(promise.first, rule->axes.size(), shape.size());
  constexpr double mostFill = -1000;
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t at = 0; at < given.numElements(); ++at) {
    bool kept = valueAt(rule->rule, index) != 0;
    double value = given.asDouble(at);
    bool fits = isFloat(given.dtype()) ? (kept ? value == 0 : value <= mostFill) : value == (kept ? 1 : 0);
    if (!fits) {
      std::string place;
      for (int64_t i : index)
        place += (place.empty() ? "" : ", ") + std::to_string(i);
      return Error{ErrorKind::Mismatch, "--mask " + visible(promise.first) + ": the promise is broken: element (" +
                                            place + ") of what is given is " + llvm::formatv("{0}", value).str() +
                                            ", and the rule " + (kept ? "keeps" : "does not keep") + " it"};
    }
    for (size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];)
      index[axis] = 0;
  }
  return Status::ok();
}

} // namespace dmxc::driver
