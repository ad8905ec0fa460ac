//===- TensorFile.h - tensors in .npy and ONNX .pb files --------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include <optional>
#include <string>

namespace dmxc::tools {

/// A tensor read from a file. `name` is what the file says (ONNX TensorProto),
/// empty for .npy.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Reads a NumPy file of format 1 to 3: bool, i8..i64, u8..u64, f16..f64, any
/// byte order, C or Fortran order. NumPy has no name for the other types, so
/// `expected` decides how raw bytes are taken: void2 as bf16, void1 (or u8) as
/// an f8 type, and i8/u8 as a type of 4 or 2 bits, one element a byte, range-checked. A
/// little-endian C-order file is mapped, not copied. Errors: ErrorKind::IO when
/// the file cannot be read or is not such a file.
Result<Tensor> readNpy(const std::string &path, std::optional<DType> expected = std::nullopt);

/// Writes format 1.0, C order. bf16 and f8 go out as raw void2/void1, types of
/// 4 and 2 bits as one i8/u8 (f4: void1) an element.
Status writeNpy(const std::string &path, const Tensor &tensor);

// .pb files come with the ONNX front end: builds without it refuse them by name, and know no codes of types.

/// Reads an ONNX TensorProto with raw or typed data, element types by their
/// numeric code (also those newer than the ONNX library). A SequenceProto or
/// OptionalProto, strings, complex numbers and external data are refused by
/// name.
Result<NamedTensor> readTensorProto(const std::string &path);

/// The same, but a SequenceProto or OptionalProto gives the tensors that it holds: those of a sequence `name` are
/// `name.0`, `name.1` and so on. An optional without a value gives none.
Result<std::vector<NamedTensor>> readTensorsProto(const std::string &path);

/// Writes a TensorProto with raw data.
Status writeTensorProto(const std::string &path, const NamedTensor &tensor);

/// By the file's ending: .npy or .pb; anything else is ErrorKind::Usage.
Result<NamedTensor> readTensorFile(const std::string &path, std::optional<DType> expected = std::nullopt);
Status writeTensorFile(const std::string &path, const NamedTensor &tensor);

/// ONNX's numeric code of an element type and back (TensorProto.DataType).
int onnxTypeCode(DType type);
std::optional<DType> dtypeFromOnnxCode(int code);

} // namespace dmxc::tools
