//===- Syntax.cpp - how dmxc's ops of schedules are written ---------------===//
#include "dmxc/Dialect/Transform/Transform.h"

#include "dmxc/Support/Diagnostic.h"

#include "mlir/Dialect/Affine/TransformOps/AffineTransformOps.h"
#include "mlir/Dialect/Bufferization/TransformOps/BufferizationTransformOps.h"
#include "mlir/Dialect/Func/TransformOps/FuncTransformOps.h"
#include "mlir/Dialect/Linalg/TransformOps/DialectExtension.h"
#include "mlir/Dialect/MemRef/TransformOps/MemRefTransformOps.h"
#include "mlir/Dialect/SCF/TransformOps/SCFTransformOps.h"
#include "mlir/Dialect/Transform/DebugExtension/DebugExtension.h"
#include "mlir/Dialect/Transform/LoopExtension/LoopExtension.h"
#include "mlir/Dialect/Transform/TuneExtension/TuneExtension.h"
#include "mlir/Dialect/Vector/TransformOps/VectorTransformOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc::transform;

/// A number, or a parameter.
static ParseResult parseCount(OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &parameter,
                              IntegerAttr &number) {
  OpAsmParser::UnresolvedOperand operand;
  if (OptionalParseResult parsed = parser.parseOptionalOperand(operand); parsed.has_value()) {
    parameter = operand;
    return *parsed;
  }
  int64_t value = 0;
  if (parser.parseInteger(value))
    return failure();
  number = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printCount(OpAsmPrinter &p, Operation *, Value parameter, IntegerAttr number) {
  if (parameter)
    p << parameter;
  else if (number)
    p << number.getInt();
}

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function" // the parser of the dialect's own types
#define GET_TYPEDEF_CLASSES
#include "dmxc/Dialect/Transform/TransformTypes.cpp.inc"
#pragma clang diagnostic pop

#define GET_OP_CLASSES
#include "dmxc/Dialect/Transform/TransformOps.cpp.inc"

#ifndef NDEBUG
/// What the header declares where assertions are on, and an MLIR that was built without them lacks.
__attribute__((weak)) void mlir::transform::detail::checkImplementsTransformOpInterface(StringRef, MLIRContext *) {}
__attribute__((weak)) void mlir::transform::detail::checkImplementsTransformHandleTypeInterface(TypeID, MLIRContext *) {
}
#endif

namespace {

class DmxExtension : public mlir::transform::TransformDialectExtension<DmxExtension> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DmxExtension)
  void init() {
    declareDependentDialect<dmxc::dmir::DMIRDialect>();
    registerTransformOps<
#define GET_OP_LIST
#include "dmxc/Dialect/Transform/TransformOps.cpp.inc"
        >();
    registerTypes<
#define GET_TYPEDEF_LIST
#include "dmxc/Dialect/Transform/TransformTypes.cpp.inc"
        >();
  }
};

using Operands = SmallVector<OpAsmParser::UnresolvedOperand>;

/// ": types of the operands", which are as many.
ParseResult parseOperandTypes(OpAsmParser &parser, OperationState &result, const Operands &operands) {
  SmallVector<Type> types;
  SMLoc place = parser.getCurrentLocation();
  return failure(parser.parseColonTypeList(types) || parser.resolveOperands(operands, types, place, result.operands));
}

/// "-> type".
ParseResult parseResultType(OpAsmParser &parser, OperationState &result) {
  Type type;
  if (parser.parseArrow() || parser.parseType(type))
    return failure();
  result.addTypes(type);
  return success();
}

/// A number, or a parameter, which is added to `operands`.
ParseResult parseBound(OpAsmParser &parser, SmallVectorImpl<int64_t> &bounds, Operands &operands) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult parsed = parser.parseOptionalOperand(operand);
  if (parsed.has_value()) {
    operands.push_back(operand);
    bounds.push_back(ParamOp::kOperand);
    return *parsed;
  }
  SMLoc place = parser.getCurrentLocation();
  int64_t number = 0;
  if (parser.parseInteger(number))
    return failure();
  if (number == ParamOp::kOperand)
    return parser.emitError(place, "is too small");
  bounds.push_back(number);
  return success();
}

/// The default of a parameter: a number has no type here, where a colon begins those of the operands.
ParseResult parseValue(OpAsmParser &parser, OperationState &result) {
  int64_t number = 0;
  if (OptionalParseResult parsed = parser.parseOptionalInteger(number); parsed.has_value()) {
    result.addAttribute("preferred", parser.getBuilder().getI64IntegerAttr(number));
    return *parsed;
  }
  Attribute value;
  return parser.parseAttribute(value, "preferred", result.attributes);
}

} // namespace

void dmxc::transform::registerTransformExtension(DialectRegistry &registry) {
  registry.insert<mlir::transform::TransformDialect>();
  registry.addExtensions<DmxExtension>();
  mlir::transform::registerDebugExtension(registry);
  mlir::transform::registerLoopExtension(registry);
  mlir::transform::registerTuneExtension(registry);
  linalg::registerTransformDialectExtension(registry);
  scf::registerTransformDialectExtension(registry);
  affine::registerTransformDialectExtension(registry);
  vector::registerTransformDialectExtension(registry);
  func::registerTransformDialectExtension(registry);
  memref::registerTransformDialectExtension(registry);
  bufferization::registerTransformDialectExtension(registry);
}

std::string dmxc::transform::nearName(StringRef text, ArrayRef<std::string> names) {
  std::string near = nearestName(text.str(), std::vector<std::string>(names.begin(), names.end()));
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

ScheduleHost::~ScheduleHost() = default;

//===----------------------------------------------------------------------===//
// match
//===----------------------------------------------------------------------===//

ParseResult MatchOp::parse(OpAsmParser &parser, OperationState &result) {
  NamedAttrList filter;
  Operands root(1);
  Builder &b = parser.getBuilder();
  if (parser.parseOptionalAttrDict(filter) || parser.parseKeyword("in") || parser.parseOperand(root[0]))
    return failure();
  result.addAttribute("filter", filter.getDictionary(b.getContext()));
  if (succeeded(parser.parseOptionalKeyword("expect"))) {
    int64_t count = 0;
    if (succeeded(parser.parseOptionalKeyword("any")))
      result.addAttribute("mayBeNone", b.getUnitAttr());
    else if (parser.parseInteger(count))
      return failure();
    else
      result.addAttribute("expected", b.getI64IntegerAttr(count));
  }
  return failure(parser.parseOptionalAttrDict(result.attributes) || parseOperandTypes(parser, result, root) ||
                 parseResultType(parser, result));
}

void MatchOp::print(OpAsmPrinter &p) {
  p << " " << getFilter() << " in " << getRoot();
  if (getMayBeNone())
    p << " expect any";
  if (auto expected = getExpected())
    p << " expect " << *expected;
  p.printOptionalAttrDict((*this)->getAttrs(), {"filter", "expected", "mayBeNone"});
  p << " : " << getRoot().getType() << " -> " << getMatched().getType();
}

//===----------------------------------------------------------------------===//
// decide
//===----------------------------------------------------------------------===//

ParseResult DecideOp::parse(OpAsmParser &parser, OperationState &result) {
  NamedAttrList decisions;
  Operands operands(1);
  SmallVector<Attribute> knobs;
  Builder &b = parser.getBuilder();
  if (parser.parseOperand(operands[0]) || parser.parseOptionalAttrDict(decisions))
    return failure();
  auto parseKnob = [&]() -> ParseResult {
    std::string name;
    if (parser.parseKeywordOrString(&name) || parser.parseEqual() || parser.parseOperand(operands.emplace_back()))
      return failure();
    knobs.push_back(b.getStringAttr(name));
    return success();
  };
  if (succeeded(parser.parseOptionalKeyword("with")) && parser.parseCommaSeparatedList(parseKnob))
    return failure();
  result.addAttribute("decisions", decisions.getDictionary(b.getContext()));
  result.addAttribute("knobs", b.getArrayAttr(knobs));
  return parseOperandTypes(parser, result, operands);
}

void DecideOp::print(OpAsmPrinter &p) {
  p << " " << getTarget();
  if (!getDecisions().empty())
    p << " " << getDecisions();
  llvm::interleaveComma(llvm::zip_equal(getKnobs().getAsValueRange<StringAttr>(), getParams()),
                        getParams().empty() ? p : p << " with ", [&](auto knob) {
                          p.printKeywordOrString(std::get<0>(knob));
                          p << " = " << std::get<1>(knob);
                        });
  p << " : " << getOperation()->getOperandTypes();
}

//===----------------------------------------------------------------------===//
// param and dim
//===----------------------------------------------------------------------===//

ParseResult ParamOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  StringAttr name;
  StringRef form;
  SmallVector<int64_t> bounds;
  Operands operands;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseAttribute(name) || parser.parseKeyword(&form))
    return failure();
  if (form == "one_of") {
    ArrayAttr values;
    if (parser.parseAttribute(values, "values", result.attributes))
      return failure();
  } else if (form == "range") {
    if (parseBound(parser, bounds, operands) || parser.parseKeyword("to") || parseBound(parser, bounds, operands))
      return failure();
    if (succeeded(parser.parseOptionalKeyword("step")) && parseBound(parser, bounds, operands))
      return failure();
  } else if (form == "divides") {
    if (parseBound(parser, bounds, operands))
      return failure();
  } else {
    return parser.emitError(place, "'") << form << "' is no domain; there are one_of, range and divides"
                                        << nearName(form, {"one_of", "range", "divides"});
  }
  if (succeeded(parser.parseOptionalKeyword("default")) && parseValue(parser, result))
    return failure();
  result.addAttribute("name", name);
  result.addAttribute("form", b.getStringAttr(form));
  result.addAttribute("bounds", b.getDenseI64ArrayAttr(bounds));
  SmallVector<Type> types;
  if (succeeded(parser.parseOptionalColon()) && parser.parseTypeList(types))
    return failure();
  if (parseResultType(parser, result))
    return failure();
  if (types.empty())
    types.assign(operands.size(), result.types.front());
  return parser.resolveOperands(operands, types, place, result.operands);
}

void ParamOp::print(OpAsmPrinter &p) {
  p << " " << getNameAttr() << " " << getForm();
  auto operand = getOperation()->operand_begin();
  auto bound = [&](size_t i) {
    if (int64_t value = getBounds()[i]; value != kOperand)
      p << " " << value;
    else
      p << " " << *operand++;
  };
  if (getValues())
    p << " " << *getValues();
  for (size_t i = 0; i < getBounds().size(); ++i) {
    if (getForm() == "range" && i)
      p << (i == 1 ? " to" : " step");
    bound(i);
  }
  if (auto preferred = getPreferred())
    p << " default " << valueText(*preferred);
  if (llvm::any_of(getOperation()->getOperandTypes(), [&](Type type) { return type != getValue().getType(); }))
    p << " : " << getOperation()->getOperandTypes();
  p << " -> " << getValue().getType();
}

ParseResult DimOp::parse(OpAsmParser &parser, OperationState &result) {
  Operands target(1);
  int64_t operand = 0, dim = 0;
  Builder &b = parser.getBuilder();
  if (parser.parseOperand(target[0]))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("operand"))) {
    if (parser.parseInteger(operand))
      return failure();
    result.addAttribute("ofOperand", b.getI64IntegerAttr(operand));
  }
  if (parser.parseLSquare() || parser.parseInteger(dim) || parser.parseRSquare())
    return failure();
  result.addAttribute("dim", b.getI64IntegerAttr(dim));
  return failure(parseOperandTypes(parser, result, target) || parseResultType(parser, result));
}

void DimOp::print(OpAsmPrinter &p) {
  p << " " << getTarget();
  if (auto operand = getOfOperand())
    p << " operand " << *operand << " ";
  p << "[" << getDimAttr().getInt() << "] : " << getTarget().getType() << " -> " << getExtent().getType();
}
