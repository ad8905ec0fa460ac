//===- TextDialect.cpp - reads torch-dialect text -------------------------===//
#include "TextDialect.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;

MLIR_DEFINE_EXPLICIT_TYPE_ID(dmxc::torchfe::TextDialect)

namespace dmxc::torchfe {
namespace {

using Operands = SmallVector<OpAsmParser::UnresolvedOperand>;

/// `: T, T -> R, R`, each side in parentheses or not; either may be missing.
ParseResult parseTypes(OpAsmParser &parser, SmallVector<Type> &from, SmallVector<Type> &to) {
  auto list = [&](SmallVector<Type> &types) -> ParseResult {
    if (succeeded(parser.parseOptionalLParen())) {
      if (succeeded(parser.parseOptionalRParen()))
        return success();
      return failure(parser.parseTypeList(types) || parser.parseRParen());
    }
    return parser.parseTypeList(types);
  };
  if (failed(parser.parseOptionalColon()))
    return success();
  if (succeeded(parser.parseOptionalArrow())) // an operator without operands
    return list(to);
  if (failed(list(from)))
    return failure();
  if (succeeded(parser.parseOptionalArrow()) || succeeded(parser.parseOptionalKeyword("to")))
    return list(to);
  return success();
}

/// One type alone is that of the result.
ParseResult finish(OpAsmParser &parser, OperationState &state, const Operands &operands) {
  SmallVector<Type> from, to;
  SMLoc where = parser.getCurrentLocation();
  if (failed(parser.parseOptionalAttrDict(state.attributes)) || failed(parseTypes(parser, from, to)))
    return failure();
  if (operands.empty() && to.empty())
    std::swap(from, to);
  state.addTypes(to);
  return parser.resolveOperands(operands, from, where, state.operands);
}

/// torch.constant.int 1, torch.constant.float 1.0e+00, ...
ParseResult parseConstant(OpAsmParser &parser, OperationState &state) {
  StringRef kind = state.name.getStringRef();
  kind.consume_front("torch.constant.");
  MLIRContext *context = parser.getContext();
  Attribute value = UnitAttr::get(context);
  if (kind == "int") {
    int64_t number;
    if (failed(parser.parseInteger(number)))
      return failure();
    value = IntegerAttr::get(IntegerType::get(context, 64), number);
  } else if (kind == "float") {
    double number;
    if (failed(parser.parseFloat(number)))
      return failure();
    value = FloatAttr::get(Float64Type::get(context), number);
  } else if (kind == "bool") {
    bool yes = succeeded(parser.parseOptionalKeyword("true"));
    if (!yes && failed(parser.parseKeyword("false")))
      return failure();
    value = BoolAttr::get(context, yes);
  } else if (kind == "str" || kind == "device") {
    std::string text;
    if (failed(parser.parseString(&text)))
      return failure();
    value = StringAttr::get(context, text);
  } else if (kind != "none") {
    return parser.emitError(parser.getNameLoc(), "the constant torch.constant.") << kind << " is not known";
  }
  state.addAttribute(kTextValue, value);
  SmallVector<Type> from, to;
  if (failed(parser.parseOptionalAttrDict(state.attributes)) || failed(parseTypes(parser, from, to)))
    return failure();
  state.addTypes(OpaqueType::get(StringAttr::get(context, "torch"), kind));
  return success();
}

/// torch.vtensor.literal(dense<...> : tensor<...>) : !torch.vtensor<...>
ParseResult parseLiteral(OpAsmParser &parser, OperationState &state) {
  Attribute value;
  if (parser.parseLParen() || parser.parseAttribute(value) || parser.parseRParen())
    return failure();
  state.addAttribute(kTextValue, value);
  return finish(parser, state, {});
}

/// torch.operator "onnx.Conv"(%a, %b) {...} : (T, T) -> R
ParseResult parseOperator(OpAsmParser &parser, OperationState &state) {
  std::string callee;
  Operands operands;
  if (parser.parseString(&callee) || parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren))
    return failure();
  state.addAttribute(kTextCallee, StringAttr::get(parser.getContext(), callee));
  return finish(parser, state, operands);
}

/// torch.symbolic_int "s77" {min_val = 2, max_val = 64} : !torch.int
ParseResult parseSymbol(OpAsmParser &parser, OperationState &state) {
  std::string name;
  if (parser.parseString(&name))
    return failure();
  state.addAttribute(kTextValue, StringAttr::get(parser.getContext(), name));
  return finish(parser, state, {});
}

/// torch.bind_symbolic_shape %x, [%s], affine_map<()[s0] -> (s0, 8)> : T
ParseResult parseBinding(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand tensor;
  Operands symbols;
  Attribute map;
  Type type;
  if (parser.parseOperand(tensor) || parser.parseComma() ||
      parser.parseOperandList(symbols, OpAsmParser::Delimiter::Square) || parser.parseComma() ||
      parser.parseAttribute(map) || parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(type))
    return failure();
  state.addAttribute(kTextValue, map);
  Type symbol = OpaqueType::get(StringAttr::get(parser.getContext(), "torch"), "int");
  return failure(parser.resolveOperand(tensor, type, state.operands) ||
                 parser.resolveOperands(symbols, symbol, state.operands));
}

/// torch.aten.add.Tensor %a, %b, %c : T, T, U -> R
ParseResult parseCall(OpAsmParser &parser, OperationState &state) {
  Operands operands;
  std::string text;
  if (failed(parser.parseOperandList(operands)))
    return failure();
  if (succeeded(parser.parseOptionalComma()) && failed(parser.parseString(&text))) // the message of an assertion
    return failure();
  return finish(parser, state, operands);
}

} // namespace

TextDialect::TextDialect(MLIRContext *context) : Dialect(getDialectNamespace(), context, TypeID::get<TextDialect>()) {
  allowUnknownOperations();
  allowUnknownTypes();
}

Type TextDialect::parseType(DialectAsmParser &parser) const {
  return OpaqueType::get(StringAttr::get(getContext(), getNamespace()), parser.getFullSymbolSpec());
}

void TextDialect::printType(Type type, DialectAsmPrinter &printer) const {
  printer << cast<OpaqueType>(type).getTypeData();
}

std::optional<Dialect::ParseOpHook> TextDialect::getParseOperationHook(StringRef name) const {
  StringRef op = name;
  op.consume_front("torch.");
  if (op.starts_with("constant."))
    return parseConstant;
  if (op == "vtensor.literal" || op == "tensor.literal")
    return parseLiteral;
  if (op == "operator")
    return parseOperator;
  if (op == "symbolic_int")
    return parseSymbol;
  if (op == "bind_symbolic_shape")
    return parseBinding;
  return parseCall;
}

} // namespace dmxc::torchfe
