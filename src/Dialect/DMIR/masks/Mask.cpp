//===- Mask.cpp - the op whose elements a rule keeps ----------------------===//
#include "../Infer.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"
#include "dmxc/Support/Visible.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace dmxc;
using namespace dmxc::dmir;
using namespace mlir;

#define GET_OP_CLASSES
#include "dmxc/Dialect/DMIR/MaskOps.cpp.inc"

std::string dmir::faultOf(AffineExpr expr) {
  constexpr int64_t most = int64_t(1) << 40;
  std::string fault;
  expr.walk([&](AffineExpr inner) {
    if (auto number = dyn_cast<AffineConstantExpr>(inner);
        number && (number.getValue() > most || number.getValue() < -most))
      fault = "C3: a number lies outside of 2^40";
    auto binary = dyn_cast<AffineBinaryOpExpr>(inner);
    if (!binary || binary.getKind() == AffineExprKind::Add)
      return;
    auto by = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (binary.getKind() == AffineExprKind::Mul
            ? !by
            : !by || by.getValue() <= 0 || binary.getKind() == AffineExprKind::CeilDiv)
      fault =
          "C2: a rule divides by something else than a positive number, or multiplies by something else than a number";
  });
  return fault;
}

/// The constraint of the op that its lists of tiles break; "" for good ones.
static std::string faultOfTiles(ArrayRef<Dim> dims, std::optional<ArrayRef<int64_t>> tile, ArrayAttr lists) {
  if (!tile && !lists)
    return "";
  if (!tile || !lists || tile->size() != 2 || (*tile)[0] <= 0 || (*tile)[1] <= 0)
    return "C6: 'tile' has two positive numbers, and goes with 'tiles'";
  if (dims.size() < 2 || !dims[dims.size() - 2].isStatic() || !dims.back().isStatic())
    return "C6: lists of tiles are of known rows and columns";
  auto count = [&](int64_t axis) {
    return (*dims[dims.size() - 2 + axis].known() + (*tile)[axis] - 1) / (*tile)[axis];
  };
  if (static_cast<int64_t>(lists.size()) != count(0))
    return "C6: there are " + std::to_string(count(0)) + " rows of tiles, and 'tiles' has " +
           std::to_string(lists.size()) + " lists";
  for (auto [row, list] : llvm::enumerate(lists.getAsRange<DenseI64ArrayAttr>())) {
    std::string where = "C6: list " + std::to_string(row) + " of 'tiles' ";
    int64_t before = -1;
    for (int64_t number : list.asArrayRef()) {
      if (number < 0 || number >= count(1))
        return where + "has tile " + std::to_string(number) + ", and there are " + std::to_string(count(1));
      if (number <= before)
        return where + (number == before
                            ? "has tile " + std::to_string(number) + " twice"
                            : "is not ascending: " + std::to_string(number) + " is behind " + std::to_string(before));
      before = number;
    }
  }
  return "";
}

DMIR_INFER(MaskOp) {
  auto input = typeOf(op.getInput());
  size_t symbols = (op.getDims() ? op.getDims()->getDims().size() : 0) + op.getValues().size();
  if (op.getKeep().empty() || op.getKeep().size() > 4)
    return emitOptionalError(loc, "C1: a rule has 1 to 4 cases, not ", op.getKeep().size());
  for (IntegerSet set : op.getKeep().getAsValueRange<IntegerSetAttr>()) {
    if (set.getNumDims() != input.getRank() || set.getNumSymbols() != symbols || set.getNumConstraints() > 16)
      return emitOptionalError(loc, "C1: a case has ", set.getNumDims(), " dims, ", set.getNumSymbols(),
                               " symbols and ", set.getNumConstraints(), " conditions; the operand has ",
                               input.getRank(), " axes, there are ", symbols,
                               " dims and values, and 16 conditions are the most");
    for (AffineExpr expr : set.getConstraints())
      if (std::string fault = faultOf(expr); !fault.empty())
        return emitOptionalError(loc, fault);
  }
  if (auto fill = dyn_cast<FloatAttr>(op.getFill()); !fill || fill.getType() != input.getElementType())
    return emitOptionalError(loc, "C4: fill is no number of type ", input.getElementType());
  if (op.getAdds() &&
      (op.getLow() || !input.getElementType().isF32() || !cast<FloatAttr>(op.getFill()).getValue().isFinite()))
    return emitOptionalError(loc, "C7: 'adds' goes with a finite fill, elements of f32, and no 'low'");
  if (std::string fault = faultOfTiles(dimsOf(op.getInput()), op.getTile(), op.getTiles().value_or(ArrayAttr()));
      !fault.empty())
    return emitOptionalError(loc, fault);
  for (Value value : op.getValues()) {
    SmallVector<Dim> whole = dimsOf(op.getInput()), own = dimsOf(value);
    std::optional<SmallVector<Dim>> both = broadcastDims(own, whole);
    if (!both || *both != whole)
      return emitOptionalError(loc, "C5: a value does not broadcast to the operand's dims: ", value.getType());
  }
  results.push_back(op.getInput().getType());
  return success();
}

Rule dmir::ruleOf(MaskOp op) {
  Rule rule;
  rule.rank = typeOf(op.getInput()).getRank();
  if (op.getDims())
    rule.dims.assign(op.getDims()->getDims().begin(), op.getDims()->getDims().end());
  for (Value value : op.getValues()) {
    auto argument = dyn_cast<BlockArgument>(value);
    auto function =
        argument ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp()) : FunctionOpInterface();
    auto name = function ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kNameAttr) : StringAttr();
    std::string text = name       ? visible(name.getValue())
                       : argument ? "value" + std::to_string(rule.values.size())
                                  : "'" + nodeName(value.getDefiningOp()) + "'";
    SmallVector<Dim> dims = dimsOf(value);
    auto varies = [&](size_t fromEnd) { return dims.size() >= fromEnd && !dims[dims.size() - fromEnd].is(1); };
    rule.values.push_back({text, "", elementOf(value).isInteger(1), varies(2), varies(1)});
  }
  llvm::append_range(rule.cases, op.getKeep().getAsValueRange<IntegerSetAttr>());
  if (op.getTiles())
    rule.tiles = {(*op.getTile())[0], (*op.getTile())[1], *op.getTiles()};
  return rule;
}
