//===- DeviceSyntax.cpp - text form of a device's tasks -------------------===//
//
// All tasks read alike: buffers with their places, a descriptor, then clauses. One table has the words of each op.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DLIR/DLIR.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace dmxc::dlir;

namespace {

/// What follows a clause's name.
enum class Value : uint8_t { Integer, String, Map, Array, Float, Dictionary, Nothing };

struct Clause {
  StringLiteral name;
  Value value;
};

struct Syntax {
  StringLiteral op;
  StringLiteral lead;             ///< an attribute before the buffers, or ""
  ArrayRef<StringLiteral> places; ///< the word before each buffer; '?' before it: this one and those after may miss
  ArrayRef<Clause> clauses;
};

constexpr StringLiteral kCopyPlaces[] = {"", "to"}, kProductPlaces[] = {"", "x", "to", "?from"},
                        kSimdPlaces[] = {"to", "?a", "?b", "?c"}, kReshapePlaces[] = {"", "to", "?indices"};

constexpr Clause kCopy[] = {{"slices", Value::Integer},
                            {"cores", Value::Integer},
                            {"rows", Value::Map},
                            {"count", Value::Map},
                            {"quads", Value::Map}};
constexpr Clause kMatmul[] = {{"num_imc", Value::Integer},
                              {"ppr_mode", Value::Integer},
                              {"groups", Value::Integer},
                              {"core", Value::Integer},
                              {"slices", Value::Integer},
                              {"activation_kind", Value::String},
                              {"weight_kind", Value::String},
                              {"rows", Value::Map},
                              {"row", Value::Map},
                              {"k0", Value::Map},
                              {"accumulate", Value::Map},
                              {"steps", Value::Map},
                              {"accumulate_steps", Value::Nothing},
                              {"chunks", Value::Integer},
                              {"activation_chunk", Value::Integer},
                              {"activation_step", Value::Integer},
                              {"result_row", Value::Integer},
                              {"result_group", Value::Integer},
                              {"result_step", Value::Integer},
                              {"stash_chunk", Value::Integer},
                              {"stash_group", Value::Integer},
                              {"stash_step", Value::Integer}};
constexpr Clause kConv[] = {{"num_imc", Value::Integer},
                            {"ppr_mode", Value::Integer},
                            {"groups", Value::Integer},
                            {"core", Value::Integer},
                            {"slices", Value::Integer},
                            {"activation_kind", Value::String},
                            {"weight_kind", Value::String},
                            {"rows", Value::Map},
                            {"image_row", Value::Map},
                            {"pixel", Value::Map},
                            {"k0", Value::Map},
                            {"accumulate", Value::Map},
                            {"steps", Value::Map},
                            {"accumulate_steps", Value::Nothing},
                            {"chunks", Value::Integer},
                            {"image_band", Value::Integer},
                            {"image_chunk", Value::Integer},
                            {"image_blocks", Value::Integer},
                            {"pixel_slice", Value::Integer},
                            {"pixels", Value::Integer},
                            {"window", Value::Dictionary},
                            {"result_row", Value::Integer},
                            {"result_group", Value::Integer},
                            {"result_step", Value::Integer},
                            {"stash_chunk", Value::Integer},
                            {"stash_group", Value::Integer},
                            {"stash_step", Value::Integer}};
constexpr Clause kSimd[] = {
    {"dims", Value::Array},      {"to_kind", Value::String},    {"to_strides", Value::Array}, {"a_kind", Value::String},
    {"a_strides", Value::Array}, {"b_kind", Value::String},     {"b_strides", Value::Array},  {"c_kind", Value::String},
    {"c_strides", Value::Array}, {"slices", Value::Integer},    {"inner", Value::Integer},    {"split", Value::Integer},
    {"causal", Value::Integer},  {"count_pad", Value::Nothing}, {"imm0", Value::Float},       {"imm1", Value::Float},
    {"index", Value::Map},       {"count", Value::Map},         {"window", Value::Dictionary}};
constexpr Clause kReshape[] = {{"rule", Value::String},
                               {"slice", Value::Integer},
                               {"pixel", Value::Map},
                               {"count", Value::Map},
                               {"rows", Value::Map},
                               {"columns", Value::Map},
                               {"batch", Value::Map},
                               {"element", Value::Integer},
                               {"source_pitch", Value::Integer},
                               {"target_pitch", Value::Integer},
                               {"source_batch", Value::Integer},
                               {"target_batch", Value::Integer}};
constexpr Clause kSignalRemote[] = {{"token", Value::Integer}, {"quads", Value::Map}, {"amount", Value::Integer}};
constexpr Clause kWaitRemote[] = {{"token", Value::Integer}, {"quad", Value::Map}, {"amount", Value::Integer}};
constexpr Clause kMail[] = {{"quad", Value::Map}, {"first", Value::Integer}, {"amount", Value::Integer}};
constexpr Clause kReset[] = {{"units", Value::Integer}, {"slices", Value::Integer}};
constexpr Clause kNop[] = {{"clocks", Value::Integer}};

constexpr Syntax kTable[] = {
    {DmaCopyOp::getOperationName(), "endpoints", kCopyPlaces, kCopy},
    {DeviceMatmulOp::getOperationName(), "", kProductPlaces, kMatmul},
    {DeviceConvOp::getOperationName(), "", kProductPlaces, kConv},
    {DeviceSimdOp::getOperationName(), "function", kSimdPlaces, kSimd},
    {DeviceReshapeOp::getOperationName(), "function", kReshapePlaces, kReshape},
    {CpuOp::getOperationName(), "function", {}, {}},
    {SignalRemoteOp::getOperationName(), "", {}, kSignalRemote},
    {WaitRemoteOp::getOperationName(), "", {}, kWaitRemote},
    {SendOp::getOperationName(), "", {}, kMail},
    {ReceiveOp::getOperationName(), "", {}, kMail},
    {ResetOp::getOperationName(), "", {}, kReset},
    {NopOp::getOperationName(), "", {}, kNop},
};

const Syntax &syntaxOf(StringRef name) {
  return *llvm::find_if(kTable, [&](const Syntax &s) { return s.op == name; });
}

using Operand = OpAsmParser::UnresolvedOperand;

/// Parses one task; all its maps get the same list of indices.
class TaskParser {
public:
  TaskParser(OpAsmParser &parser, OperationState &state)
      : parser(parser), state(state), syntax(syntaxOf(state.name.getStringRef())) {}

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
                                                                            static_cast<int32_t>(config.size()),
                                                                            static_cast<int32_t>(indices.size())}));
    MLIRContext *context = parser.getContext();
    return failure(parser.resolveOperands(buffers, MemoryType::get(context), state.operands) ||
                   parser.resolveOperands(config, ConfigType::get(context), state.operands) ||
                   parser.resolveOperands(indices, builder.getIndexType(), state.operands));
  }

private:
  ParseResult parseLead() {
    if (syntax.lead.empty())
      return success();
    if (syntax.op == CpuOp::getOperationName()) {
      SymbolRefAttr symbol;
      return parser.parseAttribute(symbol, "function", state.attributes);
    }
    if (syntax.op != DmaCopyOp::getOperationName()) {
      StringAttr text;
      return parser.parseAttribute(text, syntax.lead, state.attributes);
    }
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    state.addAttribute(syntax.lead, parser.getBuilder().getStringAttr(word));
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
      return parser.parseOperand(config.emplace_back());
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
    case Value::Integer: {
      int64_t number;
      if (parser.parseInteger(number))
        return failure();
      state.addAttribute(clause.name, builder.getI64IntegerAttr(number));
      return success();
    }
    case Value::Float: {
      FloatAttr number;
      return parser.parseAttribute(number, builder.getF32Type(), clause.name, state.attributes);
    }
    case Value::String: {
      StringAttr text;
      return parser.parseAttribute(text, clause.name, state.attributes);
    }
    case Value::Dictionary: {
      DictionaryAttr dictionary;
      return parser.parseAttribute(dictionary, clause.name, state.attributes);
    }
    case Value::Array:
      state.addAttribute(clause.name, DenseI64ArrayAttr::parse(parser, {}));
      return success(state.attributes.get(clause.name) != nullptr);
    case Value::Nothing:
      state.addAttribute(clause.name, builder.getUnitAttr());
      return success();
    case Value::Map:
      return parseMap(maps.emplace_back(clause.name, AffineMap()).second);
    }
    return failure();
  }

  /// `[expressions]`; its operands become positions in the common list.
  ParseResult parseMap(AffineMap &map) {
    SmallVector<Operand> operands;
    NamedAttrList ignored;
    AffineMapAttr parsed;
    SMLoc where = parser.getCurrentLocation();
    if (parser.parseAffineMapOfSSAIds(operands, parsed, "map", ignored, OpAsmParser::Delimiter::Square))
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
  const Syntax &syntax;
  SmallVector<Operand> buffers, config, indices;
  SmallVector<AffineMap> places;
  SmallVector<std::pair<StringRef, AffineMap>> maps;
};

void printMap(OpAsmPrinter &printer, AffineMap map, ValueRange indices) {
  printer << "[";
  printer.printAffineMapOfSSAIds(AffineMapAttr::get(map), indices);
  printer << "]";
}

void printClause(OpAsmPrinter &printer, const Clause &clause, Attribute value, ValueRange indices) {
  printer << " " << clause.name;
  if (clause.value == Value::Map)
    return printMap(printer, cast<AffineMapAttr>(value).getValue(), indices);
  if (clause.value == Value::Nothing)
    return;
  printer << " ";
  if (auto array = dyn_cast<DenseI64ArrayAttr>(value))
    return array.print(printer);
  printer.printAttributeWithoutType(value);
}

ParseResult parseTask(OpAsmParser &parser, OperationState &state) { return TaskParser(parser, state).run(); }

template <typename OpTy> void printTask(OpTy op, OpAsmPrinter &printer) {
  const Syntax &syntax = syntaxOf(op->getName().getStringRef());
  SmallVector<StringRef> done{"places", "operandSegmentSizes"};
  if (!syntax.lead.empty()) {
    printer << " ";
    Attribute lead = op->getAttr(syntax.lead);
    if (syntax.op == DmaCopyOp::getOperationName())
      printer << cast<StringAttr>(lead).getValue();
    else
      printer.printAttributeWithoutType(lead);
    done.push_back(syntax.lead);
  }
  for (auto [i, buffer] : llvm::enumerate(op.getBuffers())) {
    StringRef word = syntax.places[i];
    word.consume_front("?");
    printer << " " << word << (word.empty() ? "" : " ") << buffer;
    printMap(printer, cast<AffineMapAttr>(op.getPlaces()[i]).getValue(), op.getIndices());
  }
  if (op.getConfig())
    printer << " with " << op.getConfig();
  for (const Clause &clause : syntax.clauses) {
    if (Attribute value = op->getAttr(clause.name))
      printClause(printer, clause, value, op.getIndices());
    done.push_back(clause.name);
  }
  printer.printOptionalAttrDict(op->getAttrs(), done);
}

} // namespace

#define DMXC_TASK(OP)                                                                                                  \
  ParseResult OP::parse(OpAsmParser &parser, OperationState &state) { return parseTask(parser, state); }               \
  void OP::print(OpAsmPrinter &printer) { printTask(*this, printer); }
DMXC_TASK(DmaCopyOp)
DMXC_TASK(DeviceMatmulOp)
DMXC_TASK(DeviceConvOp)
DMXC_TASK(DeviceSimdOp)
DMXC_TASK(DeviceReshapeOp)
DMXC_TASK(CpuOp)
DMXC_TASK(SignalRemoteOp)
DMXC_TASK(WaitRemoteOp)
DMXC_TASK(SendOp)
DMXC_TASK(ReceiveOp)
DMXC_TASK(ResetOp)
DMXC_TASK(NopOp)
#undef DMXC_TASK

//===--- graphs and loops -----------------------------------------------------------===//

static ParseResult parseBody(OpAsmParser &parser, OperationState &state, OpAsmParser::Argument argument) {
  Region *body = state.addRegion();
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) || parser.parseRegion(*body, argument))
    return failure();
  if (body->empty()) {
    body->emplaceBlock().addArgument(argument.type, parser.getEncodedSourceLoc(parser.getNameLoc()));
  }
  return success();
}

ParseResult ScheduledGraphOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  int64_t quads;
  OpAsmParser::Argument quad;
  quad.type = parser.getBuilder().getIndexType();
  if (parser.parseAttribute(name, "name", state.attributes) || parser.parseKeyword("quads") ||
      parser.parseInteger(quads) || parser.parseLParen() || parser.parseArgument(quad) || parser.parseRParen())
    return failure();
  state.addAttribute("quads", parser.getBuilder().getI64IntegerAttr(quads));
  return parseBody(parser, state, quad);
}

void ScheduledGraphOp::print(OpAsmPrinter &printer) {
  printer << " " << getNameAttr() << " quads " << static_cast<int64_t>(getQuads()) << " (" << getBody().getArgument(0)
          << ")";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"name", "quads"});
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
  printMap(printer, getTimes(), getIndices());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"times"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
