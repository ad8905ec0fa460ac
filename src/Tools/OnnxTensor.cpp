//===- OnnxTensor.cpp - tensors in ONNX TensorProto files -----------------===//
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Tools/TensorFile.h"

#include "schemas/Size.h"

#include <array>
#include <cstring>
#include <onnx/onnx-data_pb.h>
#include <onnx/onnx_pb.h>

namespace dmxc::tools {

namespace {

struct TypeCode {
  DType type;
  int code;
};
// onnx.proto, TensorProto.DataType; numbers because libonnx 1.12 lacks the
// newer names.
constexpr TypeCode typeCodes[] = {
    {DType::F32, 1},     {DType::U8, 2},          {DType::I8, 3},    {DType::U16, 4},       {DType::I16, 5},
    {DType::I32, 6},     {DType::I64, 7},         {DType::Bool, 9},  {DType::F16, 10},      {DType::F64, 11},
    {DType::U32, 12},    {DType::U64, 13},        {DType::BF16, 16}, {DType::F8E4M3FN, 17}, {DType::F8E4M3FNUZ, 18},
    {DType::F8E5M2, 19}, {DType::F8E5M2FNUZ, 20}, {DType::U4, 21},   {DType::I4, 22},       {DType::F4E2M1, 23},
    {DType::F8E8M0, 24}, {DType::U2, 25},         {DType::I2, 26},
};

Error bad(const std::string &path, const std::string &what) { return ioError("cannot read '" + path + "': " + what); }

/// Copies the values of a typed field, each cut to the element's width. Packed
/// types come one byte (two or four elements) a value.
template <typename T, typename Field> bool copyTyped(const Field &field, Tensor &tensor) {
  if (static_cast<uint64_t>(field.size()) * sizeof(T) != tensor.byteSize())
    return false;
  T *out = tensor.as<T>();
  for (auto value : field)
    *out++ = static_cast<T>(value);
  return true;
}

bool copyTypedField(const onnx::TensorProto &proto, Tensor &tensor) {
  switch (tensor.dtype()) {
  case DType::F32:
    return copyTyped<float>(proto.float_data(), tensor);
  case DType::F64:
    return copyTyped<double>(proto.double_data(), tensor);
  case DType::I64:
    return copyTyped<int64_t>(proto.int64_data(), tensor);
  case DType::U32:
    return copyTyped<uint32_t>(proto.uint64_data(), tensor);
  case DType::U64:
    return copyTyped<uint64_t>(proto.uint64_data(), tensor);
  case DType::I32:
    return copyTyped<int32_t>(proto.int32_data(), tensor);
  default:
    break;
  }
  return dtypeBits(tensor.dtype()) == 16 ? copyTyped<uint16_t>(proto.int32_data(), tensor)
                                         : copyTyped<uint8_t>(proto.int32_data(), tensor);
}

/// A sequence or an optional: they have the same field numbers, and a tensor has fields that they have not.
std::optional<onnx::SequenceProto> containerIn(const MappedFile &file) {
  onnx::SequenceProto sequence;
  bool is = !file.bytes().empty() &&
            sequence.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size())) &&
            sequence.elem_type() >= 0 && sequence.elem_type() <= 5 && !sequence.sparse_tensor_values_size() &&
            sequence.GetReflection()->GetUnknownFields(sequence).empty();
  return is ? std::optional(std::move(sequence)) : std::nullopt;
}

std::string unusableType(int code) {
  if (code == 8)
    return "it holds strings; bundles take numbers only";
  if (code == 14 || code == 15)
    return "it holds complex numbers, which bundles do not take";
  return "its data type has the unknown code " + std::to_string(code);
}

Result<NamedTensor> decode(const std::string &path, onnx::TensorProto &proto) {
  std::optional<DType> type = dtypeFromOnnxCode(proto.data_type());
  if (!type)
    return bad(path, unusableType(proto.data_type()));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return bad(path, "its data lies in another file; embed it");
  Shape shape(proto.dims().begin(), proto.dims().end());
  dmx::Size all = 1;
  for (int64_t dim : shape)
    all *= dim;
  if (!all.fits(uint64_t(1) << 40))
    return bad(path, "its shape " + shapeString(shape) + " is impossible");
  uint64_t count = all.value();
  std::string where = std::string(dtypeName(*type)) + " " + shapeString(shape);
  if (proto.has_raw_data()) {
    if (proto.raw_data().size() != dtypeBytes(*type, count))
      return bad(path, where + " needs " + std::to_string(dtypeBytes(*type, count)) + " bytes, raw_data has " +
                           std::to_string(proto.raw_data().size()));
    auto held = std::make_shared<std::string>(std::move(*proto.mutable_raw_data()));
    // A short string may lie anywhere; elements must be aligned.
    if (reinterpret_cast<uintptr_t>(held->data()) % 8 == 0)
      return NamedTensor{proto.name(), Tensor(*type, shape, reinterpret_cast<const std::byte *>(held->data()), held)};
    Tensor copy(*type, shape);
    std::memcpy(copy.mutableData(), held->data(), held->size());
    return NamedTensor{proto.name(), copy};
  }
  // Refuse before allocating what the file cannot hold.
  if (count > static_cast<uint64_t>(proto.ByteSizeLong()) * 4)
    return bad(path, where + " has fewer elements in its data field");
  Tensor tensor(*type, shape);
  if (!copyTypedField(proto, tensor))
    return bad(path, where + " does not fit the number of elements in its data field");
  return NamedTensor{proto.name(), tensor};
}

/// Appends the tensors of a container, those of sequences as `name.0`, `name.1` and so on.
Status flatten(const std::string &path, onnx::SequenceProto &container, const std::string &name, bool numbered,
               std::vector<NamedTensor> &items) {
  if (container.map_values_size() || container.optional_values_size())
    return bad(path, "it holds maps or nested optionals; bundles take tensors only");
  for (onnx::TensorProto &tensor : *container.mutable_tensor_values()) {
    auto item = decode(path, tensor);
    if (!item)
      return item.takeError();
    items.push_back({numbered ? name + "." + std::to_string(items.size()) : name, item->tensor});
  }
  if (container.sequence_values_size() > 1)
    return bad(path, "it holds a sequence of sequences; bundles take tensors only");
  // An optional that holds a sequence.
  for (onnx::SequenceProto &sequence : *container.mutable_sequence_values())
    if (Status status = flatten(path, sequence, name, true, items); !status)
      return status;
  return Status::ok();
}

/// A file's message, mapped and small enough to be parsed.
Result<std::shared_ptr<const MappedFile>> openProto(const std::string &path) {
  auto file = MappedFile::open(path);
  if (file && (*file)->bytes().size() > INT32_MAX)
    return bad(path, "a protobuf file cannot exceed 2 GiB; use .npy");
  return file;
}

Result<NamedTensor> tensorIn(const std::string &path, const MappedFile &file) {
  onnx::TensorProto proto;
  bool parsed = proto.ParseFromArray(file.bytes().data(), static_cast<int>(file.bytes().size()));
  if (!parsed || proto.data_type() == 0 || proto.has_segment())
    return bad(path, "not an ONNX TensorProto");
  return decode(path, proto);
}

} // namespace

int onnxTypeCode(DType type) {
  for (const TypeCode &row : typeCodes)
    if (row.type == type)
      return row.code;
  return 0;
}

std::optional<DType> dtypeFromOnnxCode(int code) {
  for (const TypeCode &row : typeCodes)
    if (row.code == code)
      return row.type;
  return std::nullopt;
}

Result<NamedTensor> readTensorProto(const std::string &path) {
  auto file = openProto(path);
  if (!file)
    return file.takeError();
  Result<NamedTensor> tensor = tensorIn(path, **file);
  if (!tensor && containerIn(**file))
    return bad(path, "it holds a SequenceProto or OptionalProto; expected one tensor");
  return tensor;
}

Result<std::vector<NamedTensor>> readTensorsProto(const std::string &path) {
  auto file = openProto(path);
  if (!file)
    return file.takeError();
  std::vector<NamedTensor> items;
  Result<NamedTensor> tensor = tensorIn(path, **file);
  if (tensor) {
    items.push_back(std::move(*tensor));
    return items;
  }
  std::optional<onnx::SequenceProto> container = containerIn(**file);
  if (!container)
    return tensor.takeError();
  // One tensor alone may be an optional's, whose name is its own, or a sequence's: where only names tell, positions
  // count.
  const bool numbered = container->tensor_values_size() != 1;
  if (Status status = flatten(path, *container, container->name(), numbered, items); !status)
    return status.takeError();
  return items;
}

Status writeTensorProto(const std::string &path, const NamedTensor &named) {
  const Tensor &tensor = named.tensor;
  if (tensor.byteSize() > INT32_MAX - 4096)
    return ioError("cannot write '" + path + "': a protobuf file cannot exceed 2 GiB; use .npy");
  onnx::TensorProto proto;
  for (int64_t dim : tensor.shape())
    proto.add_dims(dim);
  proto.set_data_type(onnxTypeCode(tensor.dtype()));
  proto.set_name(named.name);
  proto.set_raw_data(tensor.data(), tensor.byteSize());
  return writeFile(path, proto.SerializeAsString());
}

} // namespace dmxc::tools
