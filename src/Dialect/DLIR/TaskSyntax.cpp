//===- TaskSyntax.cpp - text form of tasks --------------------------------===//
#include "dmxc/Dialect/DLIR/TaskSyntax.h"

using namespace mlir;
using namespace dmxc::dlir;

namespace {

using Operand = OpAsmParser::UnresolvedOperand;

/// Parses one task; all its maps get the same list of indices.
class TaskParser {
public:
  TaskParser(OpAsmParser &parser, OperationState &state, const TaskSyntax &syntax)
      : parser(parser), state(state), syntax(syntax) {}

  ParseResult run() {
    if (parseLead() || parsePlaces() || parseClauses() || parser.parseOptionalAttrDict(state.attributes))
      return failure();
    for (auto &[name, map] : maps)
      state.addAttribute(name, AffineMapAttr::get(widened(map)));
    SmallVector<Attribute> all;
    for (AffineMap place : places)
      all.push_back(AffineMapAttr::get(widened(place)));
    Builder &builder = parser.getBuilder();
    state.addAttribute("places", builder.getArrayAttr(all));
    state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr({static_cast<int32_t>(buffers.size()),
                                                                            static_cast<int32_t>(descriptor.size()),
                                                                            static_cast<int32_t>(indices.size())}));
    MLIRContext *context = parser.getContext();
    return failure(parser.resolveOperands(buffers, MemoryType::get(context), state.operands) ||
                   parser.resolveOperands(descriptor, DescriptorType::get(context), state.operands) ||
                   parser.resolveOperands(indices, builder.getIndexType(), state.operands));
  }

private:
  ParseResult parseLead() {
    Builder &builder = parser.getBuilder();
    StringAttr text;
    SymbolRefAttr symbol;
    StringRef from, to;
    switch (syntax.lead) {
    case TaskSyntax::None:
      return success();
    case TaskSyntax::Text:
      return parser.parseAttribute(text, syntax.leadName, state.attributes);
    case TaskSyntax::Symbol:
      return failure(parser.parseAttribute(symbol, syntax.leadName, state.attributes) || parseLeadMap());
    case TaskSyntax::Route:
      if (parser.parseKeyword(&from) || parser.parseArrow() || parser.parseKeyword(&to))
        return failure();
      state.addAttribute("from", builder.getStringAttr(from));
      state.addAttribute("to", builder.getStringAttr(to));
      return success();
    }
    return failure();
  }

  ParseResult parseLeadMap() {
    AffineMap map;
    if (syntax.leadMap.empty())
      return success();
    if (parseMap(map, OpAsmParser::Delimiter::OptionalSquare))
      return failure();
    if (map.getNumResults())
      maps.emplace_back(syntax.leadMap, map);
    return success();
  }

  ParseResult parsePlaces() {
    for (StringRef word : syntax.places) {
      bool optional = word.consume_front("?");
      if (optional && parser.parseOptionalKeyword(word))
        break;
      AffineMap map;
      if ((!optional && !word.empty() && parser.parseKeyword(word)) || parser.parseOperand(buffers.emplace_back()) ||
          parseMap(map))
        return failure();
      places.push_back(map);
    }
    if (!syntax.places.empty() && succeeded(parser.parseOptionalKeyword("with")))
      return parser.parseOperand(descriptor.emplace_back());
    return success();
  }

  ParseResult parseClauses() {
    SmallVector<StringRef> names;
    for (const Clause &clause : syntax.clauses)
      names.push_back(clause.name);
    while (true) {
      StringRef word;
      SMLoc where = parser.getCurrentLocation();
      if (parser.parseOptionalKeyword(&word, names))
        return success();
      const auto *clause = llvm::find_if(syntax.clauses, [&](const Clause &c) { return c.name == word; });
      if (state.attributes.get(word) || llvm::is_contained(llvm::make_first_range(maps), word))
        return parser.emitError(where) << "clause '" << word << "' stands twice";
      if (parseClause(*clause))
        return failure();
    }
  }

  ParseResult parseClause(const Clause &clause) {
    Builder &builder = parser.getBuilder();
    switch (clause.value) {
    case Clause::Integer: {
      int64_t number;
      if (parser.parseInteger(number))
        return failure();
      state.addAttribute(clause.name, builder.getI64IntegerAttr(number));
      return success();
    }
    case Clause::Float: {
      FloatAttr number;
      return parser.parseAttribute(number, builder.getF32Type(), clause.name, state.attributes);
    }
    case Clause::String: {
      StringAttr text;
      return parser.parseAttribute(text, clause.name, state.attributes);
    }
    case Clause::Dictionary: {
      DictionaryAttr dictionary;
      return parser.parseAttribute(dictionary, clause.name, state.attributes);
    }
    case Clause::Array: {
      Attribute numbers = DenseI64ArrayAttr::parse(parser, {});
      if (!numbers)
        return failure();
      state.addAttribute(clause.name, numbers);
      return success();
    }
    case Clause::Nothing:
      state.addAttribute(clause.name, builder.getUnitAttr());
      return success();
    case Clause::Map:
      return parseMap(maps.emplace_back(clause.name, AffineMap()).second);
    }
    return failure();
  }

  /// `[expressions]`; its operands become positions in the common list.
  ParseResult parseMap(AffineMap &map, OpAsmParser::Delimiter delimiter = OpAsmParser::Delimiter::Square) {
    SmallVector<Operand> operands;
    NamedAttrList ignored;
    AffineMapAttr parsed;
    SMLoc where = parser.getCurrentLocation();
    if (parser.parseAffineMapOfSSAIds(operands, parsed, "map", ignored, delimiter))
      return failure();
    map = parsed.getValue();
    if (map.getNumSymbols())
      return parser.emitError(where) << "a place has no symbols";
    SmallVector<AffineExpr> dims;
    for (const Operand &operand : operands) {
      auto *at = llvm::find_if(
          indices, [&](const Operand &known) { return known.name == operand.name && known.number == operand.number; });
      dims.push_back(getAffineDimExpr(at - indices.begin(), parser.getContext()));
      if (at == indices.end())
        indices.push_back(operand);
    }
    map = map.replaceDimsAndSymbols(dims, {}, indices.size(), 0);
    return success();
  }

  AffineMap widened(AffineMap map) const {
    return AffineMap::get(indices.size(), 0, map.getResults(), parser.getContext());
  }

  OpAsmParser &parser;
  OperationState &state;
  const TaskSyntax &syntax;
  SmallVector<Operand> buffers, descriptor, indices;
  SmallVector<AffineMap> places;
  SmallVector<std::pair<StringRef, AffineMap>> maps;
};

} // namespace

void dmxc::dlir::printPlaces(OpAsmPrinter &printer, AffineMap map, ValueRange indices) {
  printer << "[";
  printer.printAffineMapOfSSAIds(AffineMapAttr::get(map), indices);
  printer << "]";
}

static void printClause(OpAsmPrinter &printer, const Clause &clause, Attribute value, ValueRange indices) {
  printer << " " << clause.name;
  if (clause.value == Clause::Map)
    return printPlaces(printer, cast<AffineMapAttr>(value).getValue(), indices);
  if (clause.value == Clause::Nothing)
    return;
  printer << " ";
  if (auto array = dyn_cast<DenseI64ArrayAttr>(value))
    return array.print(printer);
  printer.printAttributeWithoutType(value);
}

ParseResult dmxc::dlir::parseTask(OpAsmParser &parser, OperationState &state, const TaskSyntax &syntax) {
  return TaskParser(parser, state, syntax).run();
}

void dmxc::dlir::printTask(OpAsmPrinter &printer, const TaskParts &task, const TaskSyntax &syntax) {
  SmallVector<StringRef> done{"places", "operandSegmentSizes"};
  if (syntax.lead == TaskSyntax::Route) {
    printer << " " << task.op->getAttrOfType<StringAttr>("from").getValue() << " -> "
            << task.op->getAttrOfType<StringAttr>("to").getValue();
    done.append({"from", "to"});
  } else if (syntax.lead != TaskSyntax::None) {
    printer << " ";
    printer.printAttributeWithoutType(task.op->getAttr(syntax.leadName));
    done.push_back(syntax.leadName);
    if (auto map = syntax.leadMap.empty() ? AffineMapAttr() : task.op->getAttrOfType<AffineMapAttr>(syntax.leadMap))
      printPlaces(printer, map.getValue(), task.indices);
    done.push_back(syntax.leadMap);
  }
  for (auto [i, buffer] : llvm::enumerate(task.buffers)) {
    StringRef word = i < syntax.places.size() ? StringRef(syntax.places[i]) : StringRef();
    word.consume_front("?");
    printer << " " << word << (word.empty() ? "" : " ") << buffer;
    printPlaces(printer, cast<AffineMapAttr>(task.places[i]).getValue(), task.indices);
  }
  if (task.descriptor)
    printer << " with " << task.descriptor;
  for (const Clause &clause : syntax.clauses) {
    if (Attribute value = task.op->getAttr(clause.name))
      printClause(printer, clause, value, task.indices);
    done.push_back(clause.name);
  }
  printer.printOptionalAttrDict(task.op->getAttrs(), done);
}
