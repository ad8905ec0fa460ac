//===- ConstantData.cpp - bytes of DMIR constants -------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Support/MappedFile.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

#include <map>
#include <mutex>

using namespace mlir;

namespace dmxc::dmir {

std::optional<DType> dtypeOf(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    bool isUnsigned = integer.isUnsigned();
    switch (integer.getWidth()) {
    case 1:
      return DType::Bool;
    case 2:
      return isUnsigned ? DType::U2 : DType::I2;
    case 4:
      return isUnsigned ? DType::U4 : DType::I4;
    case 8:
      return isUnsigned ? DType::U8 : DType::I8;
    case 16:
      return isUnsigned ? DType::U16 : DType::I16;
    case 32:
      return isUnsigned ? DType::U32 : DType::I32;
    case 64:
      return isUnsigned ? DType::U64 : DType::I64;
    default:
      return std::nullopt;
    }
  }
  if (isa<Float16Type>(type))
    return DType::F16;
  if (isa<BFloat16Type>(type))
    return DType::BF16;
  if (isa<Float32Type>(type))
    return DType::F32;
  if (isa<Float64Type>(type))
    return DType::F64;
  if (isa<Float8E4M3FNType>(type))
    return DType::F8E4M3FN;
  if (isa<Float8E4M3FNUZType>(type))
    return DType::F8E4M3FNUZ;
  if (isa<Float8E5M2Type>(type))
    return DType::F8E5M2;
  if (isa<Float8E5M2FNUZType>(type))
    return DType::F8E5M2FNUZ;
  if (isa<Float4E2M1FNType>(type))
    return DType::F4E2M1;
  if (isa<Float8E8M0FNUType>(type))
    return DType::F8E8M0;
  return std::nullopt;
}

Type elementTypeOf(DType type, MLIRContext *context) {
  switch (type) {
  case DType::F16:
    return Float16Type::get(context);
  case DType::BF16:
    return BFloat16Type::get(context);
  case DType::F32:
    return Float32Type::get(context);
  case DType::F64:
    return Float64Type::get(context);
  case DType::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case DType::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case DType::F8E5M2:
    return Float8E5M2Type::get(context);
  case DType::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case DType::F4E2M1:
    return Float4E2M1FNType::get(context);
  case DType::F8E8M0:
    return Float8E8M0FNUType::get(context);
  case DType::Bool:
    return IntegerType::get(context, 1);
  default:
    break;
  }
  return IntegerType::get(context, dtypeBits(type),
                          isUnsignedInt(type) ? IntegerType::Unsigned : IntegerType::Signless);
}

std::optional<HostForm> hostFormOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return std::nullopt;
  Shape shape(tensor.getShape().begin(), tensor.getShape().end());
  if (std::optional<DType> dtype = dtypeOf(tensor.getElementType()))
    return HostForm{*dtype, std::move(shape)};
  if (isBfp32(tensor.getElementType()))
    return HostForm{DType::F32, std::move(shape)};
  std::string error;
  if (std::optional<BlockLayout> layout = blockLayoutOf(tensor, error))
    return HostForm{DType::U8, {layout->bytes()}};
  return std::nullopt;
}

RankedTensorType typeOf(const Tensor &tensor, MLIRContext *context) {
  return RankedTensorType::get(tensor.shape(), elementTypeOf(tensor.dtype(), context));
}

namespace {

/// Files that constants refer to, mapped once while any constant's bytes are in use.
Result<std::shared_ptr<const MappedFile>> mappedFile(const std::string &path) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<const MappedFile>> open;
  std::lock_guard lock(mutex);
  if (auto file = open[path].lock())
    return file;
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (file)
    open[path] = *file;
  return file;
}

Result<Tensor> fileTensor(FileDataAttr attr, DType dtype, Shape shape) {
  Result<std::string> path = DataFiles::of(attr.getContext()).find(attr.getPath().str());
  if (!path)
    return path.takeError();
  Result<std::shared_ptr<const MappedFile>> file = mappedFile(*path);
  if (!file)
    return file.takeError();
  std::span<const std::byte> bytes = (*file)->bytes();
  uint64_t offset = attr.getOffset(), size = attr.getSize();
  uint64_t needed = dtypeBytes(dtype, elementCount(shape));
  if (attr.getOffset() < 0 || attr.getSize() < 0 || offset > bytes.size() || size > bytes.size() - offset ||
      size < needed)
    return modelError("constant bytes [" + std::to_string(offset) + ", +" + std::to_string(size) +
                      ") do not lie inside '" + attr.getPath().str() + "' (" + std::to_string(bytes.size()) +
                      " bytes) or are fewer than the " + std::to_string(needed) + " its type needs");
  return Tensor(dtype, std::move(shape), bytes.data() + offset, *file);
}

Result<Tensor> denseTensor(DenseElementsAttr attr, DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  int64_t i = 0;
  if (isa<FloatType>(attr.getElementType())) {
    for (APFloat value : attr.getValues<APFloat>()) {
      APInt bits = value.bitcastToAPInt();
      if (isPacked(dtype))
        tensor.setDouble(i, value.convertToDouble());
      else
        std::memcpy(tensor.mutableData() + i * dtypeBits(dtype) / 8, bits.getRawData(), dtypeBits(dtype) / 8);
      ++i;
    }
  } else {
    for (APInt value : attr.getValues<APInt>())
      tensor.setInt(i++, value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue());
  }
  return tensor;
}

} // namespace

Result<Tensor> constantTensor(Attribute value) {
  auto typed = dyn_cast<TypedAttr>(value);
  std::optional<HostForm> form = typed ? hostFormOf(typed.getType()) : std::nullopt;
  if (!form)
    return modelError("a constant needs a static tensor type");
  auto [dtype, shape] = std::move(*form);
  if (auto file = dyn_cast<FileDataAttr>(value))
    return fileTensor(file, dtype, std::move(shape));
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() < dtypeBytes(dtype, elementCount(shape)))
      return modelError("constant resource '" + resource.getRawHandle().getKey().str() + "' is missing or short");
    return Tensor(dtype, std::move(shape), reinterpret_cast<const std::byte *>(blob->getData().data()), nullptr);
  }
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return denseTensor(dense, dtype, std::move(shape));
  return modelError("unsupported form of a constant");
}

std::optional<Tensor> constantTensor(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return std::nullopt;
  Result<Tensor> tensor = constantTensor(constant.getValue());
  return tensor ? std::optional<Tensor>(std::move(*tensor)) : std::nullopt;
}

bool isConstant(Value value) { return value.getDefiningOp<ConstantOp>() != nullptr; }

bool isTable(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  bool matrix = type.getRank() == 2 && isa<FloatType>(type.getElementType());
  return matrix && isConstant(value) && llvm::any_of(value.getUsers(), [&](Operation *user) {
           auto gather = dyn_cast<GatherOp>(user);
           return gather && gather.getData() == value && gather.getAxis() == 0;
         });
}

namespace {
TypedAttr denseAttr(const Tensor &tensor, RankedTensorType type) {
  Type element = type.getElementType();
  if (auto floatType = dyn_cast<FloatType>(element)) {
    SmallVector<APFloat> values;
    for (int64_t i = 0; i < tensor.numElements(); ++i) {
      APFloat value(tensor.asDouble(i));
      bool lossy;
      value.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
      values.push_back(value);
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  unsigned width = element.getIntOrFloatBitWidth();
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    values.push_back(APInt(width, static_cast<uint64_t>(tensor.asInt(i)), /*isSigned=*/false, /*implicitTrunc=*/true));
  return DenseElementsAttr::get(type, values);
}
} // namespace

TypedAttr constantAttr(const Tensor &tensor, RankedTensorType type) {
  if (tensor.numElements() <= kInlineElements && !blockFpOf(type))
    return denseAttr(tensor, type);
  // The blob shares the tensor's bytes; the deleter holds its owner.
  auto owner = std::make_shared<Tensor>(tensor);
  ArrayRef<char> bytes(reinterpret_cast<const char *>(tensor.data()), tensor.byteSize());
  AsmResourceBlob blob(
      bytes, /*dataAlignment=*/64, [owner](void *, size_t, size_t) mutable { owner.reset(); },
      /*dataIsMutable=*/false);
  return DenseResourceElementsAttr::get(type, "c", std::move(blob));
}

TypedAttr constantAttr(const Tensor &tensor, MLIRContext *context) {
  return constantAttr(tensor, typeOf(tensor, context));
}

} // namespace dmxc::dmir
