//===- DeviceSyntax.cpp - text form of graphs, loops and token counts -----===//
#include "TokenCounts.h"

#include "dmxc/Dialect/DLIR/TaskSyntax.h"

using namespace mlir;
using namespace dmxc::dlir;

using Operand = OpAsmParser::UnresolvedOperand;

//===--- graphs and loops -----------------------------------------------------------===//

static ParseResult parseBody(OpAsmParser &parser, OperationState &state, ArrayRef<OpAsmParser::Argument> arguments) {
  Region *body = state.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) || parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty()) {
    Block &block = body->emplaceBlock();
    for (const OpAsmParser::Argument &argument : arguments)
      block.addArgument(argument.type, parser.getEncodedSourceLoc(parser.getNameLoc()));
  }
  return success();
}

/// `4x2 (%x, %y)`, behind the word `units`.
static ParseResult parseGrid(OpAsmParser &parser, OperationState &state, SmallVector<OpAsmParser::Argument> &place) {
  SmallVector<int64_t> units;
  if (parser.parseDimensionList(units, /*allowDynamic=*/false, /*withTrailingX=*/false) ||
      parser.parseArgumentList(place, OpAsmParser::Delimiter::Paren))
    return failure();
  for (OpAsmParser::Argument &index : place)
    index.type = parser.getBuilder().getIndexType();
  state.addAttribute("units", parser.getBuilder().getDenseI64ArrayAttr(units));
  return success();
}

static void printGrid(OpAsmPrinter &printer, ArrayRef<int64_t> units, Region &body) {
  printer << " units ";
  llvm::interleave(units, printer.getStream(), "x");
  printer << " (";
  llvm::interleaveComma(body.getArguments(), printer, [&](Value index) { printer << index; });
  printer << ")";
}

ParseResult ScheduledGraphOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> place;
  if (parser.parseAttribute(name, "name", state.attributes) || parser.parseKeyword("units") ||
      parseGrid(parser, state, place))
    return failure();
  return parseBody(parser, state, place);
}

void ScheduledGraphOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr();
  printGrid(printer, getUnits(), getBody());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name", "units"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult DispatchQueueOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr unit, engine;
  IntegerAttr index;
  SmallVector<OpAsmParser::Argument> place;
  if (parser.parseAttribute(unit, "unit", state.attributes) ||
      parser.parseAttribute(engine, "engine", state.attributes) ||
      parser.parseAttribute(index, parser.getBuilder().getI64Type(), "index", state.attributes) ||
      (succeeded(parser.parseOptionalKeyword("units")) && parseGrid(parser, state, place)))
    return failure();
  return parseBody(parser, state, place);
}

void DispatchQueueOp::print(OpAsmPrinter &printer) {
  printer << " " << getUnitAttr() << " " << getEngineAttr() << " " << static_cast<int64_t>(getIndex());
  if (getUnits())
    printGrid(printer, *getUnits(), getBody());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"unit", "engine", "index", "units"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult LoopOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::Argument counter;
  counter.type = parser.getBuilder().getIndexType();
  SmallVector<Operand> operands;
  NamedAttrList ignored;
  AffineMapAttr times;
  if (parser.parseArgument(counter) || parser.parseKeyword("times") ||
      parser.parseAffineMapOfSSAIds(operands, times, "map", ignored, OpAsmParser::Delimiter::Square) ||
      parser.resolveOperands(operands, parser.getBuilder().getIndexType(), state.operands))
    return failure();
  state.addAttribute("times", times);
  return parseBody(parser, state, counter);
}

void LoopOp::print(OpAsmPrinter &printer) {
  printer << " " << getBody().getArgument(0) << " times";
  printPlaces(printer, getTimes(), getIndices());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"times"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

//===--- channels -------------------------------------------------------------------===//

/// `@a [4, 2] depth 2`, where the array's extents and a depth of 1 may miss.
ParseResult ChannelOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<int64_t> extents;
  bool isArray = false;
  int64_t depth = 1;
  auto one = [&] {
    isArray = true;
    return parser.parseInteger(extents.emplace_back());
  };
  if (parser.parseSymbolName(name, "sym_name", state.attributes) ||
      parser.parseCommaSeparatedList(OpAsmParser::Delimiter::OptionalSquare, one) ||
      (succeeded(parser.parseOptionalKeyword("depth")) && parser.parseInteger(depth)) ||
      parser.parseOptionalAttrDict(state.attributes))
    return failure();
  if (isArray)
    state.addAttribute("extents", parser.getBuilder().getDenseI64ArrayAttr(extents));
  state.addAttribute("depth", parser.getBuilder().getI64IntegerAttr(depth));
  return success();
}

void ChannelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  if (getExtents()) {
    printer << " ";
    getExtentsAttr().print(printer);
  }
  if (int64_t depth = getDepth(); depth != 1)
    printer << " depth " << depth;
  printer.printOptionalAttrDict((*this)->getAttrs(), {"sym_name", "extents", "depth"});
}

//===--- token counts ---------------------------------------------------------------===//

/// `%a, %b >= 2` or `%a, %b += 2`, by the first character of the sign; no counts where all are one.
static ParseResult parseCounts(OpAsmParser &parser, SmallVectorImpl<Operand> &tokens, DenseI64ArrayAttr &counts,
                               bool waits) {
  SmallVector<int64_t> numbers;
  auto one = [&]() -> ParseResult {
    int64_t &count = numbers.emplace_back(1);
    if (parser.parseOperand(tokens.emplace_back()))
      return failure();
    if (failed(waits ? parser.parseOptionalGreater() : parser.parseOptionalPlus()))
      return success();
    return failure(parser.parseEqual() || parser.parseInteger(count));
  };
  if (parser.parseCommaSeparatedList(one))
    return failure();
  if (llvm::any_of(numbers, [](int64_t n) { return n != 1; }))
    counts = parser.getBuilder().getDenseI64ArrayAttr(numbers);
  return success();
}

static void printCounts(OpAsmPrinter &printer, OperandRange tokens, DenseI64ArrayAttr counts, StringRef sign) {
  for (auto [i, token] : llvm::enumerate(tokens)) {
    printer << (i ? ", " : "") << token;
    if (counts && i < static_cast<size_t>(counts.size()) && counts[i] != 1)
      printer << " " << sign << " " << counts[i];
  }
}

ParseResult dmxc::dlir::parseWaits(OpAsmParser &parser, SmallVectorImpl<Operand> &tokens, DenseI64ArrayAttr &counts) {
  return parseCounts(parser, tokens, counts, true);
}
ParseResult dmxc::dlir::parseSignals(OpAsmParser &parser, SmallVectorImpl<Operand> &tokens, DenseI64ArrayAttr &counts) {
  return parseCounts(parser, tokens, counts, false);
}
void dmxc::dlir::printWaits(OpAsmPrinter &printer, Operation *, OperandRange tokens, DenseI64ArrayAttr counts) {
  printCounts(printer, tokens, counts, ">=");
}
void dmxc::dlir::printSignals(OpAsmPrinter &printer, Operation *, OperandRange tokens, DenseI64ArrayAttr counts) {
  printCounts(printer, tokens, counts, "+=");
}
