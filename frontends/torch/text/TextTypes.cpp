//===- TextTypes.cpp - types and literals of torch-dialect text -----------===//
#include "TextTypes.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include <cstring>

using namespace mlir;

namespace dmxc::torchfe {

static std::optional<DType> elementNamed(StringRef name) {
  static const std::pair<const char *, DType> table[] = {{"i1", DType::Bool},      {"si8", DType::I8},
                                                         {"ui8", DType::U8},       {"si16", DType::I16},
                                                         {"ui16", DType::U16},     {"si32", DType::I32},
                                                         {"ui32", DType::U32},     {"si64", DType::I64},
                                                         {"ui64", DType::U64},     {"f16", DType::F16},
                                                         {"bf16", DType::BF16},    {"f32", DType::F32},
                                                         {"f64", DType::F64},      {"f8E4M3FN", DType::F8E4M3FN},
                                                         {"f8E5M2", DType::F8E5M2}};
  for (const auto &[known, type] : table)
    if (name == known)
      return type;
  return std::nullopt;
}

std::optional<TensorType> tensorType(Type type) {
  auto opaque = dyn_cast<OpaqueType>(type);
  StringRef text = opaque ? opaque.getTypeData() : "";
  if (!text.consume_front("vtensor<[") || !text.consume_back(">"))
    return std::nullopt;
  auto [shape, element] = text.split(']');
  std::optional<DType> dtype = element.consume_front(",") ? elementNamed(element.trim()) : std::nullopt;
  if (!dtype)
    return std::nullopt;
  TensorType result{*dtype, {}};
  SmallVector<StringRef> parts;
  if (!shape.trim().empty())
    shape.split(parts, ',');
  for (StringRef part : parts) {
    int64_t dim = -1;
    if (part.trim() != "?" && part.trim().getAsInteger(10, dim))
      return std::nullopt;
    result.dims.push_back(dim);
  }
  return result;
}

std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

// Signed integers are plain ones here.
Tensor literalOf(ElementsAttr literal) {
  ShapedType type = literal.getShapedType();
  std::string name = typeText(type.getElementType());
  std::optional<DType> dtype = elementNamed(name);
  if (!dtype)
    dtype = dmir::dtypeOf(type.getElementType());
  if (!dtype)
    fail("op-dtype", "a literal's element type " + name + " has no tensor meaning here");
  Shape shape(type.getShape().begin(), type.getShape().end());
  Tensor tensor(*dtype, shape);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(literal)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() < tensor.byteSize())
      fail("torch-tensor",
           "the resource '" + resource.getRawHandle().getKey().str() + "' has too few bytes or is missing");
    std::memcpy(tensor.mutableData(), blob->getData().data(), tensor.byteSize());
    return tensor;
  }
  auto dense = dyn_cast<DenseElementsAttr>(literal);
  if (!dense)
    fail("torch-tensor", "a literal of an unknown form");
  int64_t i = 0;
  if (isa<FloatType>(type.getElementType()))
    for (APFloat value : dense.getValues<APFloat>()) {
      bool inexact;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      tensor.setDouble(i++, value.convertToDouble());
    }
  else
    for (const APInt &value : dense.getValues<APInt>())
      tensor.setInt(i++, isUnsignedInt(*dtype) || *dtype == DType::Bool ? static_cast<int64_t>(value.getZExtValue())
                                                                        : value.getSExtValue());
  return tensor;
}

std::optional<Dim> dimOf(AffineExpr expression, ArrayRef<Dim> symbols) {
  if (auto number = dyn_cast<AffineConstantExpr>(expression))
    return Dim(number.getValue());
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expression))
    return symbol.getPosition() < symbols.size() ? std::optional<Dim>(symbols[symbol.getPosition()]) : std::nullopt;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expression);
  if (!binary)
    return std::nullopt;
  std::optional<Dim> a = dimOf(binary.getLHS(), symbols), b = dimOf(binary.getRHS(), symbols);
  if (!a || !b)
    return std::nullopt;
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return *a + *b;
  case AffineExprKind::Mul:
    return *a * *b;
  case AffineExprKind::FloorDiv:
    return Dim::floorDiv(*a, *b);
  case AffineExprKind::CeilDiv:
    return Dim::ceilDiv(*a, *b);
  case AffineExprKind::Mod:
    return Dim::mod(*a, *b);
  default:
    return std::nullopt;
  }
}

} // namespace dmxc::torchfe
