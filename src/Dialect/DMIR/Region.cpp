//===- Region.cpp - syntax and rules of dmir.region -----------------------===//
#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace dmxc::dmir;

// dmir.region "cpu" (%a = %x : tensor<..>, ...) -> (tensor<..>) attributes {..} { ... }

ParseResult RegionOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr device;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  if (parser.parseAttribute(device, getDeviceAttrName(state.name), state.attributes))
    return failure();
  auto parseBinding = [&]() -> ParseResult {
    OpAsmParser::Argument argument;
    if (parser.parseArgument(argument) || parser.parseEqual() || parser.parseOperand(operands.emplace_back()) ||
        parser.parseColonType(argument.type))
      return failure();
    types.push_back(argument.type);
    arguments.push_back(argument);
    return success();
  };
  SMLoc where = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseBinding) || parser.parseArrow())
    return failure();
  SmallVector<Type> results;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren,
                                     [&] { return parser.parseType(results.emplace_back()); }) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.resolveOperands(operands, types, where, state.operands) ||
      parser.parseRegion(*state.addRegion(), arguments))
    return failure();
  state.addTypes(results);
  return success();
}

void RegionOp::print(OpAsmPrinter &printer) {
  printer << " " << getDeviceAttr() << " (";
  llvm::interleaveComma(llvm::zip(getBlock()->getArguments(), getInputs()), printer, [&](auto pair) {
    printer.printRegionArgument(std::get<0>(pair), {}, /*omitType=*/true);
    printer << " = " << std::get<1>(pair) << " : " << std::get<1>(pair).getType();
  });
  printer << ") -> (";
  llvm::interleaveComma(getResultTypes(), printer);
  printer << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getDeviceAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

/// Of a result's placement: every number is one, and says one place.
static bool isPlace(Attribute attr) {
  auto place = dyn_cast<DictionaryAttr>(attr);
  auto count = [&](StringRef key) {
    auto number = place.getAs<IntegerAttr>(key);
    return number && number.getType().isSignlessInteger(64) && number.getInt() >= 0;
  };
  auto unit = place ? place.getAs<DimsAttr>("unit") : DimsAttr();
  if (!place || !count("size") || (place.get("unit") && (!unit || unit.getDims().size() != 1)))
    return false;
  return place.get("output") ? count("output") && !place.get("arena") : count("arena") && count("offset");
}

LogicalResult RegionOp::verify() {
  if (getBody().empty() || getBlock()->getArgumentTypes() != getInputs().getTypes())
    return emitOpError("C1: the body's argument types must be the operands' types");
  auto yield = getBlock()->empty() ? YieldOp() : dyn_cast<YieldOp>(getBlock()->back());
  if (!yield || yield.getOperandTypes() != getResultTypes())
    return emitOpError("C2: the body must end in dmir.yield of the result types");
  for (Operation &op : *getBlock())
    if (op.getDialect() != (*this)->getDialect() || isa<RegionOp>(op))
      return emitOpError("C3: a region may not hold '") << op.getName() << "'";
  ArrayAttr places = getPlacementAttr();
  if (places && (places.size() != getNumResults() || !llvm::all_of(places, isPlace)))
    return emitOpError(
               "C4: 'placement' must be an array of {arena, offset, size} or {output, size}, one for each of the ")
           << getNumResults() << " results, got " << places;
  return success();
}

SmallVector<std::pair<unsigned, unsigned>> dmxc::dmir::stateUpdates(RegionOp region) {
  SmallVector<std::pair<unsigned, unsigned>> updates;
  auto function = region->getParentOfType<func::FuncOp>();
  for (OpResult result : region->getResults()) {
    if (!function || !result.hasOneUse() || !isa<func::ReturnOp>(*result.getUsers().begin()))
      continue;
    auto name = function.getResultAttrOfType<StringAttr>(result.getUses().begin()->getOperandNumber(), kStateAttr);
    for (auto [i, input] : llvm::enumerate(region.getInputs()))
      if (auto argument = dyn_cast<BlockArgument>(input);
          name && argument && argument.hasOneUse() &&
          function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kStateAttr) == name)
        updates.push_back({static_cast<unsigned>(i), result.getResultNumber()});
  }
  return updates;
}
