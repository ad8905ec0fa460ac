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

ParseResult ScheduledGraphOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<int64_t> units;
  SmallVector<OpAsmParser::Argument> place;
  if (parser.parseAttribute(name, "name", state.attributes) || parser.parseKeyword("units") ||
      parser.parseDimensionList(units, /*allowDynamic=*/false, /*withTrailingX=*/false) ||
      parser.parseArgumentList(place, OpAsmParser::Delimiter::Paren))
    return failure();
  for (OpAsmParser::Argument &index : place)
    index.type = parser.getBuilder().getIndexType();
  state.addAttribute("units", parser.getBuilder().getDenseI64ArrayAttr(units));
  return parseBody(parser, state, place);
}

void ScheduledGraphOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr() << " units ";
  llvm::interleave(getUnits(), printer.getStream(), "x");
  printer << " (";
  llvm::interleaveComma(getBody().getArguments(), printer, [&](Value index) { printer << index; });
  printer << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name", "units"});
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
