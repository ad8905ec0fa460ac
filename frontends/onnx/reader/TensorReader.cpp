//===- TensorReader.cpp - TensorProto to host tensors ---------------------===//
#include "TensorReader.h"

#include "dmxc/Support/DataFile.h"

#include <charconv>
#include <cstring>
#include <filesystem>

namespace dmxc::onnxfe {
namespace {

struct TypeRow {
  int32_t onnx;
  const char *name;
  std::optional<DType> type;
};
const TypeRow kTypes[] = {
    {1, "FLOAT", DType::F32},
    {2, "UINT8", DType::U8},
    {3, "INT8", DType::I8},
    {4, "UINT16", DType::U16},
    {5, "INT16", DType::I16},
    {6, "INT32", DType::I32},
    {7, "INT64", DType::I64},
    {8, "STRING", std::nullopt},
    {9, "BOOL", DType::Bool},
    {10, "FLOAT16", DType::F16},
    {11, "DOUBLE", DType::F64},
    {12, "UINT32", DType::U32},
    {13, "UINT64", DType::U64},
    {14, "COMPLEX64", std::nullopt},
    {15, "COMPLEX128", std::nullopt},
    {16, "BFLOAT16", DType::BF16},
    {17, "FLOAT8E4M3FN", DType::F8E4M3FN},
    {18, "FLOAT8E4M3FNUZ", DType::F8E4M3FNUZ},
    {19, "FLOAT8E5M2", DType::F8E5M2},
    {20, "FLOAT8E5M2FNUZ", DType::F8E5M2FNUZ},
    {21, "UINT4", DType::U4},
    {22, "INT4", DType::I4},
    {23, "FLOAT4E2M1", DType::F4E2M1},
    {24, "FLOAT8E8M0", DType::F8E8M0},
    {25, "UINT2", DType::U2},
    {26, "INT2", DType::I2},
};

/// No real tensor comes near; keeps every later size computation far from
/// overflow.
constexpr int64_t kMaxElements = int64_t(1) << 46;

Result<Shape> shapeOf(const onnx::TensorProto &proto) {
  Shape shape(proto.dims().begin(), proto.dims().end());
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0)
      return modelError("has the negative dim " + std::to_string(dim));
    if (dim > kMaxElements || (dim && count > kMaxElements / dim))
      return modelError("has more than 2^46 elements");
    count *= dim;
  }
  return shape;
}

template <typename Field> Result<StoredTensor> fromInts(DType type, Shape shape, const Field &field, const char *name) {
  int64_t count = elementCount(shape);
  bool packed = isPacked(type);
  int64_t expected = packed ? static_cast<int64_t>(dtypeBytes(type, count)) : count;
  if (field.size() != expected)
    return modelError("has " + std::to_string(field.size()) + " values in " + name + " but its shape " +
                      shapeString(shape) + " needs " + std::to_string(expected));
  Tensor tensor(type, std::move(shape));
  // Narrow floats and packed types are stored as bit patterns, one int32 each.
  unsigned bits = dtypeBits(type);
  for (int64_t i = 0; i < expected; ++i) {
    uint64_t value = static_cast<uint64_t>(field[i]);
    if (packed || bits == 8)
      tensor.as<uint8_t>()[i] = type == DType::Bool ? value != 0 : static_cast<uint8_t>(value);
    else if (bits == 16)
      tensor.as<uint16_t>()[i] = static_cast<uint16_t>(value);
    else if (bits == 32)
      tensor.as<uint32_t>()[i] = static_cast<uint32_t>(value);
    else
      tensor.as<uint64_t>()[i] = value;
  }
  return StoredTensor{std::move(tensor), "", 0};
}

template <typename Field>
Result<StoredTensor> fromFloats(DType type, Shape shape, const Field &field, const char *name) {
  int64_t count = elementCount(shape);
  if (field.size() != count)
    return modelError("has " + std::to_string(field.size()) + " values in " + name + " but its shape " +
                      shapeString(shape) + " needs " + std::to_string(count));
  Tensor tensor(type, std::move(shape));
  if (count)
    std::memcpy(tensor.mutableData(), field.data(), tensor.byteSize());
  return StoredTensor{std::move(tensor), "", 0};
}

Result<StoredTensor> fromTypedField(const onnx::TensorProto &proto, DType type, Shape shape) {
  switch (type) {
  case DType::F32:
    return fromFloats(type, std::move(shape), proto.float_data(), "float_data");
  case DType::F64:
    return fromFloats(type, std::move(shape), proto.double_data(), "double_data");
  case DType::I64:
    return fromInts(type, std::move(shape), proto.int64_data(), "int64_data");
  case DType::U32:
  case DType::U64:
    return fromInts(type, std::move(shape), proto.uint64_data(), "uint64_data");
  default:
    return fromInts(type, std::move(shape), proto.int32_data(), "int32_data");
  }
}

bool parseNumber(const std::string &text, uint64_t &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace

std::optional<DType> dtypeOfOnnx(int32_t type) {
  for (const TypeRow &row : kTypes)
    if (row.onnx == type)
      return row.type;
  return std::nullopt;
}

std::string onnxTypeName(int32_t type) {
  for (const TypeRow &row : kTypes)
    if (row.onnx == type)
      return row.name;
  return "type " + std::to_string(type);
}

int32_t onnxTypeOf(DType type) {
  for (const TypeRow &row : kTypes)
    if (row.type == type)
      return row.onnx;
  return 0;
}

TensorReader::TensorReader(std::shared_ptr<const MappedFile> model, std::string modelPath,
                           std::vector<std::string> externalDirs)
    : model(std::move(model)), modelPath(std::move(modelPath)), externalDirs(std::move(externalDirs)) {
  if (this->externalDirs.empty())
    this->externalDirs.push_back(std::filesystem::path(this->modelPath).parent_path().string());
}

std::vector<std::string> TensorReader::files() const {
  std::vector<std::string> names;
  for (const auto &[path, file] : external)
    names.push_back(path);
  return names;
}

Result<StoredTensor> TensorReader::fromRaw(DType type, Shape shape, const std::shared_ptr<const MappedFile> &file,
                                           const std::string &path, uint64_t offset, uint64_t size) {
  uint64_t expected = dtypeBytes(type, elementCount(shape));
  if (size != expected)
    return modelError("has " + std::to_string(size) + " bytes of data but " + std::string(dtypeName(type)) +
                      " of shape " + shapeString(shape) + " needs " + std::to_string(expected));
  const std::byte *bytes = file->bytes().data() + offset;
  StoredTensor stored{Tensor(type, shape, bytes, file), path, offset};
  if (type == DType::Bool)
    for (uint64_t i = 0; i < size; ++i)
      if (static_cast<uint8_t>(bytes[i]) > 1) { // a bool must be 0 or 1 from here on
        Tensor clean(type, std::move(shape));
        for (uint64_t j = 0; j < size; ++j)
          clean.as<uint8_t>()[j] = bytes[j] != std::byte(0);
        return StoredTensor{std::move(clean), "", 0};
      }
  return stored;
}

Result<StoredTensor> TensorReader::read(const onnx::TensorProto &proto) {
  std::optional<DType> type = dtypeOfOnnx(proto.data_type());
  if (!type)
    return modelError("has element type " + onnxTypeName(proto.data_type()) + ", which has no tensor meaning here");
  Result<Shape> shape = shapeOf(proto);
  if (!shape)
    return shape.takeError();
  if (proto.has_data_location() && proto.data_location() == onnx::TensorProto::EXTERNAL)
    return readExternal(proto, *type, std::move(*shape));
  if (proto.has_segment() && model) { // set by slimModel only: always inside the file
    uint64_t begin = proto.segment().begin(), end = proto.segment().end();
    return fromRaw(*type, std::move(*shape), model, modelPath, begin, end - begin);
  }
  if (!proto.has_raw_data())
    return fromTypedField(proto, *type, std::move(*shape));
  uint64_t expected = dtypeBytes(*type, elementCount(*shape));
  if (proto.raw_data().size() != expected)
    return modelError("has " + std::to_string(proto.raw_data().size()) + " bytes of raw_data but " +
                      std::string(dtypeName(*type)) + " of shape " + shapeString(*shape) + " needs " +
                      std::to_string(expected));
  Tensor tensor(*type, std::move(*shape));
  std::memcpy(tensor.mutableData(), proto.raw_data().data(), expected);
  if (*type == DType::Bool)
    for (uint64_t i = 0; i < expected; ++i)
      tensor.as<uint8_t>()[i] = tensor.as<uint8_t>()[i] != 0;
  return StoredTensor{std::move(tensor), "", 0};
}

Result<std::string> TensorReader::externalPath(const std::string &location) const {
  namespace fs = std::filesystem;
  std::string where = "its external data '" + location + "'";
  fs::path relative(location);
  if (location.empty() || location.find('\0') != std::string::npos)
    return modelError("has external data without a file name");
  if (relative.is_absolute())
    return modelError("names " + where +
                      " by an absolute path; it must lie in the model's folder "
                      "(or --allow-external-data DIR)");
  for (const fs::path &part : relative)
    if (part == "..")
      return modelError("names " + where +
                        " through '..'; it must lie in the model's folder (or "
                        "--allow-external-data DIR)");
  Result<DataFile> file = findDataFile(location, externalDirs);
  if (!file)
    return ioError("needs " + where + ", but " + file.error().message);
  if (!file->isBelow)
    return modelError("names " + where + ", but a link leads out of '" + externalDirs.front() + "' to '" + file->real +
                      "'");
  return file->path;
}

Result<StoredTensor> TensorReader::readExternal(const onnx::TensorProto &proto, DType type, Shape shape) {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool hasLength = false;
  for (const auto &entry : proto.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" && !parseNumber(entry.value(), offset))
      return modelError("has the external data offset '" + entry.value() + "', which is not a number");
    else if (entry.key() == "length") {
      if (!parseNumber(entry.value(), length))
        return modelError("has the external data length '" + entry.value() + "', which is not a number");
      hasLength = true;
    }
  }
  Result<std::string> path = externalPath(location);
  if (!path)
    return path.takeError();
  std::shared_ptr<const MappedFile> &file = external[*path];
  if (!file) {
    Result<std::shared_ptr<const MappedFile>> opened = MappedFile::open(*path);
    if (!opened) {
      external.erase(*path);
      return opened.takeError();
    }
    file = *opened;
  }
  uint64_t fileSize = file->bytes().size();
  uint64_t need = hasLength ? length : dtypeBytes(type, elementCount(shape));
  if (offset > fileSize || need > fileSize - offset)
    return modelError("needs bytes " + std::to_string(offset) + " to " + std::to_string(offset) + "+" +
                      std::to_string(need) + " of '" + *path + "', which has only " + std::to_string(fileSize));
  return fromRaw(type, std::move(shape), file, *path, offset, need);
}

Result<StoredTensor> TensorReader::read(const onnx::SparseTensorProto &proto) {
  Result<StoredTensor> values = read(proto.values());
  if (!values)
    return values;
  Result<StoredTensor> indices = read(proto.indices());
  if (!indices)
    return indices;
  onnx::TensorProto dense;
  *dense.mutable_dims() = proto.dims();
  Result<Shape> shape = shapeOf(dense);
  if (!shape)
    return shape.takeError();
  const Tensor &at = indices->tensor;
  int64_t rank = shape->size(), count = values->tensor.numElements();
  bool linear = at.rank() == 1 && at.numElements() == count;
  if (at.dtype() != DType::I64 || (!linear && (at.rank() != 2 || at.shape()[0] != count || at.shape()[1] != rank)))
    return modelError("is sparse and its indices do not fit its values");
  Tensor result(values->tensor.dtype(), *shape);
  if (result.byteSize() > (uint64_t(1) << 32) || dtypeBits(result.dtype()) < 8)
    return modelError("is sparse and too large, or of a type too narrow, to be made dense");
  uint64_t width = dtypeBits(result.dtype()) / 8;
  for (int64_t i = 0; i < count; ++i) {
    int64_t flat = linear ? at.asInt(i) : 0;
    for (int64_t axis = 0; !linear && axis < rank; ++axis) {
      int64_t index = at.asInt(i * rank + axis);
      if (index < 0 || index >= (*shape)[axis])
        return modelError("is sparse and has the index " + std::to_string(index) + " outside its shape " +
                          shapeString(*shape));
      flat = flat * (*shape)[axis] + index;
    }
    if (flat < 0 || flat >= result.numElements())
      return modelError("is sparse and has the index " + std::to_string(flat) + " outside its shape " +
                        shapeString(*shape));
    std::memcpy(result.mutableData() + flat * width, values->tensor.data() + i * width, width);
  }
  return StoredTensor{std::move(result), "", 0};
}

} // namespace dmxc::onnxfe
